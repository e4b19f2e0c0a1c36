//! A forked child goes on with its parent's account: exact, and without waiting for threads that it
//! does not have.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, assert_within_bound, truth};
use crate::support::block::Block;
use crate::support::claims;
use crate::support::fork::in_a_fork;
use crate::support::pthread::{ROOMY, on_a_pthread, on_pthreads};
use crate::support::{Numbers, SetAtEnd};

claims![
    a_child_of_8_parked_threads_reads_exact_totals,
    a_child_starts_threads_that_allocate,
    a_child_forked_by_a_thread_hands_its_shard_back,
    a_child_forked_while_threads_start_and_end_does_not_hang,
    a_grandchild_counts_on,
    a_child_lists_its_parents_threads_without_names,
];

/// Below the default threshold: parked threads hold it back from the published total.
const HELD_BACK: usize = 15_000;

/// Runs `act` while 8 threads are parked, each with a block that it has not published.
fn with_8_parked_threads(act: impl FnOnce()) {
    let barrier = Barrier::new(9);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let _block = Block::new(HELD_BACK);
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        act();
        barrier.wait();
    });
}

fn a_child_of_8_parked_threads_reads_exact_totals() {
    with_8_parked_threads(|| {
        let status = in_a_fork(|| {
            assert_exact();
            let before = heap().totals();
            let mut block = Block::new(100_000);
            assert!(block.resize(200_000));
            assert_exact();
            let change = heap().totals() - before;
            assert_eq!(change.net_bytes(), 200_000, "{change:?}");
            drop(block);
            assert_exact();
            heap().flush();
            assert_exact();
        });
        assert_eq!(status, 0, "the child's wait status");
        assert_exact();
    });
}

fn a_child_starts_threads_that_allocate() {
    with_8_parked_threads(|| {
        for _ in 0..20 {
            let status = in_a_fork(|| {
                let bound = heap().error_bound();
                on_a_pthread(&|_| drop(Block::new(HELD_BACK)));
                assert_exact();
                // The registry's first slab has 64 shards; this needs a second one.
                on_pthreads(100, ROOMY, &|_| drop(Block::new(HELD_BACK)));
                assert_exact();
                assert_eq!(heap().error_bound(), bound, "the bound after the joins");
            });
            assert_eq!(status, 0, "the child's wait status");
        }
        assert_exact();
    });
}

fn a_child_forked_by_a_thread_hands_its_shard_back() {
    on_a_pthread(&|_| {
        let block = Block::new(HELD_BACK);
        let status = in_a_fork(|| {
            drop(block);
            assert_exact();
        });
        assert_eq!(status, 0, "the child's wait status");
    });
    assert_exact();
}

fn a_child_forked_while_threads_start_and_end_does_not_hang() {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let ended = &ended;
            scope.spawn(move || {
                let mut sizes = Numbers::from(seed);
                while !ended.load(SeqCst) {
                    let sizes: Vec<usize> = (0..4).map(|_| sizes.within(1..40_000)).collect();
                    on_pthreads(4, ROOMY, &|index| drop(Block::new(sizes[index])));
                }
            });
        }
        let _ended = SetAtEnd(&ended);
        for _ in 0..60 {
            let status = in_a_fork(|| {
                // An operation that another thread was in the middle of is for ever half done here, in
                // the account or in the truth, so what the child itself does is what is compared.
                let (before, truth_before) = (heap().totals(), truth());
                let kept = Block::new(123_456);
                on_pthreads(8, ROOMY, &|_| drop(Block::new(HELD_BACK)));
                let (change, truth) = (heap().totals() - before, truth() - truth_before);
                assert_eq!(change, truth, "change (left) and truth (right)");
                drop(kept);
            });
            assert_eq!(status, 0, "the child's wait status");
        }
    });
}

fn a_grandchild_counts_on() {
    let block = Block::new(HELD_BACK);
    let status = in_a_fork(|| {
        let mine = Block::new(HELD_BACK);
        let status = in_a_fork(|| {
            drop(block);
            drop(mine);
            assert_exact();
            on_a_pthread(&|_| drop(Block::new(7)));
            assert_exact();
        });
        assert_eq!(status, 0, "the grandchild's wait status");
        assert_exact();
    });
    assert_eq!(status, 0, "the child's wait status");
    assert_within_bound();
    assert_exact();
}

fn a_child_lists_its_parents_threads_without_names() {
    with_8_parked_threads(|| {
        let listed = heap().threads();
        assert_eq!(listed.len(), 9, "in the parent: {listed:?}");
        let status = in_a_fork(|| {
            let in_child = heap().threads();
            assert_eq!(in_child.len(), 9, "{in_child:?}");
            for (parent, child) in listed.iter().zip(&in_child) {
                assert_eq!((parent.id, &child.name), (child.id, &None));
                assert!(child.totals.bytes_allocated >= parent.totals.bytes_allocated);
            }
        });
        assert_eq!(status, 0, "the child's wait status");
    });
    assert_exact();
}
