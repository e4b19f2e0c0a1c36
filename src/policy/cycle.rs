//! What a policy is told when a collection has ended.

use std::time::Duration;

/// One collection, and the stretch of the program's own work that led up to it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tally_alloc::policy::Cycle;
///
/// let cycle = Cycle::new(64_000_000, 20_000_000)
///     .with_allocated(50_000_000)
///     .with_limit(64_000_000)
///     .with_pause(Duration::from_millis(5))
///     .with_mutator(Duration::from_millis(95));
/// assert_eq!(cycle.needed(), 20_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// Bytes live when the collection began, exact.
    pub live_before: usize,
    /// Bytes live when it had ended, exact: the baseline of the next budget. What the collector freed
    /// is thus no credit for it.
    pub live_after: usize,
    /// Bytes allocated since the cycle before ended.
    pub allocated: usize,
    /// Bytes that were announced and are still to be allocated, 0 if none.
    pub request: usize,
    /// The limit that was in force.
    pub limit: usize,
    /// Time spent collecting.
    pub pause: Duration,
    /// Time since the cycle before ended, without the pause. Zero where a clock stood still or went
    /// back.
    pub mutator: Duration,
}

impl Cycle {
    /// Makes a cycle that found `live_before` bytes and left `live_after`, with everything else zero.
    #[must_use]
    pub const fn new(live_before: usize, live_after: usize) -> Self {
        Self {
            live_before,
            live_after,
            allocated: 0,
            request: 0,
            limit: 0,
            pause: Duration::ZERO,
            mutator: Duration::ZERO,
        }
    }

    /// Sets the bytes allocated since the cycle before ended.
    #[must_use]
    pub const fn with_allocated(self, allocated: usize) -> Self {
        Self { allocated, ..self }
    }

    /// Sets the bytes that were announced and are still to be allocated.
    #[must_use]
    pub const fn with_request(self, request: usize) -> Self {
        Self { request, ..self }
    }

    /// Sets the limit that was in force.
    #[must_use]
    pub const fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets the time spent collecting.
    #[must_use]
    pub const fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Sets the time the program had for itself since the cycle before ended.
    #[must_use]
    pub const fn with_mutator(self, mutator: Duration) -> Self {
        Self { mutator, ..self }
    }

    /// Returns the bytes that will be live once the pending request is served: what is live after the
    /// collection, plus the request; `usize::MAX` where the sum is larger.
    #[must_use]
    pub const fn needed(&self) -> usize {
        self.live_after.saturating_add(self.request)
    }

    /// Returns whether `limit` leaves room for the pending request: whether serving it would leave
    /// the trigger not due.
    #[must_use]
    pub const fn fits(&self, limit: usize) -> bool {
        self.needed() < limit
    }

    /// Returns the least that the policies of this crate leave free above what is live: 1/64 of it,
    /// and at least 1.
    ///
    /// In proportion to what is live, as a collection's cost is, it bounds what collecting can cost
    /// per byte allocated; 1/64 is finer than any headroom that one would ask for (the bound is a
    /// collector that marks 64 bytes for each byte allocated).
    #[must_use]
    pub const fn least_progress(&self) -> usize {
        let share = self.live_after / 64;
        if share == 0 { 1 } else { share }
    }

    /// The lowest limit that does not make the trigger due again at once: what is live, plus the
    /// least progress. It refuses the pending request.
    pub(super) const fn lowest_limit(&self) -> usize {
        self.live_after.saturating_add(self.least_progress())
    }

    /// The limit that grants the pending request and leaves `headroom`, or the least progress if that
    /// is more, on top.
    pub(super) fn granting(&self, headroom: usize) -> usize {
        self.needed()
            .saturating_add(headroom.max(self.least_progress()))
    }
}
