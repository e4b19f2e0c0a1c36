//! A thread's own totals: what it did itself, since it began.

use std::sync::Barrier;
use std::thread;

use tally_alloc::{Totals, heap};

use super::{assert_exact, truth};
use crate::support::block::Block;
use crate::support::claims;
use crate::support::pthread::{ROOMY, on_a_pthread, on_pthreads};

claims![
    a_new_thread_begins_at_zero_on_a_shard_that_others_have_used,
    a_thread_counts_its_own_operations_alone,
    the_totals_of_all_threads_add_up,
    a_block_freed_elsewhere_is_counted_where_it_happened,
    the_main_thread_began_with_the_program,
];

fn a_new_thread_begins_at_zero_on_a_shard_that_others_have_used() {
    for _ in 0..100 {
        on_pthreads(8, ROOMY, &|_| {
            let own = heap().thread_totals();
            assert_eq!(own, Totals::default(), "before its first operation");
            std::mem::forget(Block::new(500));
            let own = heap().thread_totals();
            assert_eq!((own.bytes_allocated, own.allocations), (500, 1));
            assert_eq!((own.bytes_deallocated, own.deallocations), (0, 0));
        });
    }
    assert_exact();
}

fn a_thread_counts_its_own_operations_alone() {
    let start = heap().thread_totals();
    on_a_pthread(&|_| drop(Block::new(100_000)));
    let change = heap().thread_totals() - start;
    assert_eq!(change, Totals::default(), "another thread's work");
    let mut block = Block::new(100);
    assert!(block.resize(40));
    heap().flush();
    heap().set_threshold(1).unwrap();
    assert!(block.resize(60));
    drop(block);
    let change = heap().thread_totals() - start;
    assert_eq!(
        (change.bytes_allocated, change.bytes_deallocated),
        (120, 120)
    );
    assert_eq!((change.allocations, change.deallocations), (1, 1));
    assert_eq!(change.reallocations, 2);
    assert_exact();
}

fn the_totals_of_all_threads_add_up() {
    const THREADS: usize = 10;
    let barrier = Barrier::new(THREADS);
    let start = (heap().totals(), heap().thread_totals());
    let own = [const { std::sync::Mutex::new(None) }; THREADS];
    on_pthreads(THREADS, ROOMY, &|index| {
        for round in 1..500 {
            drop(Block::new(round * (index + 1)));
            drop(vec![0_u8; round]);
        }
        barrier.wait();
        *own[index].lock().unwrap() = Some(heap().thread_totals());
    });
    let main = heap().thread_totals() - start.1;
    let all = heap().totals() - start.0;
    let sum = |field: fn(&Totals) -> usize| {
        let others = own.iter().map(|own| field(&own.lock().unwrap().unwrap()));
        others.sum::<usize>() + field(&main)
    };
    assert_eq!(all.bytes_allocated, sum(|totals| totals.bytes_allocated));
    assert_eq!(
        all.bytes_deallocated,
        sum(|totals| totals.bytes_deallocated)
    );
    assert_eq!(all.allocations, sum(|totals| totals.allocations));
    assert_eq!(all.deallocations, sum(|totals| totals.deallocations));
    assert_exact();
}

fn a_block_freed_elsewhere_is_counted_where_it_happened() {
    let block = std::sync::Mutex::new(Some(Block::new(900)));
    on_a_pthread(&|_| {
        drop(block.lock().unwrap().take());
        let own = heap().thread_totals();
        assert_eq!((own.net_bytes(), own.net_blocks()), (-900, -1));
    });
    assert_exact();
}

fn the_main_thread_began_with_the_program() {
    // Nothing else has run, so what the process did the main thread did.
    assert_eq!(heap().thread_totals(), truth());
    thread::spawn(|| drop(Block::new(100))).join().unwrap();
    assert_ne!(heap().thread_totals(), truth());
    assert_exact();
}
