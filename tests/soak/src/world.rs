//! What all threads of the soak share.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use crossbeam_channel::{Receiver, Sender, bounded};
use fastrand::Rng;
use tally_alloc::{Batched, Exact, Totals};

use crate::block::Block;
use crate::charges::Charged;
use crate::gate::Gate;
use crate::watching::Watchings;

/// The largest block that is asked for, in bytes.
pub(crate) const LARGEST: usize = 2 << 20;

/// The largest threshold that is set, in bytes.
pub(crate) const WIDEST: usize = 64 << 10;

/// How much was done of each.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) operations: AtomicU64,
    pub(crate) threads: AtomicU64,
    pub(crate) foreign_threads: AtomicU64,
    pub(crate) handed_over: AtomicU64,
    pub(crate) thresholds: AtomicU64,
    pub(crate) charges: AtomicU64,
    pub(crate) readings: AtomicU64,
    pub(crate) scopes: AtomicU64,
    pub(crate) forks: AtomicU64,
    pub(crate) triggers: AtomicU64,
    pub(crate) fires: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) counters: AtomicU64,
}

/// Adds to one of the figures.
pub(crate) fn note(figure: &AtomicU64, more: usize) {
    figure.fetch_add(more as u64, Relaxed);
}

pub(crate) struct World {
    pub(crate) gate: Gate,
    /// Threads end at the next chance.
    pub(crate) ending: AtomicBool,
    /// Threads free all they hold before they rest.
    pub(crate) draining: AtomicBool,
    /// Blocks on their way to any thread.
    pub(crate) blocks: (Sender<Block>, Receiver<Block>),
    pub(crate) batched: Charged<Batched>,
    pub(crate) exact: Charged<Exact>,
    pub(crate) watchings: Watchings,
    pub(crate) figures: Figures,
    /// The highest totals that anyone has read.
    pub(crate) latest: Mutex<Totals>,
    /// The highest published live bytes that anyone has read since the peak was reset.
    pub(crate) highest: AtomicUsize,
    alive: AtomicUsize,
    most_alive: AtomicUsize,
    seeds: AtomicU64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            gate: Gate::new(),
            ending: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            blocks: bounded(4096),
            batched: Charged::new(),
            exact: Charged::new(),
            watchings: Watchings::new(),
            figures: Figures::default(),
            latest: Mutex::new(Totals::default()),
            highest: AtomicUsize::new(0),
            // The main thread.
            alive: AtomicUsize::new(1),
            most_alive: AtomicUsize::new(1),
            seeds: AtomicU64::new(seed),
        }
    }

    /// Returns a generator of numbers for one thread, another for each.
    pub(crate) fn numbers(&self) -> Rng {
        Rng::with_seed(self.seeds.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed))
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Notes that so many threads are about to be started.
    pub(crate) fn born(&self, threads: usize) {
        let alive = self.alive.fetch_add(threads, SeqCst) + threads;
        self.most_alive.fetch_max(alive, SeqCst);
    }

    /// Notes that so many threads were joined.
    pub(crate) fn buried(&self, threads: usize) {
        self.alive.fetch_sub(threads, SeqCst);
    }

    pub(crate) fn alive(&self) -> usize {
        self.alive.load(SeqCst)
    }

    pub(crate) fn most_alive(&self) -> usize {
        self.most_alive.load(SeqCst)
    }

    /// Rests if the gate is closed, with nothing held if that is asked for.
    pub(crate) fn rest(&self, mut drop_all: impl FnMut()) {
        if self.gate.is_closed() {
            if self.draining.load(SeqCst) {
                drop_all();
            }
            self.gate.rest();
        }
    }
}

/// Returns the size of a block: mostly small, some around thresholds, a few large.
pub(crate) fn size(numbers: &mut Rng) -> usize {
    match numbers.u32(0..100) {
        0..70 => numbers.usize(1..400),
        70..90 => numbers.usize(1..20_000),
        90..98 => numbers.usize(16_380..16_390),
        _ => numbers.usize(1..=LARGEST),
    }
}

/// Returns a threshold.
pub(crate) fn threshold(numbers: &mut Rng) -> usize {
    [0, 1, 64, 1000, 16 << 10, 16 << 10, 16 << 10, WIDEST][numbers.usize(0..8)]
}
