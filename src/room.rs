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
//! > `threshold − 1 − max(pending, 0)` bytes may still be allocated, `threshold − 1 + min(pending, 0)`
//! > deallocated.
//!
//! Both directions are met for any mixture of operations, since each room reckons with the other unused. What is
//! pending the other way is no credit: so a block of the threshold or more never fits, and is published at once
//! ([`ledger`](crate::ledger)).
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
//! Room is less than a threshold and never runs below `−1 − isize::MAX`, since a request is at most
//! `isize::MAX` bytes (`Layout`'s own bound): a signed word holds both.

use std::cell::Cell;

use crate::operation::Operation;

/// The bytes that may pass in each direction before the owner has to look; below zero once it has to.
///
/// With [`none`](Self::none) the next operation looks, even one of no bytes.
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
            allocate: Cell::new(most.wrapping_sub(if pending > 0 { pending } else { 0 })),
            deallocate: Cell::new(most.wrapping_add(if pending < 0 { pending } else { 0 })),
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

    /// Returns the bytes that may be allocated and that may be deallocated, for who keeps room
    /// elsewhere and asks by other means whether there is any.
    pub(crate) fn into_parts(self) -> (usize, usize) {
        let of = |cell: Cell<isize>| cell.into_inner().max(0).cast_unsigned();
        (of(self.allocate), of(self.deallocate))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::Room;
    use crate::operation::Operation;
    use crate::terms::MAX_THRESHOLD;

    /// The largest request there is (`Layout`).
    const LARGEST: usize = isize::MAX as usize;

    /// `MAX_THRESHOLD` where pointers have 32 bits.
    const MAX_THRESHOLD_32: i64 = 1 << 17;

    fn thresholds() -> impl Strategy<Value = usize> {
        prop_oneof![1..=64_usize, 1..=MAX_THRESHOLD, Just(MAX_THRESHOLD)]
    }

    /// A threshold, and bytes that may be pending under it.
    fn inside() -> impl Strategy<Value = (usize, isize)> {
        thresholds().prop_flat_map(|threshold| {
            let most = threshold.cast_signed() - 1;
            (
                Just(threshold),
                prop_oneof![-most..=most, Just(most), Just(-most)],
            )
        })
    }

    fn operations() -> impl Strategy<Value = Operation> {
        prop_oneof![
            Just(Operation::Allocate),
            Just(Operation::Deallocate),
            Just(Operation::Grow),
            Just(Operation::Shrink),
        ]
    }

    #[test]
    fn a_room_and_the_largest_request_fit_a_signed_word_of_either_width() {
        assert!(
            i32::try_from(2 * (MAX_THRESHOLD_32 - 1)).is_ok(),
            "the most"
        );
        assert!(isize::try_from(2 * (MAX_THRESHOLD - 1)).is_ok(), "the most");
        let (largest, none) = (i32::MAX, -1_i32);
        assert_eq!(none.checked_sub(largest), Some(i32::MIN), "the least");
        assert_eq!((-1_isize).checked_sub(isize::MAX), Some(isize::MIN));
    }

    #[test]
    fn without_room_even_an_operation_of_no_bytes_looks() {
        for operation in [Operation::Allocate, Operation::Deallocate] {
            assert!(!Room::none().take(operation, 0), "{operation:?}");
            assert!(!Room::none().take(operation, LARGEST), "{operation:?}");
        }
    }

    #[test]
    fn the_parts_of_a_room_are_what_may_pass_in_each_direction() {
        for (pending, parts) in [(0, (63, 63)), (5, (58, 63)), (-5, (63, 58)), (63, (0, 63))] {
            assert_eq!(Room::around(pending, 64).into_parts(), parts, "{pending}");
        }
        assert_eq!(Room::none().into_parts(), (0, 0), "none");
    }

    proptest! {
        /// Whatever fits leaves pending inside the threshold, and a single operation that would not does
        /// not fit.
        #[test]
        fn what_fits_stays_inside_the_threshold(
            (threshold, start) in inside(),
            operations in vec((operations(), prop_oneof![0..=64_usize, 0..=MAX_THRESHOLD]), 0..200),
        ) {
            let room = Room::around(start, threshold);
            let (mut pending, mut taken) = (start as i128, [0_i128; 2]);
            for (operation, bytes) in operations {
                let back = operation.takes_back();
                let way = if back { -1 } else { 1 };
                let side = &mut taken[usize::from(back)];
                *side += bytes as i128;
                let most = threshold as i128 - 1 - (way * start as i128).max(0);
                let fits = room.take(operation, bytes);
                prop_assert_eq!(fits, *side <= most, "{} of {} bytes taken", side, most);
                if !fits {
                    break;
                }
                pending += way * bytes as i128;
                prop_assert!(pending.abs() < threshold as i128, "{} pending", pending);
            }
        }

        /// A request up to the largest takes room below zero and not round to above it.
        #[test]
        fn a_request_past_the_room_never_fits(
            (threshold, pending) in inside(),
            operation in operations(),
            bytes in prop_oneof![MAX_THRESHOLD..=LARGEST, Just(LARGEST)],
        ) {
            let room = Room::around(pending, threshold);
            prop_assert!(!room.take(operation, bytes), "{} bytes", bytes);
        }
    }
}
