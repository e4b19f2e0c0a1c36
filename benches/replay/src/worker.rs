//! A worker in virtual time: two pools, one collector, deliveries one after another.

use std::time::Duration;

use tally_alloc::policy::Cycle;

use crate::cost::{self, SLOT_BYTES};
use crate::outcome::{Outcome, Sample};
use crate::sizing::Sizing;
use crate::workload::{Amount, BOOTED, Delivery};

/// How many pieces a delivery's work is cut into: between two of them a collection may come, and what
/// the delivery has allocated so far is live then.
const PIECES: usize = 8;

/// Whether a run goes through in one process or is stopped half-way and reloaded from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One process.
    RunOn,
    /// A new process from half-way on, which starts collected and with the size the old one had
    /// reached.
    Reloaded,
}

/// One pool, in its unit.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    /// Kept for ever.
    kept: usize,
    /// Live until the delivery ends.
    transient: usize,
    /// Dead and not yet collected.
    dead: usize,
    /// Allocated since the last collection.
    allocated: usize,
    /// The most that was in use since the process began: no pool gives pages back.
    touched: usize,
}

impl Pool {
    const fn live(&self) -> usize {
        self.kept + self.transient
    }

    const fn used(&self) -> usize {
        self.live() + self.dead
    }

    fn allocate(&mut self, amount: usize) {
        self.transient += amount;
        self.allocated += amount;
        self.touched = self.touched.max(self.used());
    }

    const fn end_delivery(&mut self, kept: usize) {
        self.kept += kept;
        self.dead += self.transient - kept;
        self.transient = 0;
    }

    const fn collect(&mut self, request: usize) -> Cycle {
        let cycle = Cycle::new(self.used(), self.live())
            .with_allocated(self.allocated)
            .with_request(request);
        self.dead = 0;
        self.allocated = 0;
        cycle
    }
}

const fn bytes(slots: usize, chunk_bytes: usize) -> usize {
    slots * SLOT_BYTES + chunk_bytes
}

struct Worker<'a> {
    sizing: &'a mut dyn Sizing,
    slots: Pool,
    chunks: Pool,
    /// The most bytes that were in use in both together.
    touched: usize,
    collections: u64,
    marked: u64,
    collecting: Duration,
    mutating: Duration,
    /// `mutating` when the last collection ended.
    last: Duration,
}

impl Worker<'_> {
    fn allocate(&mut self, amount: Amount) {
        let slots = self.slots.used() + amount.slots;
        let chunk_bytes = self.chunks.used() + amount.chunk_bytes;
        if let Some(exhausted) = self.sizing.exhausted(slots, chunk_bytes) {
            let pause = cost::pause(self.slots.live(), self.chunks.live());
            let mutator = self.mutating - self.last;
            let finish = |cycle: Cycle| cycle.with_pause(pause).with_mutator(mutator);
            let slots = finish(self.slots.collect(amount.slots));
            let chunks = finish(self.chunks.collect(amount.chunk_bytes));
            self.sizing.collected(exhausted, &slots, &chunks);
            self.collections += 1;
            self.marked += bytes(self.slots.live(), self.chunks.live()) as u64;
            self.collecting += pause;
            self.last = self.mutating;
        }
        self.slots.allocate(amount.slots);
        self.chunks.allocate(amount.chunk_bytes);
        let used = bytes(self.slots.used(), self.chunks.used());
        self.touched = self.touched.max(used);
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let Amount { slots, chunk_bytes } = delivery.allocated;
        for piece in 0..PIECES {
            let part = |whole: usize| whole * (piece + 1) / PIECES - whole * piece / PIECES;
            self.allocate(Amount {
                slots: part(slots),
                chunk_bytes: part(chunk_bytes),
            });
            self.mutating += delivery.time / PIECES as u32;
        }
        if delivery.large > 0 {
            self.allocate(Amount {
                slots: 1,
                chunk_bytes: delivery.large,
            });
        }
        self.slots.end_delivery(delivery.kept.slots);
        self.chunks.end_delivery(delivery.kept.chunk_bytes);
    }

    /// A snapshot holds what is live, and only that; the new process has touched nothing else.
    fn reload(&mut self) {
        for pool in [&mut self.slots, &mut self.chunks] {
            pool.dead = 0;
            pool.allocated = 0;
            pool.touched = pool.live();
        }
        self.touched = bytes(self.slots.live(), self.chunks.live());
        self.last = self.mutating;
        self.sizing.reload();
    }

    fn sample(&self) -> Sample {
        Sample {
            collections: self.collections,
            marked: self.marked,
            collecting: self.collecting,
            mutating: self.mutating,
            live: bytes(self.slots.live(), self.chunks.live()),
            resident: if self.sizing.one_account() {
                self.touched
            } else {
                bytes(self.slots.touched, self.chunks.touched)
            },
        }
    }
}

/// Runs `deliveries` under `sizing`.
pub fn run(deliveries: &[Delivery], mode: Mode, sizing: &mut dyn Sizing) -> Outcome {
    let mut worker = Worker {
        sizing,
        slots: Pool::default(),
        chunks: Pool::default(),
        touched: 0,
        collections: 0,
        marked: 0,
        collecting: Duration::ZERO,
        mutating: Duration::ZERO,
        last: Duration::ZERO,
    };
    worker.allocate(BOOTED);
    worker.slots.end_delivery(BOOTED.slots);
    worker.chunks.end_delivery(BOOTED.chunk_bytes);
    let mut samples = Vec::with_capacity(deliveries.len());
    for (n, delivery) in deliveries.iter().enumerate() {
        if mode == Mode::Reloaded && n == deliveries.len() / 2 {
            worker.reload();
        }
        worker.deliver(delivery);
        samples.push(worker.sample());
    }
    Outcome::new(&samples, sizing.reserved(), sizing.growth_steps())
}
