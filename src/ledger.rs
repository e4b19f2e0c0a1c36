//! The ledger: the published totals, the threshold, and what a publish does.
//!
//! # Publishing
//!
//! Threads count into their shards and add what is pending to the shared totals once
//! it amounts to a threshold, bytes with one `fetch_add` and blocks with another; that cache line is the
//! only one that several threads write to. When a shard's slow path looks ([`Ledger::settle`]), *bytes* are due
//! when
//!
//! * what is pending amounts to the threshold, in either direction;
//! * the operation itself was of the threshold or more, so that a large block is never
//!   held back by a small debt in the other direction (a shorter path of its own,
//!   [`Ledger::publish_large`]);
//! * the operation was small and pending bytes are past three quarters of the threshold. Nothing
//!   would be due yet, but the room left on that side would be used up again at once: a loop that
//!   frees what it allocates would look every few operations for as long as it runs.
//!
//! and *blocks* when
//!
//! * what is pending amounts to a sixteenth of the threshold (no allocator hands out less
//!   than 16 bytes, so blocks alone never make a shard publish more often than bytes
//!   do, unless it trades few large blocks for many small ones);
//! * bytes are, and a trigger watches blocks. Otherwise they wait for their own turn, and a large block
//!   is published with one `fetch_add`, not two for a total that nobody reads.
//!
//! The shard's own state is settled before the shared totals change, so whatever the
//! publish sets off finds nothing left to publish twice.
//!
//! How the limits of triggers are decided stands in `limits`.
//!
//! Memory orderings are argued where the atomics are: [`published`](crate::published), [`terms`](crate::terms),
//! [`shard`](crate::shard).

mod limits;

use crossbeam_utils::CachePadded;

use crate::operation::{Net, Operation};
use crate::published::Published;
use crate::registry::Registry;
use crate::room::Room;
use crate::shard::Shard;
use crate::sync::{Mutex, const_fn};
use crate::terms::Terms;
use crate::watermark::Watermark;

/// Watermarks in a slab: enough for a soft and a hard limit on bytes and on blocks.
const WATERMARKS: usize = if cfg!(loom) { 1 } else { 4 };

/// Whether a publish came near enough to a limit that [`Ledger::consult`] must decide.
///
/// Handed up to where the shards are known and the caller's own state is settled.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attention {
    None,
    Needed,
}

impl Attention {
    #[inline]
    pub(crate) fn if_any(needed: bool) -> Self {
        if needed { Self::Needed } else { Self::None }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self::if_any(self == Self::Needed || other == Self::Needed)
    }
}

/// The published totals of one account and the terms under which its shards publish.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) published: Published,
    pub(crate) terms: CachePadded<Terms>,
    watermarks: Registry<Watermark, WATERMARKS>,
    /// Held by triggers while they change which watermarks there are. Publishing threads never take it.
    watching: Mutex<()>,
    /// Held while the hard limit is set or taken away.
    pub(crate) setting: Mutex<()>,
}

impl Ledger {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                published: Published::new(),
                terms: CachePadded::new(Terms::new()),
                watermarks: Registry::new(),
                watching: Mutex::new(()),
                setting: Mutex::new(()),
            }
        }
    }

    /// Puts a shard that was just claimed, and has nothing pending, under `threshold`, or a lower one near
    /// the hard limit.
    pub(crate) fn admit(&self, shard: &Shard, threshold: usize) -> Room {
        let threshold = self.widen_to(threshold, 1);
        shard.note_found();
        shard.set_threshold(threshold);
        Room::around(0, threshold)
    }

    /// Publishes what is pending in a shard whose owner leaves, and takes it off the bound.
    pub(crate) fn dismiss(&self, shard: &Shard) -> Attention {
        let attention = self.publish(shard);
        self.terms.narrow_bound(shard.threshold().wrapping_sub(1));
        shard.set_threshold(0);
        attention
    }

    /// Returns whether an operation of `bytes` that found no room is so large that all pending bytes are to be published
    /// with it, whatever they come to ([`publish_large`](Self::publish_large)): there is room for all of the
    /// threshold then.
    #[inline(always)]
    pub(crate) fn is_large(&self, shard: &Shard, bytes: usize) -> bool {
        let threshold = shard.threshold();
        // Under a new threshold, or near a hard limit, the shard must look.
        bytes >= threshold
            && threshold == self.terms.threshold()
            && self.terms.hard_limit() == usize::MAX
    }

    /// Publishes all pending bytes, after an operation of the threshold or more.
    #[inline(never)]
    pub(crate) fn publish_large(&self, shard: &Shard) -> Attention {
        let mut due = shard.net() - shard.published();
        if !self.are_blocks_due(due.blocks, shard.threshold(), true) {
            due.blocks = 0;
        }
        self.publish_due(shard, due)
    }

    /// Looks at a shard after an operation of `bytes` that found no room: has room made under the present threshold,
    /// and publishes what is due.
    #[inline(always)]
    pub(crate) fn settle(
        &self,
        shard: &Shard,
        bytes: usize,
        make_room: impl Fn(Room),
    ) -> Attention {
        let threshold = shard.threshold();
        if threshold != self.terms.threshold() || self.terms.hard_limit() != usize::MAX {
            let (room, attention) = self.settle_anew(shard, Some(bytes));
            make_room(room);
            return attention;
        }
        let (due, left) = self.due(shard, bytes, threshold);
        make_room(Room::around(left, threshold));
        self.publish_due(shard, due)
    }

    /// Brings a shard under the present threshold, which may be another than before, or may have to be for the hard limit's
    /// sake, and publishes what is due after an operation of `bytes`; `None` for all that is pending.
    #[cold]
    #[inline(never)]
    fn settle_anew(&self, shard: &Shard, bytes: Option<usize>) -> (Room, Attention) {
        let before = shard.threshold();
        let threshold = self.widen_to(self.terms.threshold(), before);
        let (due, left) = match bytes {
            Some(bytes) => self.due(shard, bytes, threshold),
            None => (shard.net() - shard.published(), 0),
        };
        let attention = self.publish_due(shard, due);
        self.narrow_to(shard, threshold, before);
        if self.is_within_limit() {
            return (Room::around(left, threshold), attention);
        }
        (Room::around(0, 1), attention.or(self.tighten(shard)))
    }

    /// Returns what of a shard's pending bytes and blocks is to be published when an operation of `bytes` has looked,
    /// and the pending bytes that are left.
    #[inline(always)]
    fn due(&self, shard: &Shard, bytes: usize, threshold: usize) -> (Net, isize) {
        let pending = shard.net() - shard.published();
        let held_back = threshold.wrapping_sub(1);
        let quarter = held_back / 4;
        let crowded = if bytes < quarter { quarter } else { 0 };
        let bytes_due =
            bytes > held_back || pending.bytes.unsigned_abs() > held_back.wrapping_sub(crowded);
        let blocks_due = self.are_blocks_due(pending.blocks, threshold, bytes_due);
        let due = Net {
            bytes: if bytes_due { pending.bytes } else { 0 },
            blocks: if blocks_due { pending.blocks } else { 0 },
        };
        (due, pending.bytes.wrapping_sub(due.bytes))
    }

    #[inline(always)]
    fn are_blocks_due(&self, pending: isize, threshold: usize, bytes_due: bool) -> bool {
        pending.unsigned_abs() > threshold.wrapping_sub(1) / 16
            || (bytes_due && self.terms.watched().blocks())
    }

    /// Publishes what is pending, and makes room under the present threshold.
    pub(crate) fn flush(&self, shard: &Shard) -> (Room, Attention) {
        self.settle_anew(shard, None)
    }

    /// Publishes what is pending, and takes the shard off the bound: under a threshold of one it holds
    /// nothing back.
    pub(crate) fn tighten(&self, shard: &Shard) -> Attention {
        let attention = self.publish(shard);
        self.narrow_to(shard, 1, shard.threshold());
        attention
    }

    /// Widens the bound for a shard that goes from the threshold `before` to `threshold`, and returns the
    /// one it may go to. To go down it has to publish first, then [`narrow_to`](Self::narrow_to).
    #[inline]
    fn widen_to(&self, threshold: usize, before: usize) -> usize {
        if threshold == before && self.terms.hard_limit() == usize::MAX {
            return threshold;
        }
        self.widen_within_limit(threshold, before)
    }

    #[inline]
    fn narrow_to(&self, shard: &Shard, threshold: usize, before: usize) {
        if threshold != before {
            shard.set_threshold(threshold);
            self.terms.narrow_bound(before.saturating_sub(threshold));
        }
    }

    /// Publishes everything pending.
    #[inline(never)]
    pub(crate) fn publish(&self, shard: &Shard) -> Attention {
        self.publish_due(shard, shard.net() - shard.published())
    }

    #[inline(always)]
    fn publish_due(&self, shard: &Shard, due: Net) -> Attention {
        if due == Net::default() {
            return Attention::if_any(self.terms.watched().traffic());
        }
        self.publish_part(shard, due)
    }

    /// Adds a part of what is pending to the totals.
    #[inline]
    fn publish_part(&self, shard: &Shard, part: Net) -> Attention {
        shard.note_published(shard.published() + part);
        shard.note_publish();
        self.add(part)
    }

    /// Notes what the owner of a shard under exact counting has not kept up: everything is published.
    pub(crate) fn note_all_published(shard: &Shard) {
        shard.note_published(shard.net());
    }

    /// Counts an operation on a shard under exact counting and publishes it. With never anything
    /// pending, what the shard has published is not kept up; its owner notes it all when it goes
    /// over to batches or leaves.
    #[inline(always)]
    pub(crate) fn publish_one(
        &self,
        shard: &Shard,
        operation: Operation,
        bytes: usize,
    ) -> Attention {
        shard.count(operation, bytes);
        shard.note_publish();
        let error_bound = || self.terms.error_bound();
        Attention::if_any(self.published.add_one(operation, bytes, error_bound))
    }

    /// Counts an operation that no thread's shard holds, and publishes it.
    pub(crate) fn publish_shared(
        &self,
        shared: &Shard,
        operation: Operation,
        bytes: usize,
    ) -> Attention {
        shared.count_shared(operation, bytes);
        self.add(Net::of(operation, bytes))
    }

    /// Adds to the totals.
    #[inline]
    pub(crate) fn add(&self, net: Net) -> Attention {
        Attention::if_any(self.published.add(net, || self.terms.error_bound()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
