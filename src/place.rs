//! A place: one thread's part of a [`Counter`](crate::Counter), a shard with its room beside it.
//!
//! # How it differs from the heap's way
//!
//! The process's account keeps a thread's room in the thread and takes its shard back when it
//! ends. A counter has neither: there may be thousands, so a thread finds its place through
//! [`ThreadLocal`](thread_local::ThreadLocal), which never says that a thread has ended and later
//! gives the place, as it stands, to a new one.
//!
//! So the place names its owner. A thread that finds another's name *takes the place over*: it
//! publishes what the ended thread left pending, remembers the counters as it found them, and
//! goes on from there. Until then what was left stays pending, still in every exact sum and still
//! inside the error bound, which reckons with every place.
//!
//! # Who writes, who reads
//!
//! Only the owner writes, and nobody else reads the room or the name. They are atomics because the
//! place as a whole is shared with threads that sum, and are used like plain words. `ThreadLocal`
//! passes places on under a lock, which orders the old owner's writes before the new one's (model:
//! `a_place_is_taken_over_with_what_its_last_owner_left_pending`).

use crate::ledger::{Attention, Ledger};
use crate::operation::Operation;
use crate::room::Room;
use crate::shard::Shard;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicUsize};
use crate::terms::MAX_THRESHOLD;
use crate::totals::Totals;

/// Stands for a thread; no two threads that own places have the same, dead or alive. 0 is nobody.
pub(crate) type Name = usize;

/// See the module.
#[derive(Debug)]
pub(crate) struct Place {
    shard: Shard,
    /// Bytes that may still pass in each direction before the owner has to look. Less than two
    /// thresholds, so half a word will do, and the whole is no more than two cache lines.
    allocate: AtomicU32,
    deallocate: AtomicU32,
    owner: AtomicUsize,
}

const _: () = assert!(2 * MAX_THRESHOLD <= u32::MAX as usize);

// With its flag in `thread_local`'s table, padded, the 256 bytes that the docs of `Counter` say.
#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = assert!(size_of::<Place>() == 128);

impl Place {
    /// Returns a place that nobody owns, with nothing counted.
    pub(crate) fn new() -> Self {
        Self {
            shard: Shard::new(),
            allocate: AtomicU32::new(0),
            deallocate: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
        }
    }

    /// Returns the counters, for who sums.
    pub(crate) fn shard(&self) -> &Shard {
        &self.shard
    }

    #[inline(always)]
    pub(crate) fn is_owned_by(&self, thread: Name) -> bool {
        self.owner.load(Relaxed) == thread
    }

    /// Counts an operation if there is room for it; when it returns `false`,
    /// [`count_and_look`](Self::count_and_look) must follow. Owner only.
    #[inline(always)]
    pub(crate) fn count(&self, operation: Operation, bytes: usize) -> bool {
        let room = if operation.takes_back() {
            &self.deallocate
        } else {
            &self.allocate
        };
        // A block of no bytes takes up room as well, since blocks are held back by it.
        let taken = bytes.max(1);
        let (left, missing) = (room.load(Relaxed) as usize).overflowing_sub(taken);
        if missing {
            return false;
        }
        // No more than it was, so it fits.
        room.store(left as u32, Relaxed);
        self.shard.count(operation, bytes);
        true
    }

    /// Counts an operation for which there was no room, and publishes if enough is pending.
    /// Owner only.
    pub(crate) fn count_and_look(
        &self,
        ledger: &Ledger,
        operation: Operation,
        bytes: usize,
    ) -> Attention {
        self.shard.count(operation, bytes);
        if ledger.is_large(&self.shard, bytes) {
            self.make_room(Room::around(0, self.shard.threshold()));
            return ledger.publish_large(&self.shard);
        }
        ledger.settle(&self.shard, bytes, |room| self.make_room(room))
    }

    /// Counts an operation and publishes it at once. Owner only, of a place under exact counting.
    #[inline(always)]
    pub(crate) fn count_exact(
        &self,
        ledger: &Ledger,
        operation: Operation,
        bytes: usize,
    ) -> Attention {
        ledger.publish_one(&self.shard, operation, bytes)
    }

    /// Publishes what is pending and comes under the ledger's threshold. Owner only.
    pub(crate) fn flush(&self, ledger: &Ledger) -> Attention {
        self.adopt(ledger.flush(&self.shard))
    }

    /// Makes `thread` the owner of a place that was nobody's, or of a thread that has ended: one
    /// that counts in batches.
    pub(crate) fn take_over(&self, ledger: &Ledger, thread: Name) -> Attention {
        let attention = if self.is_owned_by(0) {
            self.make_room(ledger.admit(&self.shard, ledger.terms.threshold()));
            Attention::None
        } else {
            self.shard.note_found();
            self.flush(ledger)
        };
        self.owner.store(thread, Relaxed);
        attention
    }

    /// Makes `thread` the owner, as [`take_over`](Self::take_over) does, of a place under exact
    /// counting: under a threshold of one, which adds nothing to the error bound, and never with
    /// anything pending.
    pub(crate) fn take_over_exact(&self, ledger: &Ledger, thread: Name) {
        if self.is_owned_by(0) {
            ledger.admit(&self.shard, 1);
        } else {
            self.shard.note_found();
        }
        self.owner.store(thread, Relaxed);
    }

    /// Returns what has been counted since the owner came. Owner only.
    pub(crate) fn owner_totals(&self) -> Totals {
        self.shard.owner_totals()
    }

    /// Takes over the room that a look has left, and hands up what it has set off.
    fn adopt(&self, (room, attention): (Room, Attention)) -> Attention {
        self.make_room(room);
        attention
    }

    fn make_room(&self, room: Room) {
        let (allocate, deallocate) = room.into_parts();
        self.allocate.store(allocate as u32, Relaxed);
        self.deallocate.store(deallocate as u32, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Place;
    use crate::ledger::{Attention, Ledger};
    use crate::operation::Operation::{Allocate, Deallocate};
    use crate::totals::Totals;

    #[test]
    fn an_operation_is_counted_where_there_is_room_and_only_then() {
        let (ledger, place) = (Ledger::new(), Place::new());
        ledger.terms.set_threshold(64);
        assert!(!place.count(Allocate, 1), "a place that nobody owns");
        assert_eq!(place.take_over(&ledger, 7), Attention::None);
        for operation in [Allocate, Deallocate] {
            assert!(place.count(operation, 62), "62 bytes of 63");
            assert!(!place.count(operation, 2), "2 bytes of 1");
            assert!(place.count(operation, 1), "and what is left");
        }
        let totals = place.owner_totals();
        assert_eq!((totals.bytes_allocated, totals.allocations), (63, 2));
        assert_eq!((totals.bytes_deallocated, totals.deallocations), (63, 2));
    }

    #[test]
    fn who_takes_a_place_over_publishes_what_was_left_and_begins_at_zero() {
        let (ledger, place) = (Ledger::new(), Place::new());
        ledger.terms.set_threshold(64);
        for (before, owner, published) in [(0, 7, 0), (7, 8, 40), (8, 7, 80)] {
            assert!(place.is_owned_by(before) && !place.is_owned_by(owner));
            assert_eq!(place.take_over(&ledger, owner), Attention::None);
            assert!(place.is_owned_by(owner) && !place.is_owned_by(before));
            assert_eq!(ledger.published.live_bytes(), published);
            assert_eq!(ledger.terms.error_bound(), 63, "one place");
            assert_eq!(place.owner_totals(), Totals::default());
            assert!(place.count(Allocate, 40), "and is pending");
        }
    }

    #[test]
    fn who_takes_a_place_over_in_exact_counting_begins_at_zero_too() {
        let (ledger, place) = (Ledger::new(), Place::new());
        for (owner, published) in [(7, 40), (8, 80)] {
            place.take_over_exact(&ledger, owner);
            assert!(place.is_owned_by(owner) && !place.is_owned_by(0));
            assert_eq!(place.owner_totals(), Totals::default());
            let attention = place.count_exact(&ledger, Allocate, 40);
            assert_eq!(attention, Attention::None);
            assert_eq!(ledger.published.live_bytes(), published);
            assert_eq!(ledger.terms.error_bound(), 0, "nothing is held back");
        }
    }
}
