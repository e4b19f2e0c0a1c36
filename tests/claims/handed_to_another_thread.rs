//! Blocks that one thread allocates and another frees: no counter is clamped, so none drifts.

use std::sync::mpsc::sync_channel;
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, assert_within_bound, wait_until_alone};
use crate::EXACT;
use crate::support::block::Block;
use crate::support::claims;

claims![
    blocks_through_a_bounded_channel_are_exact,
    threads_that_free_more_than_they_allocate_are_exact,
    live_bytes_is_not_negative_when_frees_are_published_first,
];

fn blocks_through_a_bounded_channel_are_exact() {
    let start = heap().totals();
    let (sender, receiver) = sync_channel::<Block>(256);
    let (consumed, allocated_by_consumer) = thread::scope(|scope| {
        let producer = scope.spawn(move || {
            for n in 0..200_000 {
                sender.send(Block::new(n % 200 + 1)).unwrap();
            }
        });
        let consumer = scope.spawn(move || {
            let mut consumed = 0;
            for block in receiver {
                drop(block);
                consumed += 1;
                if consumed % 1000 == 0 {
                    let live = heap().live_bytes();
                    assert!(live < 1 << 30, "{live} bytes is a negative number");
                }
            }
            (consumed, heap().thread_totals().allocations)
        });
        producer.join().unwrap();
        consumer.join().unwrap()
    });
    assert_eq!(consumed, 200_000);
    assert!(allocated_by_consumer < 1000, "the consumer only frees");
    assert_exact();
    let change = heap().totals() - start;
    assert!(change.allocations >= 200_000, "{change:?}");
    assert!(
        change.net_bytes().unsigned_abs() < 16 * 1024,
        "what the channel and the runtime keep: {change:?}"
    );
}

fn threads_that_free_more_than_they_allocate_are_exact() {
    for _ in 0..20 {
        let mut heaps: Vec<Vec<Block>> = Vec::new();
        for _ in 0..4 {
            heaps.push((1..2000).map(Block::new).collect());
        }
        thread::scope(|scope| {
            for blocks in heaps {
                scope.spawn(move || drop(blocks));
            }
        });
        wait_until_alone();
        assert_exact();
    }
}

fn live_bytes_is_not_negative_when_frees_are_published_first() {
    // A thread keeps its allocations to itself while others publish that they were freed.
    let threshold = heap().threshold();
    let block = threshold / 16 - 1;
    let resting = heap().live_bytes();
    for _ in 0..50 {
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Block>(16);
            let freeing = scope.spawn(move || {
                for block in receiver {
                    drop(block);
                }
                heap().flush();
                let live = heap().live_bytes();
                assert!(live < 1 << 40, "{live} bytes is a negative number");
            });
            for _ in 0..15 {
                sender.send(Block::new(block)).unwrap();
            }
            drop(sender);
            freeing.join().unwrap();
            assert_within_bound();
        });
        if EXACT {
            assert!(heap().live_bytes().abs_diff(resting) < 64 * 1024);
        }
    }
    wait_until_alone();
    assert_exact();
}
