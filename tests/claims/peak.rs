//! The peak is never below a live figure that was read before it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, truth};
use crate::support::block::Block;
use crate::support::claims;
use crate::support::{Numbers, SetAtEnd};
use crate::{EXACT, GLOBAL};

claims![
    the_peak_keeps_up_with_10_20_and_5000_bytes,
    the_peak_is_within_the_bound_of_the_highest_there_was,
    the_peak_stays_when_blocks_are_freed,
    a_reset_peak_starts_from_what_is_live_now,
    a_large_block_is_in_the_peak_though_it_is_freed_at_once,
    the_peak_is_not_below_live_in_a_million_snapshots,
    resets_under_load_leave_no_peak_below_live,
];

#[track_caller]
fn assert_peak_not_below_live() {
    let live = heap().live_bytes();
    let peak = heap().peak_bytes();
    assert!(peak >= live, "peak {peak}, live before it {live}");
}

fn the_peak_keeps_up_with_10_20_and_5000_bytes() {
    heap().reset_peak();
    let mut kept = Vec::with_capacity(3);
    for size in [10, 20, 5000] {
        kept.push(Block::new(size));
        assert_peak_not_below_live();
        heap().flush();
        assert_peak_not_below_live();
    }
    drop(kept);
    assert_peak_not_below_live();
    let peak = heap().peak_bytes();
    assert!(
        peak >= truth().live_bytes() + 5030,
        "peak {peak}, live now {} and 5,030 more before",
        truth().live_bytes()
    );
}

fn the_peak_is_within_the_bound_of_the_highest_there_was() {
    let mut numbers = Numbers::from(15);
    for _ in 0..200 {
        heap().flush();
        heap().reset_peak();
        GLOBAL.inner().reset_peak();
        let mut kept = Vec::with_capacity(100);
        for _ in 0..100 {
            kept.push(Block::new(numbers.within(1..5000)));
            if numbers.within(0..2) == 0 {
                kept.clear();
            }
            assert_peak_not_below_live();
        }
        drop(kept);
        let (peak, highest) = (heap().peak_bytes(), GLOBAL.inner().peak_bytes());
        assert!(
            peak.abs_diff(highest) <= heap().error_bound(),
            "peak {peak}, the highest there was {highest}, bound {}",
            heap().error_bound()
        );
    }
}

fn the_peak_stays_when_blocks_are_freed() {
    let block = Block::new(1 << 20);
    let peak = heap().peak_bytes();
    assert!(peak >= 1 << 20, "peak {peak}");
    drop(block);
    assert_eq!(heap().peak_bytes(), peak);
    drop(Block::new(1000));
    heap().flush();
    assert_eq!(heap().peak_bytes(), peak);
}

fn a_reset_peak_starts_from_what_is_live_now() {
    drop(Block::new(10 << 20));
    let kept = Block::new(1 << 20);
    heap().flush();
    assert!(heap().peak_bytes() >= 10 << 20);
    heap().reset_peak();
    assert_eq!(heap().peak_bytes(), truth().live_bytes());
    drop(kept);
    let peak = heap().peak_bytes();
    assert!(peak >= truth().live_bytes() + (1 << 20), "peak {peak}");
    heap().reset_peak();
    assert_eq!(heap().peak_bytes(), truth().live_bytes());
    assert_exact();
}

fn a_large_block_is_in_the_peak_though_it_is_freed_at_once() {
    heap().flush();
    heap().reset_peak();
    let live = truth().live_bytes();
    for size in [heap().threshold(), 100_000, 5_000_000] {
        drop(Block::new(size));
        assert_eq!(heap().peak_bytes(), live + size, "after a block of {size}");
        let mut grown = Block::new(1);
        assert!(grown.resize(2 * size));
        drop(grown);
        let peak = heap().peak_bytes();
        assert!(peak >= live + 2 * size, "peak {peak}, {live} + 2 x {size}");
        heap().flush();
        heap().reset_peak();
    }
}

fn churn(seed: usize, ended: &AtomicBool) {
    let mut numbers = Numbers::from(seed);
    let mut kept = Vec::with_capacity(64);
    while !ended.load(Relaxed) {
        kept.push(Block::new(numbers.within(1..30_000)));
        if kept.len() == 64 {
            kept.truncate(numbers.within(0..64));
        }
    }
}

fn the_peak_is_not_below_live_in_a_million_snapshots() {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| churn(1, &ended));
        scope.spawn(|| churn(2, &ended));
        let _ended = SetAtEnd(&ended);
        let mut highest = 0;
        for _ in 0..1_000_000 {
            let live = heap().live_bytes();
            let peak = heap().peak_bytes();
            assert!(peak >= live, "peak {peak}, live before it {live}");
            assert!(peak >= highest, "peak {peak} after {highest}");
            highest = peak;
        }
    });
    super::wait_until_alone();
    assert_exact();
    if EXACT {
        let (peak, truth) = (heap().peak_bytes(), GLOBAL.inner().peak_bytes());
        // Each of the two threads may be between the oracle's count and ours.
        assert!(peak + 2 * 30_000 >= truth, "peak {peak}, truth {truth}");
    }
}

fn resets_under_load_leave_no_peak_below_live() {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| churn(3, &ended));
        scope.spawn(|| churn(4, &ended));
        let _ended = SetAtEnd(&ended);
        for n in 0..100_000 {
            if n % 7 == 0 {
                heap().reset_peak();
            }
            assert_peak_not_below_live();
        }
    });
    super::wait_until_alone();
    assert_exact();
    assert_peak_not_below_live();
}
