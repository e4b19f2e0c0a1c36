//! Who decides when a worker with two pools collects.
//!
//! A worker has slots (by number) and chunks (in bytes) and one collector for both, due when either
//! pool is exhausted; or it has one account of everything, as `TallyAlloc` keeps it.

use std::fmt;

use tally_alloc::policy::{Cycle, Increment, IncrementState, Policy, Resumable};

use crate::cost::SLOT_BYTES;

/// The "low headroom" flag of XS: whether a pool had less than one increment free after the last
/// collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Until late 2023: one flag, which holds what the last exhausted pool left in it. A strike of
    /// one pool counts for the other, and a collection that one pool caused and that left it room
    /// clears the strike of the other.
    Shared,
    /// Since then: each pool its own, brought up to date at every collection.
    Own,
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "shared",
            Self::Own => "own",
        })
    }
}

/// Which pools could not serve the request that started a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// The slots.
    pub slots: bool,
    /// The chunks.
    pub chunks: bool,
}

/// How much a worker may hold, and what it does about it when a collection has ended.
pub trait Sizing {
    /// Returns whether it may hold this many slots and chunk bytes, and if not, what is exhausted.
    fn exhausted(&self, slots: usize, chunk_bytes: usize) -> Option<Exhausted>;

    /// Takes in a collection, as each pool saw it.
    fn collected(&mut self, exhausted: Exhausted, slots: &Cycle, chunks: &Cycle);

    /// Goes on in a new process, from what a snapshot carries.
    fn reload(&mut self);

    /// Returns whether slots and chunks share one heap, so that what one gives up the other can use.
    /// Two pools never do: the most that each ever used stays with it.
    fn one_account(&self) -> bool {
        false
    }

    /// Returns the bytes reserved.
    fn reserved(&self) -> usize;

    /// Returns how often a reserve has grown.
    fn growth_steps(&self) -> u64;
}

/// XS's rule for its two pools.
#[derive(Clone, Debug)]
pub struct Xs {
    slots: Increment,
    slot_step: usize,
    chunks: Increment,
    chunk_step: usize,
    flag: Flag,
}

impl Xs {
    /// Makes the rule with these initial and incremental sizes: slots by number, chunks in bytes.
    ///
    /// # Panics
    ///
    /// When a size is 0.
    #[must_use]
    pub fn new(slots: (usize, usize), chunks: (usize, usize), flag: Flag) -> Self {
        let pool =
            |(initial, increment)| Increment::new(initial, increment).expect("sizes above 0");
        Self {
            slots: pool(slots),
            slot_step: slots.1,
            chunks: pool(chunks),
            chunk_step: chunks.1,
            flag,
        }
    }
}

fn with_flag(pool: &mut Increment, low: bool) {
    let state = IncrementState {
        low,
        ..pool.state()
    };
    pool.resume(state).expect("the pool's own reserve");
}

impl Sizing for Xs {
    fn exhausted(&self, slots: usize, chunk_bytes: usize) -> Option<Exhausted> {
        let exhausted = Exhausted {
            slots: slots >= self.slots.reserve(),
            chunks: chunk_bytes >= self.chunks.reserve(),
        };
        (exhausted.slots || exhausted.chunks).then_some(exhausted)
    }

    fn collected(&mut self, exhausted: Exhausted, slots: &Cycle, chunks: &Cycle) {
        // Only a pool that was exhausted grows; the other one's own flag is brought up to date.
        let pools = [
            (&mut self.slots, self.slot_step, exhausted.slots, slots),
            (&mut self.chunks, self.chunk_step, exhausted.chunks, chunks),
        ];
        let mut last = None;
        for (pool, step, exhausted, cycle) in pools {
            if exhausted {
                pool.next_limit(cycle);
                last = Some(pool.state().low);
            } else if self.flag == Flag::Own {
                let free = pool.reserve().saturating_sub(cycle.live_after);
                with_flag(pool, free < step);
            }
        }
        if let (Flag::Shared, Some(low)) = (self.flag, last) {
            with_flag(&mut self.slots, low);
            with_flag(&mut self.chunks, low);
        }
    }

    fn reload(&mut self) {
        // A snapshot carries the sizes; the new process starts with no strike.
        with_flag(&mut self.slots, false);
        with_flag(&mut self.chunks, false);
    }

    fn reserved(&self) -> usize {
        self.slots.reserve() * SLOT_BYTES + self.chunks.reserve()
    }

    fn growth_steps(&self) -> u64 {
        self.slots.growth_steps() + self.chunks.growth_steps()
    }
}

/// A policy for each pool: slots by number, chunks in bytes.
#[derive(Clone, Debug)]
pub struct PerPool<P> {
    slots: P,
    chunks: P,
    limits: (usize, usize),
}

impl<P: Policy> PerPool<P> {
    /// Makes a sizing of a policy that counts slots and one that counts chunk bytes.
    pub fn new(slots: P, chunks: P) -> Self {
        let limits = (slots.initial_limit(), chunks.initial_limit());
        Self {
            slots,
            chunks,
            limits,
        }
    }
}

impl<P: Resumable + Clone> Sizing for PerPool<P> {
    fn exhausted(&self, slots: usize, chunk_bytes: usize) -> Option<Exhausted> {
        let exhausted = Exhausted {
            slots: slots >= self.limits.0,
            chunks: chunk_bytes >= self.limits.1,
        };
        (exhausted.slots || exhausted.chunks).then_some(exhausted)
    }

    fn collected(&mut self, _: Exhausted, slots: &Cycle, chunks: &Cycle) {
        self.limits = (self.slots.next_limit(slots), self.chunks.next_limit(chunks));
    }

    fn reload(&mut self) {
        for policy in [&mut self.slots, &mut self.chunks] {
            let state = policy.state();
            policy.resume(state).expect("a state of its own kind");
        }
        self.limits = (self.slots.initial_limit(), self.chunks.initial_limit());
    }

    fn reserved(&self) -> usize {
        self.limits
            .0
            .saturating_mul(SLOT_BYTES)
            .saturating_add(self.limits.1)
    }

    fn growth_steps(&self) -> u64 {
        self.slots.growth_steps() + self.chunks.growth_steps()
    }
}

/// One policy for the bytes of both pools together: what the process's account counts.
#[derive(Clone, Debug)]
pub struct OneAccount<P> {
    policy: P,
    limit: usize,
}

impl<P: Policy> OneAccount<P> {
    /// Makes a sizing of a policy that counts the bytes of everything.
    pub fn new(policy: P) -> Self {
        let limit = policy.initial_limit();
        Self { policy, limit }
    }
}

impl<P: Resumable> Sizing for OneAccount<P> {
    fn exhausted(&self, slots: usize, chunk_bytes: usize) -> Option<Exhausted> {
        (slots * SLOT_BYTES + chunk_bytes >= self.limit).then_some(Exhausted {
            slots: true,
            chunks: true,
        })
    }

    fn collected(&mut self, _: Exhausted, slots: &Cycle, chunks: &Cycle) {
        let both = |slots: usize, chunks: usize| slots * SLOT_BYTES + chunks;
        let cycle = Cycle::new(
            both(slots.live_before, chunks.live_before),
            both(slots.live_after, chunks.live_after),
        )
        .with_allocated(both(slots.allocated, chunks.allocated))
        .with_request(both(slots.request, chunks.request))
        .with_limit(self.limit)
        .with_pause(slots.pause)
        .with_mutator(slots.mutator);
        self.limit = self.policy.next_limit(&cycle);
    }

    fn reload(&mut self) {
        let state = self.policy.state();
        self.policy.resume(state).expect("a state of its own kind");
        self.limit = self.policy.initial_limit();
    }

    fn one_account(&self) -> bool {
        true
    }

    fn reserved(&self) -> usize {
        self.limit
    }

    fn growth_steps(&self) -> u64 {
        self.policy.growth_steps()
    }
}
