//! Counters that live as long as the program, and that every thread charges.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use anyhow::{Result, ensure};
use tally_alloc::{Counter, Mode, Totals};

/// A counter and what it must show.
pub(crate) struct Charged<M> {
    counter: Counter<M>,
    bytes: [AtomicUsize; 2],
    blocks: [AtomicUsize; 3],
    /// What is counted as live and can be taken off by any thread.
    live: Mutex<Vec<usize>>,
}

const ADDED: usize = 0;
const TAKEN: usize = 1;
const RESIZED: usize = 2;

/// Blocks that are counted as live at the most.
const MOST: usize = 4096;

impl<M: Mode> Charged<M> {
    pub(crate) fn new() -> Self {
        Self {
            counter: Counter::with_mode(),
            bytes: [const { AtomicUsize::new(0) }; 2],
            blocks: [const { AtomicUsize::new(0) }; 3],
            live: Mutex::new(Vec::with_capacity(MOST)),
        }
    }

    fn note(&self, bytes: usize, size: usize, block: usize) {
        self.bytes[bytes].fetch_add(size, SeqCst);
        self.blocks[block].fetch_add(1, SeqCst);
    }

    /// Takes off a block that any thread has counted, resizes one, or counts a new one of `size`.
    pub(crate) fn charge(&self, size: usize, choice: usize) {
        let mut live = self.live.lock().expect("a panic ends the process");
        let taken = if choice.is_multiple_of(2) || live.len() == MOST {
            live.pop()
        } else {
            None
        };
        drop(live);
        let kept = match taken {
            None => {
                self.counter.add(size);
                self.note(ADDED, size, ADDED);
                Some(size)
            }
            Some(old) if choice.is_multiple_of(3) => {
                self.counter.resize(old, size);
                let grown = size >= old;
                self.note(usize::from(!grown), size.abs_diff(old), RESIZED);
                Some(size)
            }
            Some(old) => {
                self.counter.sub(old);
                self.note(TAKEN, old, TAKEN);
                None
            }
        };
        if let Some(size) = kept {
            let mut live = self.live.lock().expect("a panic ends the process");
            // Full, since others came in between: it stays counted, and nobody takes it off.
            if live.len() < MOST {
                live.push(size);
            }
        }
        if choice.is_multiple_of(64) {
            self.counter.flush();
        }
    }

    /// Checks the counter while nobody charges it; `most_alive` is how many threads there were at once.
    pub(crate) fn check(&self, most_alive: usize, exact: bool) -> Result<()> {
        let mut truth = Totals::default();
        truth.bytes_allocated = self.bytes[ADDED].load(SeqCst);
        truth.bytes_deallocated = self.bytes[TAKEN].load(SeqCst);
        truth.allocations = self.blocks[ADDED].load(SeqCst);
        truth.deallocations = self.blocks[TAKEN].load(SeqCst);
        truth.reallocations = self.blocks[RESIZED].load(SeqCst);
        let totals = self.counter.totals();
        ensure!(
            totals == truth,
            "a counter says {totals:?}, the truth is {truth:?}"
        );
        let (live, bound) = (self.counter.live_bytes(), self.counter.error_bound());
        ensure!(
            live.abs_diff(truth.live_bytes()) <= bound,
            "a counter published {live}, the truth is {}, the bound {bound} bytes",
            truth.live_bytes()
        );
        ensure!(
            self.counter.peak_bytes() >= live,
            "a counter's peak is {}, below its live bytes {live}",
            self.counter.peak_bytes()
        );
        if exact {
            ensure!(bound == 0, "the bound of an exact counter is {bound}");
        } else {
            // Its threshold never changes, so the bound tells how many places there are.
            let places = bound / (self.counter.threshold() - 1);
            ensure!(
                places <= most_alive,
                "a counter has {places} places for at most {most_alive} threads at once"
            );
        }
        Ok(())
    }
}
