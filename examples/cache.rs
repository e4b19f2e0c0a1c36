//! A cache under two limits: a soft one at which it makes room, and a hard one that nothing gets past.
//!
//! ```text
//! cargo run --release --example cache
//! ```
//!
//! Four threads fill the cache. A trigger says when the soft limit is reached; the one thread that is told drops the
//! older half. The others go on meanwhile, and what would take the heap past the hard limit is refused: `try_reserve`
//! fails, and the thread makes room itself. Last, the program asks for a block that could never fit, and lives.

use std::collections::{TryReserveError, VecDeque};
use std::error::Error;
use std::fmt::{self, Display};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Measure, TallyAlloc, Trigger, heap};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

const THREADS: usize = 4;
const ENTRIES: usize = 4_000;

/// An entry's bytes are from `SMALLEST` up, less than `SPREAD` more.
const SMALLEST: usize = 1 << 10;
const SPREAD: usize = 64 << 10;

/// Live bytes, over what was live at the start, at which the cache makes room.
const SOFT: usize = 48 << 20;

/// Live bytes, over what was live at the start, that are never exceeded.
const HARD: usize = 64 << 20;

/// A request, in bytes, that could never be met.
const HUGE: usize = 2 * HARD;

/// What the cache did.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How often room was made at the soft limit.
    pub(crate) evictions: u64,
    /// How often an entry was refused, and room made, at the hard limit.
    pub(crate) refusals: u64,
    /// The hard limit, in bytes.
    pub(crate) limit: usize,
    /// The highest live bytes there were.
    pub(crate) peak: usize,
    /// What became of a block that could never fit.
    pub(crate) huge: Result<(), TryReserveError>,
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "room made {} times at the soft limit", self.evictions)?;
        writeln!(f, "and {} times at the hard one", self.refusals)?;
        writeln!(
            f,
            "{} bytes at the peak, {} permitted",
            self.peak, self.limit
        )?;
        write!(f, "a block of {HUGE} bytes: {:?}", self.huge)
    }
}

#[allow(dead_code, reason = "the test of this program has a `main` of its own")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run()?);
    Ok(())
}

/// The cache: the oldest entry is the first.
struct Cache {
    entries: Mutex<VecDeque<Vec<u8>>>,
}

impl Cache {
    fn with_room_for(entries: usize) -> Self {
        Self {
            entries: Mutex::new(VecDeque::with_capacity(entries)),
        }
    }

    /// Keeps an entry, if there is memory for it.
    fn keep(&self, bytes: usize) -> Result<(), TryReserveError> {
        let mut entry = Vec::new();
        entry.try_reserve_exact(bytes)?;
        entry.resize(bytes, 1);
        self.lock().push_back(entry);
        Ok(())
    }

    /// Drops the older half.
    fn make_room(&self) {
        let mut entries = self.lock();
        let half = entries.len().div_ceil(2);
        entries.drain(..half);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills the cache.
pub(crate) fn run() -> Result<Outcome, Box<dyn Error>> {
    // Its own table does not grow under the limits.
    let cache = Cache::with_room_for(THREADS * ENTRIES);
    let start = heap().live_bytes();
    let limit = start + HARD;
    heap().set_hard_limit(limit)?;
    let soft = Trigger::new(heap(), Measure::LiveBytes, FixedLimit::new(start + SOFT)?)?;

    let refusals: u64 = thread::scope(|scope| {
        let (cache, soft) = (&cache, &soft);
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| scope.spawn(move || fill(cache, soft, seed)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("the cache does not panic"))
            .sum()
    });

    let outcome = Outcome {
        evictions: soft.report().cycles,
        refusals,
        limit,
        peak: heap().peak_bytes(),
        huge: Vec::<u8>::new().try_reserve_exact(HUGE),
    };
    heap().clear_hard_limit();
    Ok(outcome)
}

/// Keeps one thread's entries; returns how often one was refused.
fn fill(cache: &Cache, soft: &Trigger<'_, FixedLimit>, seed: usize) -> u64 {
    let mut refusals = 0;
    for entry in 0..ENTRIES {
        let bytes = SMALLEST + (seed * ENTRIES + entry) * 7_919 % SPREAD;
        while cache.keep(bytes).is_err() {
            refusals += 1;
            cache.make_room();
        }
        // One thread is told, once for each time that the limit is reached.
        if soft.poll() {
            let begun = Instant::now();
            cache.make_room();
            soft.collected(begun.elapsed());
        }
    }
    refusals
}
