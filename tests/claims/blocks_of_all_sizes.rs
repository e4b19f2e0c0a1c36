//! Requested sizes count on both sides, whatever the allocator rounds them up to.

use std::thread;

use tally_alloc::heap;

use super::{assert_exact, wait_until_alone};
use crate::support::Numbers;
use crate::support::block::Block;
use crate::support::claims;

claims![
    pairs_of_1_to_40_bytes_do_not_drift,
    blocks_kept_in_any_order_do_not_drift,
    aligned_blocks_count_their_size_alone,
    random_work_on_4_threads_is_exact,
];

fn pairs_of_1_to_40_bytes_do_not_drift() {
    let start = heap().totals();
    for n in 0..100_000 {
        drop(Block::new(n % 40 + 1));
    }
    let change = heap().totals() - start;
    assert_eq!(change.net_bytes(), 0, "{change:?}");
    assert_eq!(change.bytes_allocated, 2500 * (40 * 41 / 2), "{change:?}");
    assert_eq!(change.allocations, 100_000, "{change:?}");
    assert_exact();
}

fn blocks_kept_in_any_order_do_not_drift() {
    let mut numbers = Numbers::from(13);
    let start = heap().totals().live_bytes();
    let mut kept: Vec<Option<Block>> = (0..500).map(|_| None).collect();
    for round in 0..20_000 {
        let place = numbers.within(0..kept.len());
        kept[place] = match kept[place].take() {
            None => Some(Block::new(numbers.within(1..3000))),
            Some(_freed) => None,
        };
        if round % 100 == 0 {
            assert_exact();
        }
    }
    drop(kept);
    assert_eq!(heap().totals().live_bytes(), start, "live at the end");
    assert_exact();
}

fn aligned_blocks_count_their_size_alone() {
    for align in (0..16).map(|shift| 1 << shift) {
        for size in [1, 7, 100, 4097] {
            let start = heap().totals();
            let block = Block::aligned(size, align).unwrap();
            let change = heap().totals() - start;
            assert_eq!(change.bytes_allocated, size, "{size} bytes at {align}");
            drop(block);
            assert_exact();
        }
    }
}

fn random_work_on_4_threads_is_exact() {
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let mut numbers = Numbers::from(seed);
                let mut kept: Vec<Block> = Vec::new();
                for _ in 0..20_000 {
                    let size = numbers.within(1..20_000);
                    match numbers.within(0..5) {
                        0 => kept.push(Block::new(size)),
                        1 => kept.push(Block::zeroed(size)),
                        2 if !kept.is_empty() => {
                            let place = numbers.within(0..kept.len());
                            assert!(kept[place].resize(size));
                        }
                        3 if !kept.is_empty() => {
                            drop(kept.swap_remove(numbers.within(0..kept.len())));
                        }
                        _ => heap().flush(),
                    }
                    if kept.len() > 200 {
                        kept.clear();
                    }
                }
            });
        }
    });
    wait_until_alone();
    assert_exact();
}
