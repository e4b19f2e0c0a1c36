//! The threshold bounds what each thread holds back, and may change at any time.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use tally_alloc::{MAX_THRESHOLD, ThresholdError, heap};

use super::{assert_exact, assert_within_bound, truth, wait_until_alone};
use crate::EXACT;
use crate::support::Numbers;
use crate::support::block::Block;
use crate::support::claims;

claims![
    the_default_is_16_kib,
    a_threshold_of_0_or_1_publishes_every_operation,
    an_absurd_threshold_is_a_typed_error_and_changes_nothing,
    any_permitted_threshold_bounds_one_thread,
    a_parked_thread_stays_under_its_old_threshold_until_it_flushes,
    a_lower_threshold_holds_after_at_most_twice_the_old_one,
    the_bound_holds_while_the_threshold_changes_under_load,
    a_thread_starts_under_the_present_threshold,
    the_largest_threshold_on_100_threads_is_bounded_and_exact,
];

fn the_default_is_16_kib() {
    assert_eq!(heap().threshold(), 16 * 1024);
    std::hint::black_box(Box::new(1));
    let one_thread = if EXACT { 0 } else { 16 * 1024 - 1 };
    assert_eq!(heap().error_bound(), one_thread, "the main thread's bound");
}

fn a_threshold_of_0_or_1_publishes_every_operation() {
    for threshold in [0, 1] {
        heap().set_threshold(16 * 1024).unwrap();
        heap().flush();
        heap().set_threshold(threshold).unwrap();
        assert_eq!(heap().threshold(), 1);
        heap().flush();
        assert_eq!(heap().error_bound(), 0);
        for size in 1..2000 {
            let mut block = Block::new(size);
            assert_eq!(heap().live_bytes(), truth().live_bytes(), "alloc {size}");
            assert!(block.resize(size * 3));
            assert_eq!(heap().live_bytes(), truth().live_bytes(), "grow {size}");
            assert!(block.resize(size));
            assert_eq!(heap().live_bytes(), truth().live_bytes(), "shrink {size}");
            drop(block);
            assert_eq!(heap().live_bytes(), truth().live_bytes(), "free {size}");
        }
        assert_exact();
    }
}

fn an_absurd_threshold_is_a_typed_error_and_changes_nothing() {
    heap().set_threshold(5000).unwrap();
    for absurd in [MAX_THRESHOLD + 1, usize::MAX / 2, usize::MAX] {
        let error = heap().set_threshold(absurd).unwrap_err();
        let ThresholdError::TooLarge { requested, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(requested, absurd);
        let text = error.to_string();
        assert!(text.contains(&absurd.to_string()), "{text}");
        let _: &dyn std::error::Error = &error;
        assert_eq!(heap().threshold(), 5000, "what it was");
    }
    heap().set_threshold(MAX_THRESHOLD).unwrap();
    assert_eq!(heap().threshold(), MAX_THRESHOLD);
    assert_exact();
}

fn any_permitted_threshold_bounds_one_thread() {
    let mut numbers = Numbers::from(3);
    for threshold in [
        1,
        2,
        3,
        15,
        16,
        17,
        100,
        4096,
        65_536,
        1 << 20,
        MAX_THRESHOLD,
    ] {
        heap().set_threshold(threshold).unwrap();
        heap().flush();
        let bound = if EXACT { 0 } else { threshold - 1 };
        assert_eq!(heap().error_bound(), bound);
        let mut kept = Vec::with_capacity(1000);
        for round in 0..1000 {
            kept.push(Block::new(
                numbers.within(1..2 * threshold.min(100_000) + 2),
            ));
            assert_within_bound();
            if round % 3 == 0 {
                kept.swap_remove(numbers.within(0..kept.len()));
                assert_within_bound();
            }
        }
        while let Some(block) = kept.pop() {
            drop(block);
            assert_within_bound();
        }
        assert_exact();
    }
}

fn a_parked_thread_stays_under_its_old_threshold_until_it_flushes() {
    if EXACT {
        return;
    }
    heap().set_threshold(10_000).unwrap();
    heap().flush();
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            heap().flush();
            let _held_back = Block::new(9000);
            for _ in 0..6 {
                barrier.wait();
            }
            heap().flush();
            barrier.wait();
            barrier.wait();
        });
        barrier.wait();
        assert_eq!(heap().error_bound(), 2 * 9999, "two threads");
        barrier.wait();
        heap().set_threshold(100).unwrap();
        assert_eq!(heap().error_bound(), 2 * 9999, "nobody has looked yet");
        barrier.wait();
        heap().flush();
        assert_eq!(heap().error_bound(), 9999 + 99, "one has looked");
        assert_within_bound();
        let hidden = truth().live_bytes() - heap().live_bytes();
        assert!(hidden >= 9000, "{hidden} bytes: the parked thread's block");
        barrier.wait();
        heap().set_threshold(1 << 20).unwrap();
        assert_eq!(heap().error_bound(), 9999 + 99, "nobody has looked yet");
        barrier.wait();
        heap().flush();
        assert_eq!(heap().error_bound(), 9999 + (1 << 20) - 1);
        barrier.wait();
        barrier.wait();
        assert_eq!(
            heap().error_bound(),
            2 * ((1 << 20) - 1),
            "both have looked"
        );
        barrier.wait();
    });
    wait_until_alone();
    assert_exact();
}

fn a_lower_threshold_holds_after_at_most_twice_the_old_one() {
    if EXACT {
        return;
    }
    for old in [1000, 16 * 1024, 1 << 20] {
        heap().set_threshold(old).unwrap();
        heap().flush();
        heap().set_threshold(100).unwrap();
        let mut passed = 0;
        while heap().error_bound() != 99 {
            assert!(passed < 2 * old, "{passed} bytes passed under {old}");
            drop(Block::new(50));
            passed += 50;
        }
        assert_exact();
    }
}

fn the_bound_holds_while_the_threshold_changes_under_load() {
    let start = heap().error_bound();
    let ended = AtomicBool::new(false);
    let quiet = Barrier::new(5);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (ended, quiet) = (&ended, &quiet);
            scope.spawn(move || {
                let mut numbers = Numbers::from(seed);
                let mut kept = Vec::with_capacity(64);
                while !ended.load(Relaxed) {
                    for _ in 0..2000 {
                        kept.push(Block::new(numbers.within(1..4000)));
                        if kept.len() == 64 {
                            kept.truncate(numbers.within(0..64));
                        }
                        if numbers.within(0..50) == 0 {
                            heap().set_threshold(numbers.within(0..70_000)).unwrap();
                        }
                        if numbers.within(0..500) == 0 {
                            heap().flush();
                        }
                    }
                    quiet.wait();
                    quiet.wait();
                }
            });
        }
        for round in 0..200 {
            quiet.wait();
            assert_exact();
            ended.store(round == 199, Relaxed);
            quiet.wait();
        }
    });
    wait_until_alone();
    assert_exact();
    heap().set_threshold(16 * 1024).unwrap();
    heap().flush();
    assert_eq!(heap().error_bound(), start, "the bound at the end");
    assert_eq!(heap().live_bytes(), truth().live_bytes());
}

fn a_thread_starts_under_the_present_threshold() {
    if EXACT {
        return;
    }
    heap().flush();
    let main = heap().error_bound();
    for threshold in [1, 2, 5000, 1 << 20] {
        heap().set_threshold(threshold).unwrap();
        crate::support::pthread::on_a_pthread(&|_| {
            let _block = Block::new(1);
            assert_eq!(heap().error_bound() - main, threshold - 1);
        });
        assert_eq!(heap().error_bound(), main, "after the join");
    }
    assert_exact();
}

fn the_largest_threshold_on_100_threads_is_bounded_and_exact() {
    heap().set_threshold(MAX_THRESHOLD).unwrap();
    heap().flush();
    let barrier = Barrier::new(101);
    thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                let mut kept = Vec::new();
                for size in 1..500 {
                    kept.push(Block::new(size * 10));
                }
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        let bound = if EXACT { 0 } else { 101 * (MAX_THRESHOLD - 1) };
        assert_eq!(heap().error_bound(), bound);
        assert_exact();
        barrier.wait();
    });
    wait_until_alone();
    heap().flush();
    assert_exact();
    assert_eq!(heap().live_bytes(), truth().live_bytes());
}
