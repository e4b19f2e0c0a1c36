//! The terms under which shards publish: a cache line that every look reads and hardly anything writes, but requests under a
//! hard limit.
//!
//! # The error bound
//!
//! A shard under threshold `t` holds back at most `t − 1` bytes in either direction, so
//! the published total is off by at most the sum of `t − 1` over the shards in use:
//! that sum is kept ([`Terms::error_bound`]) and moves only when a shard changes
//! hands or threshold. It grows before a shard's room widens and shrinks after it
//! has narrowed, so it is never too small (model:
//! `a_threshold_change_under_load_keeps_the_bound`).
//!
//! While there is a hard limit, requests that are under way are in the bound as well ([`hard_limit`](crate::hard_limit)).
//!
//! # Memory orderings
//!
//! The error bound changes `AcqRel` and is read `Acquire`: a reader that sees it narrowed also sees what was
//! published before it could be. It grows before anything is held back under it, so whoever is ordered after
//! such an operation sees it grown. The hard limit needs the other half
//! ([`hard_limit`](crate::hard_limit)). The rest are figures that may be old: `Relaxed`.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicUsize, const_fn};

/// 16 KiB: at 64 bytes a block, one shared write in 256 operations at most, a cost that
/// disappears in the operations themselves; and with a hundred threads the published
/// total is still within 1.6 MiB.
pub(crate) const DEFAULT_THRESHOLD: usize = 16 * 1024;

/// The largest threshold, in bytes: 1 GiB, or 128 KiB where pointers have 32 bits. It
/// keeps the error bound of a million threads (of 4,096 on 32 bits) in the top eighth that totals keep
/// for figures below zero ([`published`](crate::published)).
pub(crate) const MAX_THRESHOLD: usize = if usize::BITS >= 64 { 1 << 30 } else { 1 << 17 };

/// See the module.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The threshold for shards that look from now on.
    threshold: AtomicUsize,
    /// Bytes by which the published total may be off.
    error_bound: AtomicUsize,
    /// How often the bound has widened. Who finds the bound zero and this unchanged over a look at the
    /// total knows that nobody held anything back from it.
    widenings: AtomicUsize,
    /// The live bytes that must not be exceeded; `usize::MAX` for no limit.
    hard_limit: AtomicUsize,
    /// What triggers watch beside live bytes; see [`Watched`]. Written by triggers.
    watched: AtomicUsize,
}

/// What the armed watermarks watch beside live bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched(usize);

impl Watched {
    const BLOCKS: usize = 1;
    const TRAFFIC: usize = 2;

    pub(crate) fn new(blocks: bool, traffic: bool) -> Self {
        Self((usize::from(blocks) * Self::BLOCKS) | (usize::from(traffic) * Self::TRAFFIC))
    }

    /// Live blocks: what is pending of them is published with the bytes.
    #[inline]
    pub(crate) fn blocks(self) -> bool {
        self.0 & Self::BLOCKS != 0
    }

    /// What is allocated, which balanced traffic never publishes: every look has to consult.
    #[inline]
    pub(crate) fn traffic(self) -> bool {
        self.0 & Self::TRAFFIC != 0
    }
}

impl Terms {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                threshold: AtomicUsize::new(DEFAULT_THRESHOLD),
                error_bound: AtomicUsize::new(0),
                widenings: AtomicUsize::new(0),
                hard_limit: AtomicUsize::new(usize::MAX),
                watched: AtomicUsize::new(0),
            }
        }
    }

    /// Returns what is watched beside live bytes.
    #[inline]
    pub(crate) fn watched(&self) -> Watched {
        Watched(self.watched.load(Relaxed))
    }

    /// Returns the threshold for shards that look from now on, in bytes, at least 1.
    #[inline]
    pub(crate) fn threshold(&self) -> usize {
        self.threshold.load(Relaxed)
    }

    /// Sets it; `threshold` is from 1 to [`MAX_THRESHOLD`].
    pub(crate) fn set_threshold(&self, threshold: usize) {
        self.threshold.store(threshold, Relaxed);
    }

    /// Returns the bytes by which the published total may be off.
    pub(crate) fn error_bound(&self) -> usize {
        self.error_bound.load(Acquire)
    }

    /// Returns the error bound, ordered with every change of it.
    pub(crate) fn latest_error_bound(&self) -> usize {
        self.error_bound.fetch_add(0, AcqRel)
    }

    /// Returns the live bytes that must not be exceeded; `usize::MAX` for no limit.
    #[inline]
    pub(crate) fn hard_limit(&self) -> usize {
        self.hard_limit.load(Relaxed)
    }

    /// Replaces the hard limit.
    pub(crate) fn swap_hard_limit(&self, bytes: usize) -> usize {
        self.hard_limit.swap(bytes, AcqRel)
    }

    /// Adds to the error bound, before a shard holds back more.
    pub(crate) fn widen_bound(&self, by: usize) {
        if by != 0 {
            self.error_bound.fetch_add(by, AcqRel);
            self.widenings.fetch_add(1, Release);
        }
    }

    /// Does the same if the bound is at most `most` before; returns whether it was.
    pub(crate) fn widen_bound_from(&self, most: usize, by: usize) -> bool {
        let widened = self
            .error_bound
            .fetch_update(AcqRel, Relaxed, |bound| {
                (bound <= most).then(|| bound.wrapping_add(by))
            })
            .is_ok();
        if widened {
            self.widenings.fetch_add(1, Release);
        }
        widened
    }

    /// Takes off the error bound, after a shard has come to hold back less.
    pub(crate) fn narrow_bound(&self, by: usize) {
        if by != 0 {
            self.error_bound.fetch_sub(by, AcqRel);
        }
    }

    /// Returns how often the bound has widened.
    pub(crate) fn widenings(&self) -> usize {
        self.widenings.load(Acquire)
    }

    pub(crate) fn set_watched(&self, watched: Watched) {
        self.watched.store(watched.0, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{DEFAULT_THRESHOLD, MAX_THRESHOLD, Terms};

    #[test]
    fn thresholds_are_16_kib_unless_set_and_at_most_1_gib_or_128_kib() {
        assert_eq!(DEFAULT_THRESHOLD, 16_384);
        let most = [131_072, 1_073_741_824][usize::from(usize::BITS >= 64)];
        assert_eq!(MAX_THRESHOLD, most);
    }

    #[test]
    fn every_widening_of_the_bound_shows_and_nothing_else() {
        let terms = Terms::new();
        let at_first = terms.widenings();
        for widened in 1..4 {
            terms.widen_bound(100);
            terms.widen_bound(0);
            terms.narrow_bound(40);
            assert_eq!(terms.error_bound(), 60 * widened);
            assert_eq!(terms.widenings() - at_first, widened);
        }
    }
}
