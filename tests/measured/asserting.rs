//! `assert_allocates!`: it fails for each kind of excess, says what it found, and for nothing else.

use std::hint::black_box;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use tally_alloc::{assert_allocates, heap};

use super::{Noise, block};

/// Returns what the assertion said when it failed.
fn failure(asserts: impl FnOnce()) -> String {
    let outcome = panic::catch_unwind(AssertUnwindSafe(asserts));
    let panic = outcome.expect_err("the assertion held");
    let text = panic.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| (*panic.downcast_ref::<&str>().expect("a text")).to_owned())
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn what_allocates_nothing_passes_with_other_threads_at_work() {
    let _noise = [Noise::new(), Noise::new()];
    let mut numbers = Vec::with_capacity(10_000);
    for round in 0..1_000_usize {
        let sum: usize = assert_allocates!(nothing, {
            numbers.clear();
            numbers.extend(0..10_000_usize);
            black_box(&numbers).iter().sum::<usize>() + round
        });
        assert_eq!(sum, 49_995_000 + round, "the value of the expression");
    }
}

#[test]
fn a_single_block_is_not_nothing() {
    let _noise = Noise::new();
    let message = failure(|| drop(assert_allocates!(nothing, block(77))));
    says(
        &message,
        &[
            "block(77)",
            "may allocate nothing",
            "77 bytes in 1 allocations and 0 re",
        ],
    );
}

#[test]
fn growing_and_shrinking_are_not_nothing() {
    let _noise = Noise::new();
    let mut grown = block(100);
    let message = failure(|| assert_allocates!(nothing, grown.reserve_exact(150)));
    says(&message, &["50 bytes in 0 allocations and 1 reallocations"]);
    let mut shrunk = block(100);
    shrunk.push(1);
    let message = failure(|| assert_allocates!(nothing, shrunk.shrink_to_fit()));
    says(&message, &["0 bytes in 0 allocations and 1 reallocations"]);
}

#[test]
fn freeing_is_nothing() {
    let held = block(1_000);
    assert_allocates!(nothing, drop(held));
}

#[test]
fn blocks_up_to_the_most_pass_and_one_more_does_not() {
    let _noise = Noise::new();
    let most = 3_usize;
    let blocks = |n: usize| (0..n).for_each(|_| drop(block(10)));
    assert_allocates!(at most 3 blocks, blocks(3));
    assert_allocates!(at most most blocks, blocks(3));
    assert_allocates!(at most 1 block, blocks(1));
    for message in [
        failure(|| assert_allocates!(at most 3 blocks, blocks(4))),
        failure(|| assert_allocates!(at most (most.min(9)) blocks, blocks(4))),
    ] {
        says(
            &message,
            &["at most 3 blocks,", "40 bytes in 4 allocations"],
        );
    }
    let message = failure(|| assert_allocates!(at most 0 block, blocks(1)));
    says(&message, &["10 bytes in 1 allocations"]);
}

#[test]
fn each_resize_counts_as_a_block() {
    let resize = || {
        let mut grown = block(10);
        grown.reserve_exact(20);
        grown.reserve_exact(30);
    };
    assert_allocates!(at most 3 blocks and 30 bytes, resize());
    let message = failure(|| assert_allocates!(at most 2 blocks, resize()));
    says(&message, &["30 bytes in 1 allocations and 2 reallocations"]);
}

#[test]
fn bytes_up_to_the_most_pass_and_one_more_does_not() {
    let _noise = Noise::new();
    let bytes = |bytes: usize| drop((block(bytes - 1), block(1)));
    assert_allocates!(at most 100_000 bytes, bytes(100_000));
    let message = failure(|| assert_allocates!(at most 100_000 bytes, bytes(100_001)));
    says(
        &message,
        &["at most 100000 bytes,", "100001 bytes in 2 allocations"],
    );
}

#[test]
fn either_of_two_limits_fails_it() {
    let pair = || drop((block(60), block(40)));
    assert_allocates!(at most 2 blocks and 100 bytes, pair());
    for message in [
        failure(|| assert_allocates!(at most 1 block and 100 bytes, pair())),
        failure(|| assert_allocates!(at most 1 blocks and 100 bytes, pair())),
    ] {
        says(
            &message,
            &[
                "at most 1 blocks and 100 bytes,",
                "100 bytes in 2 allocations",
            ],
        );
    }
    let message = failure(|| assert_allocates!(at most 2 blocks and 99 bytes, pair()));
    says(&message, &["at most 2 blocks and 99 bytes,"]);
}

#[test]
fn a_limit_is_evaluated_once_and_what_it_allocates_is_not_measured() {
    let mut evaluated = 0;
    let mut limit = || {
        evaluated += 1;
        block(500).capacity()
    };
    assert_allocates!(at most (limit()) bytes, drop(block(500)));
    assert_eq!(evaluated, 1);
}

#[test]
fn assertions_nest_and_the_outer_sees_only_the_expression() {
    assert_allocates!(nothing, {
        // What the inner assertion does to see whether the allocator is there is a block.
        let outer = heap().scope();
        assert_eq!(outer.thread_totals().allocations, 0);
    });
    let message = failure(|| {
        assert_allocates!(at most 5 blocks, {
            assert_allocates!(at most 1 block, drop(block(10)));
            (0..9).for_each(|_| drop(block(10)));
        });
    });
    says(&message, &["at most 5 blocks"]);
}

#[test]
fn what_leaves_by_a_question_mark_is_not_asserted() {
    fn fails() -> Result<usize, std::num::ParseIntError> {
        let value: usize = assert_allocates!(nothing, {
            drop(block(10));
            "x".parse::<usize>()?
        });
        Ok(value)
    }
    assert!(fails().is_err());
}

#[test]
fn work_of_other_threads_is_not_in_it() {
    let message = failure(|| {
        // Starting a thread allocates here, a few hundred bytes; its work does not.
        assert_allocates!(at most 0 blocks, {
            thread::spawn(|| drop(block(1 << 20))).join().expect("no panic");
        });
    });
    says(&message, &["may allocate nothing"]);
    assert_allocates!(at most 100_000 bytes, {
        thread::spawn(|| drop(block(1 << 20))).join().expect("no panic");
    });
}
