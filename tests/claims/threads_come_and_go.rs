//! Nothing is lost, and nothing counted twice, when threads end: whatever they did last, and however
//! little.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, wait_until_alone};
use crate::EXACT;
use crate::support::block::Block;
use crate::support::pthread::{ROOMY, on_pthreads};
use crate::support::{SetAtEnd, claims};

claims![
    what_2000_ended_threads_left_behind_is_counted,
    threads_that_only_allocate_are_counted,
    threads_that_only_allocate_zeroed_are_counted,
    threads_that_only_free_are_counted,
    threads_that_only_grow_a_block_are_counted,
    threads_that_only_shrink_a_block_are_counted,
    threads_that_do_a_single_operation_of_one_byte_are_counted,
    threads_that_panic_are_counted,
    detached_threads_are_counted,
    scoped_threads_that_flush_last_are_published_when_the_scope_returns,
    totals_of_100_000_threads_64_at_a_time_are_exact_and_never_go_back,
    the_error_bound_returns_to_its_start_when_threads_have_ended,
    threads_that_do_nothing_do_not_widen_the_error_bound,
];

/// Under the default threshold, so that nothing makes a thread publish before it ends.
const BELOW_THRESHOLD: usize = 16_000;

fn what_2000_ended_threads_left_behind_is_counted() {
    let start = heap().totals();
    for round in 0..200 {
        let threads: Vec<_> = (0..10)
            .map(|_| thread::spawn(|| Block::new(BELOW_THRESHOLD)))
            .collect();
        let blocks: Vec<Block> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_exact();
        let grown = heap().totals().live_bytes() - start.live_bytes();
        assert!(
            grown >= blocks.len() * BELOW_THRESHOLD,
            "round {round}: {grown} bytes for ten blocks of {BELOW_THRESHOLD}"
        );
        drop(blocks);
        assert_exact();
    }
    let end = heap().totals();
    // The runtime keeps a little the first time a thread is started, and nothing per thread.
    let kept = end.live_bytes().abs_diff(start.live_bytes());
    assert!(
        kept < 1024,
        "live was {} bytes at the start and is {} at the end",
        start.live_bytes(),
        end.live_bytes()
    );
}

/// Runs `act` on a pthread that does nothing else, for each of 64 blocks of 300 bytes that it takes and
/// gives back, and checks the totals to the byte.
fn each_on_a_thread_of_its_own(act: fn(&mut Option<Block>), before: Option<usize>) {
    let blocks: Vec<Mutex<Option<Block>>> = (0..64)
        .map(|_| Mutex::new(before.map(Block::new)))
        .collect();
    assert_exact();
    on_pthreads(blocks.len(), ROOMY, &|index| {
        act(&mut blocks[index].lock().unwrap());
    });
    assert_exact();
    drop(blocks);
    assert_exact();
}

fn threads_that_only_allocate_are_counted() {
    each_on_a_thread_of_its_own(|block| *block = Some(Block::new(300)), None);
}

fn threads_that_only_allocate_zeroed_are_counted() {
    each_on_a_thread_of_its_own(|block| *block = Some(Block::zeroed(300)), None);
}

fn threads_that_only_free_are_counted() {
    each_on_a_thread_of_its_own(|block| *block = None, Some(300));
}

fn threads_that_only_grow_a_block_are_counted() {
    each_on_a_thread_of_its_own(
        |block| assert!(block.as_mut().unwrap().resize(900)),
        Some(300),
    );
}

fn threads_that_only_shrink_a_block_are_counted() {
    each_on_a_thread_of_its_own(
        |block| assert!(block.as_mut().unwrap().resize(100)),
        Some(300),
    );
}

fn threads_that_do_a_single_operation_of_one_byte_are_counted() {
    each_on_a_thread_of_its_own(|block| *block = Some(Block::new(1)), None);
    each_on_a_thread_of_its_own(|block| *block = None, Some(1));
}

fn threads_that_panic_are_counted() {
    std::panic::set_hook(Box::new(|_| ()));
    for _ in 0..50 {
        let panicked = thread::spawn(|| {
            let _freed_by_unwinding = Block::new(5000);
            std::mem::forget(Block::new(70));
            panic!("{}", "on purpose ".repeat(10));
        })
        .join();
        drop(panicked.unwrap_err());
        assert_exact();
    }
}

fn detached_threads_are_counted() {
    let done = std::sync::Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let done = done.clone();
        drop(thread::spawn(move || {
            std::mem::forget(Block::new(1000));
            done.fetch_add(1, SeqCst);
        }));
    }
    while done.load(SeqCst) < 100 {
        thread::yield_now();
    }
    wait_until_alone();
    #[cfg(target_os = "linux")]
    assert_exact();
}

fn scoped_threads_that_flush_last_are_published_when_the_scope_returns() {
    heap().flush();
    let start = heap().live_bytes();
    let blocks = Mutex::new(Vec::with_capacity(64));
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let block = Block::new(10_000);
                blocks.lock().unwrap().push(block);
                heap().flush();
            });
        }
    });
    heap().flush();
    // What may be missing is what a thread of the standard library frees on its last steps, its own
    // handle and the like; without the flush it would be the blocks.
    let grown = heap().live_bytes() - start;
    assert!(
        (640_000..640_000 + 64 * 1024).contains(&grown),
        "published {grown} bytes for 64 blocks of 10,000"
    );
    let grown = heap().totals().live_bytes() - start;
    assert!(grown >= 640_000, "{grown} bytes for 64 blocks of 10,000");
    wait_until_alone();
    #[cfg(target_os = "linux")]
    assert_exact();
}

fn totals_of_100_000_threads_64_at_a_time_are_exact_and_never_go_back() {
    const AT_A_TIME: usize = 64;
    let ended = AtomicBool::new(false);
    let bound = heap().error_bound();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = heap().totals();
            let mut readings = 0_usize;
            while !ended.load(Relaxed) {
                let now = heap().totals();
                let backwards = now.bytes_allocated < last.bytes_allocated
                    || now.bytes_deallocated < last.bytes_deallocated
                    || now.allocations < last.allocations
                    || now.deallocations < last.deallocations
                    || now.reallocations < last.reallocations;
                assert!(!backwards, "{last:?}, then {now:?}");
                assert!(now.net_bytes() >= 0, "below zero: {now:?}");
                last = now;
                readings += 1;
                thread::yield_now();
            }
            readings
        });
        let end = SetAtEnd(&ended);
        for _ in 0..100_000 / AT_A_TIME {
            on_pthreads(AT_A_TIME, 64 * 1024, &|index| {
                let mut block = Block::new(100 + index);
                assert!(block.resize(3000 - index));
            });
        }
        drop(end);
        assert_ne!(reader.join().unwrap(), 0, "the reader has read");
    });
    wait_until_alone();
    assert_exact();
    assert_eq!(heap().error_bound(), bound, "the bound at the end");
}

fn the_error_bound_returns_to_its_start_when_threads_have_ended() {
    let start = heap().error_bound();
    for threads in [1, 7, 64, 65, 200] {
        let barrier = Barrier::new(threads + 1);
        thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let _block = Block::new(10);
                        barrier.wait();
                        barrier.wait();
                    })
                })
                .collect();
            barrier.wait();
            let each = if EXACT { 0 } else { heap().threshold() - 1 };
            assert_eq!(
                heap().error_bound() - start,
                threads * each,
                "the bound with {threads} more threads"
            );
            barrier.wait();
            for handle in handles {
                handle.join().unwrap();
            }
        });
        assert_eq!(heap().error_bound(), start, "after {threads} threads");
        assert_exact();
    }
}

fn threads_that_do_nothing_do_not_widen_the_error_bound() {
    let start = heap().error_bound();
    let totals = heap().totals();
    let seen = [const { AtomicUsize::new(0) }; 8];
    let before = heap().totals() - totals;
    assert_eq!(before.allocations, 0, "reading allocates nothing");
    on_pthreads(8, ROOMY, &|index| {
        heap().flush();
        std::hint::black_box((heap().totals(), heap().thread_totals(), heap().peak_bytes()));
        seen[index].store(heap().error_bound(), SeqCst);
    });
    for seen in &seen {
        assert_eq!(seen.load(SeqCst), start, "the bound beside idle threads");
    }
    assert_exact();
}
