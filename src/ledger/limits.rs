//! Limits: how the ledger decides whether a trigger's is reached.
//!
//! A trigger's [`Watermark`] is decided on two levels. As long as the published total plus the error bound is
//! below the limit, so is the truth, and a publish does no more than that comparison, on the line it owns
//! anyway. Otherwise [`Ledger::consult`] takes the exact sum and decides on the figure that was certainly
//! reached. So no limit is fired early, and none is missed: whoever adds to the total while the exact figure is
//! at or above the limit finds it so, unless it is by less than what other threads freed while the sum was
//! taken; then the next publish decides.
//!
//! The bound is read after the total has been added to: a thread that came and holds something back by then is
//! in it, and one that has left it since published later, and decides itself (model:
//! `a_publish_reckons_with_a_thread_that_came_before_it`).
//!
//! Sums cost nothing until the total is within the bound of the limit, and from there one per publish: at
//! most about two per thread on a straight approach, since a thread has to fill a threshold to publish. It is
//! tempting to take the next sum only after half of the remaining distance has been published. That misses
//! crossings: with a limit of 1 MB, sixty-four threads may come to hold 960 kB pending without publishing a
//! byte, and the one that then publishes 100 kB is past the limit with less than half of the distance
//! published.
//!
//! Under a bound of zero (every thread counts exactly) the published total is the truth, and decides alone.

use super::Ledger;
use crate::published::blocks_bound;
use crate::sum::Sum;
use crate::terms::Watched;
use crate::watermark::{Evidence, Measure, Watermark};

/// What the published total says of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    total: usize,
    /// By how much it may be off.
    bound: usize,
    /// The total was the figure, not only near it.
    exact: bool,
}

impl Estimate {
    /// Returns the most that the figure may be.
    pub(crate) const fn most(&self) -> usize {
        self.total.saturating_add(self.bound)
    }
}

impl Ledger {
    /// Decides for every armed watermark that the published total has come near to. The caller has
    /// settled its own state; `sum` takes the exact sum of this ledger's shards.
    pub(crate) fn consult(&self, sum: impl Fn() -> Sum) {
        for mark in self.watermarks.used() {
            let Some(armed) = mark.armed() else { continue };
            if let Some(estimate) = self.estimate(armed.measure) {
                if estimate.most() < armed.limit {
                    continue;
                }
                if estimate.exact {
                    mark.reach(armed, estimate.total, Evidence::Published);
                    continue;
                }
            }
            let reached = armed.reached(&sum());
            if reached >= armed.limit {
                mark.reach(armed, reached, Evidence::Sum);
            }
        }
    }

    /// Returns what the published total says of a measure; `None` for what is never published.
    ///
    /// The bound is read before the total: a thread that has left the bound by then has published what
    /// it had (`Release` in `narrow_bound`, `Acquire` here), so the total has it. A thread that counted
    /// in batches before the total was read has widened the bound before that, so it is in the bound, or
    /// has left it as above, or the bound has widened since; then the total is not taken for exact
    /// (model: `a_total_is_not_exact_while_a_thread_in_batches_comes_and_goes`).
    pub(crate) fn estimate(&self, measure: Measure) -> Option<Estimate> {
        let widenings = self.terms.widenings();
        let bytes = self.terms.error_bound();
        let (total, bound) = match measure {
            Measure::LiveBytes => (self.published.live_bytes(), bytes),
            Measure::LiveBlocks => (self.published.live_blocks(), blocks_bound(bytes)),
            Measure::AllocatedBytes => return None,
        };
        let exact = bound == 0 && self.terms.widenings() == widenings;
        Some(Estimate {
            total,
            bound,
            exact,
        })
    }

    /// Hands out a watermark that is not armed; `None` when there is no memory for another.
    pub(crate) fn claim_watermark(&self) -> Option<&Watermark> {
        self.watermarks.claim()
    }

    /// Returns the watermark that was handed out first, if there was one.
    #[cfg(loom)]
    pub(crate) fn first_watermark(&self) -> Option<&Watermark> {
        self.watermarks.used().next()
    }

    /// Takes a watermark back for good.
    pub(crate) fn release_watermark(&self, mark: &Watermark) {
        mark.withdraw(true);
        self.refresh_marks();
        self.watermarks.release(mark);
    }

    /// Arms a watermark that is not armed. [`consult`](Self::consult) must follow, since the limit may be
    /// reached already.
    pub(crate) fn arm(&self, mark: &Watermark, measure: Measure, limit: usize, base: usize) {
        mark.arm(measure, limit, base);
        self.refresh_marks();
    }

    /// Sets the marks to the lowest limits in force.
    pub(crate) fn refresh_marks(&self) {
        let _watching = self.watching.lock();
        let mut lowest = [usize::MAX; 2];
        let (mut blocks, mut traffic) = (false, false);
        for armed in self.watermarks.used().filter_map(Watermark::armed) {
            match armed.measure {
                Measure::LiveBytes => lowest[0] = lowest[0].min(armed.limit),
                Measure::LiveBlocks => {
                    lowest[1] = lowest[1].min(armed.limit);
                    blocks = true;
                }
                Measure::AllocatedBytes => traffic = true,
            }
        }
        self.terms.set_watched(Watched::new(blocks, traffic));
        self.published.set_marks(lowest[0], lowest[1], traffic);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
