//! What threads hold back is within the error bound, is in the totals, and is published on request.

use std::sync::Barrier;
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, assert_within_bound, truth};
use crate::EXACT;
use crate::support::block::Block;
use crate::support::claims;

claims![
    bytes_that_64_parked_threads_hold_back_are_within_the_bound,
    frees_that_64_parked_threads_hold_back_are_within_the_bound,
    a_flush_in_each_thread_brings_the_difference_to_0,
    the_bound_is_met_by_threads_that_hold_back_all_they_may,
];

const THREADS: usize = 64;

/// Runs `parked` while 64 threads are parked that have done `before`, and `flushed` after each has
/// flushed.
fn park(before: impl Fn(usize) + Sync, parked: impl FnOnce(), flushed: impl FnOnce()) {
    let barrier = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (barrier, before) = (&barrier, &before);
            scope.spawn(move || {
                // Whatever the thread's start has left pending.
                heap().flush();
                before(index);
                barrier.wait();
                barrier.wait();
                heap().flush();
                barrier.wait();
                barrier.wait();
            });
        }
        heap().flush();
        barrier.wait();
        assert_exact();
        parked();
        barrier.wait();
        barrier.wait();
        flushed();
        barrier.wait();
    });
    super::wait_until_alone();
    assert_exact();
}

fn bytes_that_64_parked_threads_hold_back_are_within_the_bound() {
    park(
        |index| std::mem::forget(Block::new(10_000 + index)),
        assert_within_bound,
        || (),
    );
}

fn frees_that_64_parked_threads_hold_back_are_within_the_bound() {
    let blocks: Vec<_> = (0..THREADS)
        .map(|index| std::sync::Mutex::new(Some(Block::new(10_000 + index))))
        .collect();
    park(
        |index| drop(blocks[index].lock().unwrap().take()),
        assert_within_bound,
        || (),
    );
}

fn a_flush_in_each_thread_brings_the_difference_to_0() {
    park(
        |index| std::mem::forget(Block::new(15_000 + index)),
        || (),
        || {
            heap().flush();
            assert_eq!(heap().live_bytes(), truth().live_bytes());
        },
    );
}

fn the_bound_is_met_by_threads_that_hold_back_all_they_may() {
    let held_back = heap().threshold() - 1;
    park(
        |_| std::mem::forget(Block::new(held_back)),
        || {
            heap().flush();
            let missing = truth().live_bytes() - heap().live_bytes();
            // The main thread, just flushed, holds back nothing.
            let bound = heap().error_bound() - if EXACT { 0 } else { held_back };
            let expected = if EXACT { 0 } else { THREADS * held_back };
            assert_eq!(missing, expected, "bytes not yet published");
            assert_eq!(bound, expected, "the bound of the others");
        },
        || (),
    );
}
