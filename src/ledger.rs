//! The ledger: the published totals, the threshold, and what a publish does.
//!
//! # Publishing
//!
//! Threads count into their shards and add what is pending to the shared totals once
//! it amounts to a threshold, with one `fetch_add`; that cache line is the only one
//! that several threads write to. Three things make a shard publish when its slow
//! path looks ([`Ledger::settle`]):
//!
//! * pending bytes amount to the threshold, in either direction;
//! * the operation itself was of the threshold or more, so that a large block is never
//!   held back by a small debt in the other direction;
//! * pending blocks amount to a sixteenth of the threshold (no allocator hands out less
//!   than 16 bytes, so blocks alone never make a shard publish more often than bytes
//!   do, unless it trades few large blocks for many small ones).
//!
//! The shard's own state is settled before the shared totals change, so whatever the
//! publish sets off finds nothing left to publish twice.
//!
//! # The error bound
//!
//! A shard under threshold `t` holds back at most `t − 1` bytes in either direction, so
//! the published total is off by at most the sum of `t − 1` over the shards in use:
//! that sum is kept ([`Ledger::error_bound`]) and moves only when a shard changes
//! hands or threshold. It grows before a shard's room widens and shrinks after it
//! has narrowed, so it is never too small (model:
//! `a_threshold_change_under_load_keeps_the_bound`).
//!
//! # The peak
//!
//! A publish that changes the total adds first and raises the peak second, to the higher
//! of the totals before and after. In between, a reader could see the total but not the
//! peak; so readers of the total raise the peak too, before they return what they saw.
//! Hence: no figure that [`Ledger::live_bytes`] has returned is above any peak read after
//! it, and once publishes are done the peak is the highest total there was (model:
//! `the_peak_is_never_below_a_live_figure_read_before_it`).
//!
//! # Memory orderings
//!
//! All `Relaxed`. Each figure here is one atomic, so coherence alone gives every claim
//! about it: an add is seen by everything ordered after it, and the peak, which only
//! grows between resets, is never seen to shrink. Nothing is published *through* these
//! atomics; the exact sum has its own argument in [`Shard`].

use crossbeam_utils::CachePadded;

use crate::shard::{Net, Operation, Room, Shard};
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicUsize, const_fn};

/// 16 KiB: at 64 bytes a block, one shared write in 256 operations at most, a cost that
/// disappears in the operations themselves; and with a hundred threads the published
/// total is still within 1.6 MiB.
pub(crate) const DEFAULT_THRESHOLD: usize = 16 * 1024;

/// The largest threshold, in bytes: 1 GiB, or 128 KiB where pointers have 32 bits. It
/// keeps the error bound of a million threads (of 16,384 on 32 bits) far from the width
/// of a pointer, and two thresholds, the most room there is, inside a signed word.
pub(crate) const MAX_THRESHOLD: usize = if usize::BITS >= 64 { 1 << 30 } else { 1 << 17 };

/// A shared total in the top eighth of its range stands for a number below zero: bytes
/// freed by threads that have published, allocated by threads that have not. Error bounds
/// stay far below that eighth, and no process has seven eighths of its address space live.
const BELOW_ZERO: usize = usize::MAX / 8 * 7;

/// Returns the live figure that a shared total stands for.
const fn live(total: usize) -> usize {
    if total > BELOW_ZERO { 0 } else { total }
}

/// Pending blocks at which a shard under `threshold` publishes.
const fn block_threshold(threshold: usize) -> usize {
    if threshold < 16 { 1 } else { threshold / 16 }
}

/// What every publish writes to: one cache line.
#[derive(Debug)]
struct Published {
    /// Added to by publishes; read by anyone. Wraps below zero, see [`BELOW_ZERO`].
    bytes: AtomicUsize,
    blocks: AtomicUsize,
    /// The highest live bytes since the last reset. Raised by publishes and readers.
    peak: AtomicUsize,
}

/// What every look reads and hardly anything writes: another cache line.
#[derive(Debug)]
struct Terms {
    /// The threshold for shards that look from now on.
    threshold: AtomicUsize,
    /// Bytes by which the published total may be off.
    error_bound: AtomicUsize,
}

/// The published totals of one account and the terms under which its shards publish.
#[derive(Debug)]
pub(crate) struct Ledger {
    published: CachePadded<Published>,
    terms: CachePadded<Terms>,
}

impl Ledger {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                published: CachePadded::new(Published {
                    bytes: AtomicUsize::new(0),
                    blocks: AtomicUsize::new(0),
                    peak: AtomicUsize::new(0),
                }),
                terms: CachePadded::new(Terms {
                    threshold: AtomicUsize::new(DEFAULT_THRESHOLD),
                    error_bound: AtomicUsize::new(0),
                }),
            }
        }
    }

    /// Puts a shard that was just claimed, and has nothing pending, under `threshold`.
    pub(crate) fn admit(&self, shard: &Shard, threshold: usize) -> Room {
        self.widen_bound(threshold.wrapping_sub(1));
        shard.note_found();
        shard.set_threshold(threshold, 0)
    }

    /// Publishes what is pending in a shard whose owner leaves, and takes it off the bound.
    pub(crate) fn dismiss(&self, shard: &Shard) {
        self.publish(shard);
        self.narrow_bound(shard.threshold().wrapping_sub(1));
        shard.clear_threshold();
    }

    /// Looks at a shard after an operation of `bytes` that found no room: publishes if something is
    /// due, and makes room under the present threshold.
    pub(crate) fn settle(&self, shard: &Shard, bytes: usize) -> Room {
        let threshold = self.threshold();
        let pending = shard.pending();
        let due = pending.bytes.unsigned_abs() >= threshold
            || bytes >= threshold
            || pending.blocks.unsigned_abs() >= block_threshold(threshold);
        self.bring_under(shard, threshold, due)
    }

    /// Publishes what is pending, and makes room under `threshold`.
    pub(crate) fn flush(&self, shard: &Shard, threshold: usize) -> Room {
        self.bring_under(shard, threshold, true)
    }

    fn bring_under(&self, shard: &Shard, threshold: usize, publish: bool) -> Room {
        let before = shard.threshold();
        self.widen_bound(threshold.saturating_sub(before));
        if publish {
            self.publish(shard);
        }
        let room = shard.set_threshold(threshold, shard.pending().bytes);
        self.narrow_bound(before.saturating_sub(threshold));
        room
    }

    fn publish(&self, shard: &Shard) {
        let pending = shard.pending();
        if pending != Net::default() {
            shard.note_all_published();
            shard.note_publish();
            self.add(pending);
        }
    }

    /// Counts an operation on a shard under exact counting and publishes it. With never anything
    /// pending, what the shard has published is not kept up; its owner notes it all when it goes
    /// over to batches or leaves.
    #[inline]
    pub(crate) fn publish_one(&self, shard: &Shard, operation: Operation, bytes: usize) {
        shard.count(operation, bytes);
        shard.note_publish();
        self.add(Net::of(operation, bytes));
    }

    /// Counts an operation that no thread's shard holds, and publishes it.
    pub(crate) fn publish_shared(&self, shared: &Shard, operation: Operation, bytes: usize) {
        shared.count_shared(operation, bytes);
        self.add(Net::of(operation, bytes));
    }

    #[inline]
    fn add(&self, net: Net) {
        let published = &*self.published;
        if net.blocks != 0 {
            published
                .blocks
                .fetch_add(net.blocks.cast_unsigned(), Relaxed);
        }
        if net.bytes != 0 {
            let before = published
                .bytes
                .fetch_add(net.bytes.cast_unsigned(), Relaxed);
            let after = before.wrapping_add(net.bytes.cast_unsigned());
            self.raise_peak(live(before).max(live(after)));
        }
    }

    #[inline]
    fn raise_peak(&self, live: usize) {
        if live > self.published.peak.load(Relaxed) {
            self.published.peak.fetch_max(live, Relaxed);
        }
    }

    /// Returns the published live bytes, after making sure that the peak is no lower.
    #[inline]
    pub(crate) fn live_bytes(&self) -> usize {
        let live = live(self.published.bytes.load(Relaxed));
        self.raise_peak(live);
        live
    }

    /// Returns the highest published live bytes since the last reset.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.live_bytes().max(self.published.peak.load(Relaxed))
    }

    /// Forgets the peak; from now on it is the live bytes of now or what comes above them.
    /// A publish that is under way counts as coming after.
    pub(crate) fn reset_peak(&self) {
        self.published.peak.store(0, Relaxed);
    }

    /// Returns the threshold for shards that look from now on, in bytes, at least 1.
    #[inline]
    pub(crate) fn threshold(&self) -> usize {
        self.terms.threshold.load(Relaxed)
    }

    /// Sets it; `threshold` is from 1 to [`MAX_THRESHOLD`].
    pub(crate) fn set_threshold(&self, threshold: usize) {
        debug_assert!((1..=MAX_THRESHOLD).contains(&threshold));
        self.terms.threshold.store(threshold, Relaxed);
    }

    /// Returns the bytes by which the published total may be off.
    pub(crate) fn error_bound(&self) -> usize {
        self.terms.error_bound.load(Relaxed)
    }

    fn widen_bound(&self, by: usize) {
        if by != 0 {
            self.terms.error_bound.fetch_add(by, Relaxed);
        }
    }

    fn narrow_bound(&self, by: usize) {
        if by != 0 {
            self.terms.error_bound.fetch_sub(by, Relaxed);
        }
    }
}
