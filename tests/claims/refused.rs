//! A refused request counts nothing, and the program goes on.

use std::thread;

use tally_alloc::heap;

use super::{assert_exact, wait_until_alone};
use crate::GLOBAL;
use crate::support::block::Block;
use crate::support::claims;

claims![
    a_refused_request_leaves_every_figure_as_it_was,
    a_request_that_the_system_refuses_leaves_every_figure_as_it_was,
    try_reserve_fails_and_the_program_goes_on,
    requests_refused_on_8_threads_count_nothing,
];

fn a_refused_request_leaves_every_figure_as_it_was() {
    let mut block = Block::new(1000);
    for size in [1, 16_383, 16_384, 1 << 30] {
        heap().flush();
        let figures = || (heap().totals(), heap().live_bytes(), heap().peak_bytes());
        let before = figures();
        GLOBAL.inner().refuse_from(1);
        let alloc = Block::aligned(size, 1).is_none();
        let alloc_aligned = Block::aligned(size, 4096).is_none();
        let alloc_zeroed = Block::try_zeroed(size).is_none();
        let realloc = !block.resize(size);
        GLOBAL.inner().refuse_from(usize::MAX);
        assert!(alloc && alloc_aligned && alloc_zeroed && realloc);
        assert_eq!(figures(), before, "after refusals of {size} bytes");
        drop(Block::new(64));
        assert_exact();
    }
}

fn a_request_that_the_system_refuses_leaves_every_figure_as_it_was() {
    heap().flush();
    let before = (heap().totals(), heap().live_bytes(), heap().peak_bytes());
    for below in [4096, 5000, 1 << 20] {
        let size = isize::MAX as usize - below;
        assert!(Block::aligned(size, 1).is_none());
        assert!(Block::try_zeroed(size).is_none());
        assert!(Block::aligned(size, 64).is_none());
    }
    let after = (heap().totals(), heap().live_bytes(), heap().peak_bytes());
    assert_eq!(after, before);
    drop(Block::new(64));
    assert_exact();
}

fn try_reserve_fails_and_the_program_goes_on() {
    let mut bytes: Vec<u8> = vec![7; 1000];
    let before = heap().totals();
    assert!(bytes.try_reserve(isize::MAX as usize - 4096).is_err());
    assert_eq!(heap().totals(), before);
    bytes.push(8);
    assert_eq!(bytes.len(), 1001);
    assert_exact();
}

fn requests_refused_on_8_threads_count_nothing() {
    const TOO_MUCH: usize = 1 << 20;
    GLOBAL.inner().refuse_from(TOO_MUCH);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..2000 {
                    let mut block = Block::new(10 + round);
                    assert!(Block::aligned(TOO_MUCH, 1).is_none());
                    assert!(Block::try_zeroed(TOO_MUCH).is_none());
                    assert!(!block.resize(TOO_MUCH));
                }
            });
        }
    });
    wait_until_alone();
    assert_exact();
}
