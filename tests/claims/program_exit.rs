//! The account holds until the last instruction of the program: in destructors of the main thread and
//! in exit handlers, and when another thread ends the program, by exit or abort, whatever the others are doing.

use std::cell::RefCell;
use std::thread;

use tally_alloc::{Totals, heap};

use super::truth;
use crate::support::block::Block;
use crate::support::claims;
use crate::support::fork::in_a_fork;
use crate::support::pthread::{ROOMY, on_pthreads};

claims![
    exit_handlers_and_destructors_of_the_main_thread_are_counted,
    a_program_that_another_thread_ends_does_not_hang,
    exit_on_a_thread_while_others_are_in_their_last_destructors_does_not_hang,
    a_program_that_aborts_while_others_allocate_ends_at_once,
    a_program_may_return_from_main_while_detached_threads_allocate,
];

/// What an exit handler ends the program with if a figure is wrong.
const WRONG: i32 = 3;

extern "C" fn check_at_exit() {
    let mut block = Block::new(1000);
    let resized = block.resize(50_000);
    drop(block);
    if !resized || heap().totals() != truth() {
        // SAFETY: ends the process.
        unsafe { libc::_exit(WRONG) };
    }
}

struct Last(RefCell<Vec<Block>>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.borrow_mut().push(Block::new(77));
        check_at_exit();
    }
}

thread_local! {
    static LAST: Last = const { Last(RefCell::new(Vec::new())) };
}

fn exit_with(code: i32) -> i32 {
    LAST.with(|last| last.0.borrow_mut().push(Block::new(3000)));
    // SAFETY: the handler has the signature asked for.
    let registered = unsafe { libc::atexit(check_at_exit) };
    assert_eq!(registered, 0, "atexit");
    std::process::exit(code)
}

fn exit_handlers_and_destructors_of_the_main_thread_are_counted() {
    let status = in_a_fork(|| {
        exit_with(0);
    });
    assert_eq!(
        status, 0,
        "the wait status: {WRONG} x 256 is a wrong figure"
    );
    // And again when this claim itself ends, by returning from `main`.
    LAST.with(|last| last.0.borrow_mut().push(Block::new(3000)));
    // SAFETY: the handler has the signature asked for.
    let registered = unsafe { libc::atexit(check_at_exit) };
    assert_eq!(registered, 0, "atexit");
}

fn a_program_that_another_thread_ends_does_not_hang() {
    for _ in 0..20 {
        let status = in_a_fork(|| {
            for size in 1..4_usize {
                thread::spawn(move || {
                    loop {
                        drop(Block::new(size * 9000));
                    }
                });
            }
            thread::sleep(std::time::Duration::from_millis(2));
            std::process::exit(0)
        });
        assert_eq!(status, 0, "the child's wait status");
    }
}

/// Works and reads. Others run on, so nothing is exact but what this thread does itself.
extern "C" fn read_at_exit() {
    let mut block = Block::new(1000);
    let before = heap().thread_totals();
    let resized = block.resize(50_000);
    let own = heap().thread_totals() - before;
    let totals = heap().totals();
    drop(block);
    // Past the destructors of its thread-locals a thread has no totals of its own.
    let counted = own == Totals::default() || (own.net_bytes(), own.reallocations) == (49_000, 1);
    if !resized || !counted || totals.net_bytes() < 50_000 {
        // SAFETY: ends the process.
        unsafe { libc::_exit(WRONG) };
    }
}

/// Works in its destructor for as long as the program runs.
struct Endless;

impl Drop for Endless {
    fn drop(&mut self) {
        loop {
            drop(Block::new(9000));
        }
    }
}

/// Keeps a block for as long as the thread runs, then works and reads.
struct Reads(RefCell<Vec<Block>>);

impl Drop for Reads {
    fn drop(&mut self) {
        self.0.borrow_mut().push(Block::new(77));
        read_at_exit();
    }
}

thread_local! {
    static READS: Reads = const { Reads(RefCell::new(Vec::new())) };
    static ENDLESS: Endless = const { Endless };
}

fn allocate_for_ever(size: usize) {
    thread::spawn(move || {
        loop {
            let mut block = Block::new(size);
            assert!(block.resize(size / 2));
        }
    });
}

/// Starts threads that allocate, one that is in its last destructor, and ones that come and go.
fn crowd() {
    allocate_for_ever(9000);
    allocate_for_ever(27_000);
    drop(thread::spawn(|| ENDLESS.with(|_| ())));
    drop(thread::spawn(|| {
        loop {
            on_pthreads(3, ROOMY, &|_| {
                READS.with(|reads| reads.0.borrow_mut().push(Block::new(300)));
            });
        }
    }));
    thread::sleep(std::time::Duration::from_millis(2));
}

fn exit_on_a_thread_while_others_are_in_their_last_destructors_does_not_hang() {
    for _ in 0..20 {
        let status = in_a_fork(|| {
            // SAFETY: the handler has the signature asked for.
            let registered = unsafe { libc::atexit(read_at_exit) };
            assert_eq!(registered, 0, "atexit");
            crowd();
            let exits = thread::spawn(|| {
                READS.with(|reads| reads.0.borrow_mut().push(Block::new(3000)));
                std::process::exit(0)
            });
            drop(exits.join());
        });
        assert_eq!(
            status, 0,
            "the child's wait status: {WRONG} x 256 is a wrong figure"
        );
    }
}

fn a_program_that_aborts_while_others_allocate_ends_at_once() {
    for _ in 0..10 {
        let status = in_a_fork(|| {
            crowd();
            std::process::abort();
        });
        assert_eq!(status & 0x7f, libc::SIGABRT, "the child's wait status");
    }
}

fn a_program_may_return_from_main_while_detached_threads_allocate() {
    // SAFETY: the handler has the signature asked for.
    let registered = unsafe { libc::atexit(read_at_exit) };
    assert_eq!(registered, 0, "atexit");
    READS.with(|reads| reads.0.borrow_mut().push(Block::new(3000)));
    crowd();
}
