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
