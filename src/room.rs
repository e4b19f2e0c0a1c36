//! Room: how far a thread may run on without telling anybody.
//!
//! What a shard has counted and not published is *pending*:
//!
//! > pending = allocated − deallocated − published
//!
//! and `|pending| < threshold` holds whenever the owner is not inside the slow path. The fast path does
//! not compute it. It takes the operation's bytes off the [`Room`] for its direction, set so that even if
//! every operation until then goes the same way, pending stays inside the threshold:
//!
//! > `threshold − 1 − pending` bytes may still be allocated, `threshold − 1 + pending` deallocated.
//!
//! Both directions are met for any mixture of operations, since each room reckons with the other unused.
//! When room runs out the owner looks: if pending is still inside the threshold, room is made anew around
//! it and nothing is published. So a loop that frees what it allocates looks once per threshold of traffic
//! and never writes to the shared line.
//!
//! Room is the owner's alone, so it lies in plain cells beside the thread's pointer to its shard, and its
//! start, none at all, also stands for "no shard yet": one subtraction and one branch cover everything
//! unusual.
//!
//! # Range
//!
//! Room is at most two thresholds and never runs below `−1 − isize::MAX`, since a request is at most
//! `isize::MAX` bytes (`Layout`'s own bound): a signed word holds both.

use std::cell::Cell;

use crate::operation::Operation;

/// The bytes that may pass in each direction before the owner has to look; below zero once it has to.
///
/// `Default` is none: the next operation looks, even one of no bytes.
#[derive(Debug)]
pub(crate) struct Room {
    allocate: Cell<isize>,
    deallocate: Cell<isize>,
}

impl Room {
    pub(crate) const fn none() -> Self {
        Self {
            allocate: Cell::new(-1),
            deallocate: Cell::new(-1),
        }
    }

    /// Returns the room around `pending` bytes, which must be inside `threshold`.
    pub(crate) const fn around(pending: isize, threshold: usize) -> Self {
        let most = threshold.wrapping_sub(1).cast_signed();
        Self {
            allocate: Cell::new(most.wrapping_sub(pending)),
            deallocate: Cell::new(most.wrapping_add(pending)),
        }
    }

    /// Takes an operation's bytes off; `false` when they did not fit, and then the room has to be
    /// made anew before it is used again.
    #[inline(always)]
    pub(crate) fn take(&self, operation: Operation, bytes: usize) -> bool {
        let room = if operation.takes_back() {
            &self.deallocate
        } else {
            &self.allocate
        };
        let left = room.get().wrapping_sub_unsigned(bytes);
        room.set(left);
        left >= 0
    }

    pub(crate) fn set(&self, to: Self) {
        self.allocate.set(to.allocate.get());
        self.deallocate.set(to.deallocate.get());
    }
}
