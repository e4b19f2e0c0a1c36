//! How often threads write to the line they share.

use std::thread;

use tally_alloc::heap;

use super::{assert_exact, wait_until_alone};
use crate::EXACT;
use crate::support::block::Block;
use crate::support::claims;

claims![
    a_balanced_loop_writes_to_the_shared_line_only_in_exact_mode,
    growth_writes_to_the_shared_line_once_per_threshold,
    small_blocks_write_to_the_shared_line_no_more_often_than_bytes_do,
    reading_does_not_write_to_the_shared_line,
];

fn a_balanced_loop_writes_to_the_shared_line_only_in_exact_mode() {
    const PAIRS: usize = 100_000;
    // A debt in either direction, and none.
    for pending in [0, 8000, -8000_isize] {
        let block = Block::new(8000);
        heap().flush();
        let kept = match pending {
            0 => Some(block),
            1.. => {
                heap().flush();
                std::mem::forget(Block::new(8000));
                Some(block)
            }
            _ => {
                drop(block);
                None
            }
        };
        let before = heap().shared_writes();
        for _ in 0..PAIRS {
            drop(Block::new(64));
        }
        let writes = heap().shared_writes() - before;
        let expected = if EXACT { 2 * PAIRS } else { 0 };
        assert_eq!(writes, expected, "with {pending} bytes pending");
        drop(kept);
    }
    assert_exact();
}

fn growth_writes_to_the_shared_line_once_per_threshold() {
    const BLOCKS: usize = 100_000;
    heap().flush();
    let mut kept = Vec::with_capacity(BLOCKS);
    heap().flush();
    let before = heap().shared_writes();
    for _ in 0..BLOCKS {
        kept.push(Block::new(64));
    }
    let writes = heap().shared_writes() - before;
    let expected = if EXACT {
        BLOCKS
    } else {
        BLOCKS * 64 / heap().threshold()
    };
    assert_eq!(writes, expected, "100,000 blocks of 64 bytes");
    drop(kept);
    assert_exact();
}

fn small_blocks_write_to_the_shared_line_no_more_often_than_bytes_do() {
    const BLOCKS: usize = 100_000;
    let mut kept = Vec::with_capacity(BLOCKS);
    heap().flush();
    let before = heap().shared_writes();
    for _ in 0..BLOCKS {
        kept.push(Block::new(16));
    }
    let writes = heap().shared_writes() - before;
    let most = if EXACT {
        BLOCKS
    } else {
        BLOCKS * 16 / heap().threshold() + 1
    };
    assert!(writes <= most, "{writes} for 100,000 blocks of 16 bytes");
    drop(kept);
    assert_exact();
}

fn reading_does_not_write_to_the_shared_line() {
    let before = heap().shared_writes();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    std::hint::black_box((heap().live_bytes(), heap().totals()));
                    std::hint::black_box((heap().peak_bytes(), heap().thread_totals()));
                    std::hint::black_box((heap().error_bound(), heap().threshold()));
                }
            });
        }
    });
    wait_until_alone();
    let writes = heap().shared_writes() - before;
    assert!(writes < 200, "{writes} writes, for the threads themselves");
    assert_exact();
}
