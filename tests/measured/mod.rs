//! The claims, the same in both modes, and the noise that they hold in.

mod asserting;
mod listing;
mod measuring;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// A thread that allocates, resizes and frees for as long as this lives.
struct Noise {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Noise {
    fn new() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = thread::spawn(move || {
            while !seen.load(Relaxed) {
                for size in [1, 100, 20_000] {
                    let mut block = black_box(vec![0_u8; size]);
                    block.reserve_exact(size * 2);
                    drop(black_box(block));
                }
                thread::yield_now();
            }
        });
        Self {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("noise does not panic");
        }
    }
}

/// Allocates a block of so many bytes.
fn block(bytes: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(black_box(bytes)))
}
