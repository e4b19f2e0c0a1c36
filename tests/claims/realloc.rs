//! A reallocation is one delta, counted after it has succeeded.

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, truth};
use crate::GLOBAL;
use crate::support::Numbers;
use crate::support::block::Block;
use crate::support::claims;

claims![
    a_refused_realloc_leaves_the_block_and_its_count_alone,
    growing_by_doubling_is_exact_at_every_step,
    shrinking_and_growing_a_thousand_times_leaves_live_where_it_was,
    a_block_resized_on_every_thread_it_visits_is_exact,
    collections_that_grow_and_shrink_are_exact,
    over_aligned_blocks_are_resized_by_their_requested_sizes,
];

fn a_refused_realloc_leaves_the_block_and_its_count_alone() {
    let start = heap().totals();
    for old in [1, 100, 16_384, 1_000_000] {
        let mut block = Block::new(old);
        block.fill(0xa5);
        let before = heap().totals();
        // Too much for any system, then what only the inner allocator refuses.
        assert!(!block.resize(isize::MAX as usize - 4096));
        GLOBAL.inner().refuse_from(1);
        assert!(!block.resize(old + 1));
        assert!(!block.resize(old));
        assert!(!block.resize(old.div_ceil(2)));
        GLOBAL.inner().refuse_from(usize::MAX);
        assert_eq!(heap().totals(), before, "after four refusals");
        assert!(
            block.bytes().iter().all(|&byte| byte == 0xa5),
            "the block of {old} bytes is what it was"
        );
        assert!(block.resize(old + 1), "it can still be resized");
        drop(block);
        assert_exact();
    }
    let end = heap().totals();
    assert_eq!(end.live_bytes(), start.live_bytes(), "live at the end");
    assert_eq!(end.live_blocks(), start.live_blocks(), "blocks at the end");
}

fn growing_by_doubling_is_exact_at_every_step() {
    for _ in 0..50 {
        let mut block = Block::new(64);
        let mut size = 64;
        while size < 1 << 20 {
            size *= 2;
            assert!(block.resize(size));
            assert_exact();
        }
        while size > 1 {
            size /= 2;
            assert!(block.resize(size));
            assert_exact();
        }
    }
}

fn shrinking_and_growing_a_thousand_times_leaves_live_where_it_was() {
    let mut block = Block::new(500);
    let start = heap().totals();
    let mut sizes = Numbers::from(1);
    for _ in 0..1000 {
        assert!(block.resize(sizes.within(1..100_000)));
        assert_exact();
    }
    assert!(block.resize(500));
    let change = heap().totals() - start;
    assert_eq!(change.net_bytes(), 0, "{change:?}");
    assert_eq!(change.reallocations, 1001, "{change:?}");
    assert_eq!((change.allocations, change.deallocations), (0, 0));
}

fn a_block_resized_on_every_thread_it_visits_is_exact() {
    let mut block = Block::new(100);
    for visit in 1..200_usize {
        block = thread::spawn(move || {
            let mut block = block;
            assert!(block.resize(visit * 7919 % 40_000 + 1));
            block
        })
        .join()
        .unwrap();
        assert_exact();
    }
    drop(block);
    assert_exact();
}

fn collections_that_grow_and_shrink_are_exact() {
    thread::scope(|scope| {
        for thread in 0..4_usize {
            scope.spawn(move || {
                let mut numbers = Vec::new();
                let mut words = HashMap::new();
                let mut text = String::new();
                let mut line = VecDeque::new();
                for n in 0..5000 {
                    numbers.push(n * thread);
                    words.insert(n, format!("{n} of {thread}"));
                    text.push_str(&words[&n]);
                    line.push_front(n);
                    if n % 1000 == 0 {
                        numbers.shrink_to_fit();
                        line.shrink_to_fit();
                        words.retain(|key, _| key % 2 == 0);
                        words.shrink_to_fit();
                    }
                }
                black_box((numbers, words, text.into_boxed_str(), line));
            });
        }
    });
    super::wait_until_alone();
    assert_exact();
}

fn over_aligned_blocks_are_resized_by_their_requested_sizes() {
    for align in [1, 8, 16, 32, 64, 4096, 1 << 16] {
        let mut block = Block::aligned(100, align).unwrap();
        for size in [1, 5000, 300, 70_000, 12] {
            assert!(block.resize(size), "{size} bytes at {align}");
            assert_eq!(heap().totals(), truth(), "{size} bytes at {align}");
        }
    }
    assert_exact();
}
