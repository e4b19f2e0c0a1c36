//! Nobody waits for anybody in here: contention, signals to stop and thread starts do not hang. Every
//! claim of these programs ends under a watchdog; these are the ones that press hardest.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, wait_until_alone};
use crate::support::block::Block;
use crate::support::claims;
use crate::support::pthread::{ROOMY, on_pthreads};
use crate::support::{Numbers, SetAtEnd};

claims![
    eight_threads_at_threshold_1_do_not_hang,
    threads_that_start_and_end_beside_readers_do_not_hang,
];

fn eight_threads_at_threshold_1_do_not_hang() {
    heap().set_threshold(1).unwrap();
    thread::scope(|scope| {
        for seed in 0..8 {
            scope.spawn(move || {
                let mut numbers = Numbers::from(seed);
                for _ in 0..50_000 {
                    let mut block = Block::new(numbers.within(1..2000));
                    assert!(block.resize(numbers.within(1..2000)));
                }
            });
        }
    });
    wait_until_alone();
    assert_exact();
}

fn threads_that_start_and_end_beside_readers_do_not_hang() {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Relaxed) {
                    std::hint::black_box((heap().totals(), heap().peak_bytes()));
                    heap().reset_peak();
                    heap().flush();
                }
            });
        }
        let _ended = SetAtEnd(&ended);
        for _ in 0..200 {
            on_pthreads(70, ROOMY, &|index| drop(Block::new(index * 400 + 1)));
        }
    });
    wait_until_alone();
    assert_exact();
}
