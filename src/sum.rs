//! The exact sum: how shards that run on are added up without stopping them.
//!
//! # The order of reading
//!
//! Shards are read in passes: every *deallocated* side, then every *allocated* side, then
//! every deallocated side again. Let `D₁`, `A`, `D₂` be what the passes add up to, and
//! `live(t)` the bytes live at time `t`.
//!
//! * At the moment `t₁` between the first two passes, `D₁ ≤ deallocated(t₁)` and
//!   `A ≥ allocated(t₁)`, so **`A − D₁ ≥ live(t₁)`**: never below what was live throughout,
//!   never negative.
//! * At the moment `t₂` between the last two, `A ≤ allocated(t₂)` and
//!   `D₂ ≥ deallocated(t₂)`, so **`A − D₂ ≤ live(t₂)`**: a figure that was certainly
//!   reached. A trigger decides on this one, so it never fires early.
//! * They differ by `D₂ − D₁`, exactly what was freed in between.
//!
//! When that is more than [`SETTLED`] bytes the reader most likely lost the processor half
//! way; the sum is taken again, [`ATTEMPTS`] times at the most, each attempt starting from
//! the last pass of the one before.
//!
//! Every field is a sum of counters that only grow, each read once per pass, so successive
//! sums of one thread never show a field going back.
//!
//! The pairing of orderings stands in [`Shard`].

use crate::shard::Shard;
use crate::totals::Totals;

/// Bytes freed during a sum at which it is good enough: 16 KiB, the default threshold, the grain in
/// which everything else here is reckoned.
const SETTLED: usize = 16 * 1024;

/// How often a sum is taken at the most. A reader that lost the processor once has a fresh
/// time slice the second time; more attempts would only chase threads that free faster
/// than it can read.
const ATTEMPTS: usize = 4;

/// What a sum found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    /// Live figures of this are at least what was live throughout the sum.
    pub(crate) totals: Totals,
    /// Bytes and blocks freed while the sum was taken: live less this was reached.
    pub(crate) freed_bytes: usize,
    pub(crate) freed_blocks: usize,
}

impl Sum {
    /// Adds up shards; `shards` is asked for them anew for each pass, since the second
    /// pass must include a shard that appeared after the first.
    pub(crate) fn of<'a, I>(shards: impl Fn() -> I) -> Self
    where
        I: Iterator<Item = &'a Shard>,
    {
        let deallocated = || {
            let mut side = Totals::default();
            shards().for_each(|shard| shard.add_deallocated(&mut side));
            side
        };
        let mut before = deallocated();
        let mut attempt = 1;
        loop {
            let mut totals = before;
            shards().for_each(|shard| shard.add_allocated(&mut totals));
            let after = deallocated();
            let freed = after - before;
            if freed.bytes_deallocated <= SETTLED || attempt == ATTEMPTS {
                return Self {
                    totals,
                    freed_bytes: freed.bytes_deallocated,
                    freed_blocks: freed.deallocations,
                };
            }
            before = after;
            attempt += 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::{ATTEMPTS, SETTLED, Sum};
    use crate::operation::Operation;
    use crate::shard::Shard;

    /// Takes the sum of a shard with 10 times `SETTLED` bytes live in 10 blocks, of which `freed(pass)` bytes go, in one
    /// block, just before each pass; returns it and the number of passes.
    fn sum_while(freed: impl Fn(usize) -> usize) -> (Sum, usize) {
        let shard = Shard::new();
        for _ in 0..10 {
            shard.count(Operation::Allocate, SETTLED);
        }
        let passes = Cell::new(0);
        let sum = Sum::of(|| {
            passes.set(passes.get() + 1);
            assert!(passes.get() < 100, "it ends");
            let bytes = freed(passes.get());
            if bytes != 0 {
                shard.count(Operation::Deallocate, bytes);
            }
            [&shard].into_iter()
        });
        (sum, passes.get())
    }

    #[test]
    fn settled_is_the_default_threshold() {
        assert_eq!(SETTLED, 16 * 1024);
    }

    #[test]
    fn a_sum_that_nobody_disturbs_takes_three_passes() {
        let (sum, passes) = sum_while(|_| 0);
        assert_eq!((sum.freed_bytes, sum.freed_blocks), (0, 0));
        assert_eq!(sum.totals.live_bytes(), 10 * SETTLED);
        assert_eq!(sum.totals.live_blocks(), 10);
        assert_eq!(passes, 3);
    }

    #[test]
    fn what_is_freed_during_a_sum_is_told_and_up_to_a_threshold_of_it_is_good_enough() {
        for pass in [2, 3] {
            let (sum, passes) = sum_while(|now| if now == pass { SETTLED } else { 0 });
            assert_eq!((sum.freed_bytes, sum.freed_blocks), (SETTLED, 1), "{pass}");
            assert_eq!(sum.totals.live_bytes(), 10 * SETTLED, "before pass {pass}");
            assert_eq!(passes, 3);
        }
    }

    #[test]
    fn a_sum_is_taken_again_from_its_last_pass_when_more_was_freed() {
        let (sum, passes) = sum_while(|now| if now == 3 { SETTLED + 1 } else { 0 });
        assert_eq!((sum.freed_bytes, sum.freed_blocks), (0, 0));
        assert_eq!(sum.totals.live_bytes(), 9 * SETTLED - 1);
        assert_eq!(passes, 5);
    }

    #[test]
    fn a_sum_that_never_settles_ends_and_tells_what_was_freed_during_its_last_attempt() {
        let (sum, passes) = sum_while(|_| SETTLED + 1);
        // A pass to begin with, and two in each attempt.
        assert_eq!(passes, 1 + 2 * ATTEMPTS);
        let freed = (2 * (SETTLED + 1), 2);
        assert_eq!((sum.freed_bytes, sum.freed_blocks), freed);
    }
}
