//! Threads made without the standard library, with hardly any stack, whose first act is to allocate.

use std::sync::{Barrier, Mutex};

use tally_alloc::heap;

use super::assert_exact;
use crate::support::block::Block;
use crate::support::claims;
use crate::support::pthread::on_pthreads;

claims![
    the_first_allocation_of_100_threads_with_64_kib_stacks_is_counted,
    the_first_free_of_100_threads_with_64_kib_stacks_is_counted,
    a_refused_first_request_counts_nothing,
    blocks_pass_between_foreign_threads,
];

const SMALL: usize = 64 * 1024;

fn the_first_allocation_of_100_threads_with_64_kib_stacks_is_counted() {
    let kept = [const { Mutex::new(None) }; 100];
    on_pthreads(100, SMALL, &|index| {
        *kept[index].lock().unwrap() = Some(Block::new(1000 + index));
    });
    assert_exact();
    drop(kept);
    assert_exact();
}

fn the_first_free_of_100_threads_with_64_kib_stacks_is_counted() {
    let kept: Vec<_> = (0..100)
        .map(|index| Mutex::new(Some(Block::new(1000 + index))))
        .collect();
    on_pthreads(100, SMALL, &|index| {
        drop(kept[index].lock().unwrap().take())
    });
    assert_exact();
}

fn a_refused_first_request_counts_nothing() {
    let start = heap().totals();
    let bound = heap().error_bound();
    let refused = isize::MAX as usize - 4096;
    on_pthreads(1, SMALL, &|_| assert!(Block::aligned(refused, 1).is_none()));
    assert_exact();
    let change = heap().totals() - start;
    assert_eq!(change.net_bytes(), 0, "{change:?}");
    assert_eq!(heap().error_bound(), bound);
}

fn blocks_pass_between_foreign_threads() {
    const THREADS: usize = 16;
    let barrier = Barrier::new(THREADS);
    let seats = [const { Mutex::new(None) }; THREADS];
    on_pthreads(THREADS, SMALL, &|index| {
        for round in 1..200 {
            let block = Block::new(round * 10 + index);
            let previous = seats[(index + round) % THREADS]
                .lock()
                .unwrap()
                .replace(block);
            drop(previous);
            if round % 50 == 0 {
                barrier.wait();
            }
        }
    });
    assert_exact();
    drop(seats);
    assert_exact();
}
