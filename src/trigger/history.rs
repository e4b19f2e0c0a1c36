//! What a trigger remembers of its cycles.

use std::mem;
use std::time::{Duration, Instant};

use crate::policy::Cycle;
use crate::report::Cause;

/// See the module. Only a trigger's own threads touch it.
#[derive(Debug)]
pub(super) struct History {
    pub(super) cycles: u64,
    pub(super) collecting: Duration,
    pub(super) mutating: Duration,
    pub(super) bytes_allocated: u64,
    /// As the policy gave it after the last cycle.
    pub(super) growth_steps: u64,
    /// When the last cycle ended, and the bytes allocated by then.
    ended: Instant,
    pub(super) allocated: usize,
    /// What the collection under way began with, and when.
    begun: Option<(usize, Instant)>,
    /// The largest request announced since the last cycle ended, 0 for none.
    request: usize,
    /// The request that the last cycle did not make room for, 0 for none.
    refused: usize,
    pub(super) cause: Option<Cause>,
}

impl History {
    pub(super) fn new(allocated: usize, growth_steps: u64) -> Self {
        Self {
            cycles: 0,
            collecting: Duration::ZERO,
            mutating: Duration::ZERO,
            bytes_allocated: 0,
            growth_steps,
            ended: Instant::now(),
            allocated,
            begun: None,
            request: 0,
            refused: 0,
            cause: None,
        }
    }

    /// Notes that a collection begins with `live`.
    pub(super) fn begin(&mut self, live: usize, cause: Cause) {
        self.begun = Some((live, Instant::now()));
        self.cause = Some(cause);
    }

    /// Notes a request, and returns whether a collection may still make room for it: not if the last one
    /// was asked for as little and did not.
    pub(super) fn request(&mut self, amount: usize) -> bool {
        if self.refused != 0 && amount >= self.refused {
            return false;
        }
        self.request = self.request.max(amount);
        true
    }

    /// Returns the largest request that no policy has been asked for yet, 0 for none, and forgets it.
    pub(super) fn take_request(&mut self) -> usize {
        mem::take(&mut self.request)
    }

    /// Takes back a request that no policy has answered.
    pub(super) fn ask_again(&mut self, request: usize) {
        self.request = self.request.max(request);
    }

    /// Returns the cycle that has ended `now`: `live` is what the trigger measures, `after` what the next
    /// cycle starts from. The request goes with it; one that is announced from here on is for the next.
    pub(super) fn cycle(
        &mut self,
        live: usize,
        after: usize,
        allocated: usize,
        pause: Duration,
        now: Instant,
    ) -> Cycle {
        let (before, mutator) = match self.begun {
            Some((live, at)) => (live, at.saturating_duration_since(self.ended)),
            None => {
                let since = now.saturating_duration_since(self.ended);
                (live, since.saturating_sub(pause))
            }
        };
        Cycle::new(before, after)
            .with_allocated(allocated.wrapping_sub(self.allocated))
            .with_request(self.take_request())
            .with_pause(pause)
            .with_mutator(mutator)
    }

    /// Takes in a cycle after which the policy has set `limit`.
    pub(super) fn end(&mut self, cycle: &Cycle, limit: usize, growth_steps: u64, now: Instant) {
        self.cycles += 1;
        self.collecting = self.collecting.saturating_add(cycle.pause);
        self.mutating = self.mutating.saturating_add(cycle.mutator);
        self.bytes_allocated = self.bytes_allocated.saturating_add(cycle.allocated as u64);
        self.growth_steps = growth_steps;
        self.ended = now;
        self.allocated = self.allocated.wrapping_add(cycle.allocated);
        self.begun = None;
        let refuses = cycle.request != 0 && !cycle.fits(limit);
        self.refused = if refuses { cycle.request } else { 0 };
    }
}
