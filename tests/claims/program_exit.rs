//! The account holds until the last instruction of the program: in destructors of the main thread and
//! in exit handlers, and when another thread ends the program.

use std::cell::RefCell;
use std::thread;

use tally_alloc::heap;

use super::truth;
use crate::support::block::Block;
use crate::support::claims;
use crate::support::fork::in_a_fork;

claims![
    exit_handlers_and_destructors_of_the_main_thread_are_counted,
    a_program_that_another_thread_ends_does_not_hang,
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
