//! The arithmetic of a shard, at the wrap of its counters above all.

use proptest::collection::vec;
use proptest::prelude::*;

use super::Shard;
use crate::operation::{Net, Operation};
use crate::sync::Ordering::Relaxed;
use crate::totals::Totals;

/// Counters from 0, from close below the wrap, so that a few operations pass it at any width, and from
/// anywhere.
fn counters() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), usize::MAX - 5_000..=usize::MAX, any::<usize>()]
}

/// A shard as former owners may have left it: five counters, all published.
fn shards() -> impl Strategy<Value = Shard> {
    [(); 5].map(|()| counters()).prop_map(|counters| {
        let shard = Shard::new();
        let fields = [
            &shard.bytes_allocated,
            &shard.bytes_deallocated,
            &shard.allocations,
            &shard.deallocations,
            &shard.reallocations,
        ];
        for (field, counter) in fields.into_iter().zip(counters) {
            field.store(counter, Relaxed);
        }
        shard.note_published(shard.net());
        shard.note_found();
        shard
    })
}

fn operations() -> impl Strategy<Value = Vec<(Operation, usize)>> {
    let operation = prop_oneof![
        Just(Operation::Allocate),
        Just(Operation::Deallocate),
        Just(Operation::Grow),
        Just(Operation::Shrink),
    ];
    vec((operation, 0..=1_000_usize), 0..100)
}

/// The same in numbers that do not wrap.
#[derive(Default)]
struct Reference {
    allocated: i128,
    deallocated: i128,
    allocations: i128,
    deallocations: i128,
    reallocations: i128,
}

impl Reference {
    fn count(&mut self, operation: Operation, bytes: usize) {
        let bytes = bytes as i128;
        match operation {
            Operation::Allocate | Operation::Grow => self.allocated += bytes,
            Operation::Deallocate | Operation::Shrink => self.deallocated += bytes,
        }
        match operation {
            Operation::Allocate => self.allocations += 1,
            Operation::Deallocate => self.deallocations += 1,
            Operation::Grow | Operation::Shrink => self.reallocations += 1,
        }
    }

    fn pending(&self) -> (i128, i128) {
        (
            self.allocated - self.deallocated,
            self.allocations - self.deallocations,
        )
    }

    fn totals(&self) -> [i128; 5] {
        [
            self.allocated,
            self.deallocated,
            self.allocations,
            self.deallocations,
            self.reallocations,
        ]
    }
}

fn pending(shard: &Shard) -> (i128, i128) {
    let Net { bytes, blocks } = shard.net() - shard.published();
    (bytes as i128, blocks as i128)
}

fn fields(totals: Totals) -> [i128; 5] {
    [
        totals.bytes_allocated,
        totals.bytes_deallocated,
        totals.allocations,
        totals.deallocations,
        totals.reallocations,
    ]
    .map(|field| field as i128)
}

proptest! {
    /// Pending and the owner's totals are differences, and right wherever the counters stand.
    #[test]
    fn pending_is_right_across_the_wrap_of_every_counter(
        shard in shards(),
        operations in operations(),
    ) {
        let mut reference = Reference::default();
        for (operation, bytes) in operations {
            shard.count(operation, bytes);
            reference.count(operation, bytes);
            prop_assert_eq!(pending(&shard), reference.pending());
            prop_assert_eq!(fields(shard.owner_totals()), reference.totals());
        }
    }

    /// Publishing now and then loses nothing: what was pending each time adds up to what was counted.
    #[test]
    fn what_is_published_in_parts_adds_up_across_the_wrap(
        shard in shards(),
        parts in vec(operations(), 0..5),
    ) {
        let (mut reference, mut published) = (Reference::default(), (0, 0));
        for operations in parts {
            for (operation, bytes) in operations {
                shard.count(operation, bytes);
                reference.count(operation, bytes);
            }
            let (bytes, blocks) = pending(&shard);
            published = (published.0 + bytes, published.1 + blocks);
            shard.note_published(shard.net());
            prop_assert_eq!(pending(&shard), (0, 0), "all was published");
        }
        prop_assert_eq!(published, reference.pending());
    }

    /// Counted by one thread or by several, an operation does the same to the counters.
    #[test]
    fn shared_counting_counts_like_the_owner(operations in operations()) {
        let (own, shared) = (Shard::new(), Shard::new());
        for &(operation, bytes) in &operations {
            own.count(operation, bytes);
            shared.count_shared(operation, bytes);
        }
        prop_assert_eq!(own.owner_totals(), shared.owner_totals());
        prop_assert_eq!(shared.publishes(), operations.len());
    }
}
