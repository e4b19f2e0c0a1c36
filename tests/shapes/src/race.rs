//! A data race, for the thread checkers to find: else their silence about the rest would say nothing.

use std::cell::UnsafeCell;
use std::thread;

struct Racy(UnsafeCell<usize>);

// SAFETY: none. This is the race.
unsafe impl Sync for Racy {}

static RACY: Racy = Racy(UnsafeCell::new(0));

/// Two threads count in a plain word, and nothing orders them. Only for a checker to look at.
pub(crate) fn run() {
    let threads = [1, 2].map(|step| {
        thread::spawn(move || {
            for _ in 0..1000 {
                let word = RACY.0.get();
                // SAFETY: the word is valid; that another thread writes to it is the purpose.
                let value = unsafe { word.read_volatile() };
                // SAFETY: the same.
                unsafe { word.write_volatile(value + step) };
            }
        })
    });
    for thread in threads {
        thread.join().expect("it ends well");
    }
}
