//! A panic on one of several threads that allocate.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use crate::block::Block;
use crate::work::assert_exact;

/// Panics on a thread in the middle of its work, while others allocate. Where panics do not unwind the program ends
/// here, by `SIGABRT`.
pub(crate) fn on_a_thread() {
    // SAFETY: a program that hangs ends by SIGALRM, which is not what it is to end by.
    unsafe { libc::alarm(60) };
    static ENDED: AtomicBool = AtomicBool::new(false);
    let others: Vec<_> = (1..4)
        .map(|size| {
            thread::spawn(move || {
                while !ENDED.load(Relaxed) {
                    drop(Block::new(size * 9000));
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let panicked = thread::spawn(|| {
            let _freed_by_unwinding = (Block::new(5000), Block::new(50_000));
            drop(Block::new(70));
            panic!("{}", "on purpose ".repeat(10));
        });
        drop(panicked.join().expect_err("it panicked"));
    }
    ENDED.store(true, Relaxed);
    for other in others {
        other.join().expect("it ends well");
    }
    // The hook has printed from those threads, and they have ended.
    assert_exact("panics that unwound");
}
