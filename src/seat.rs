//! A seat: one thread's part of the process's account, a shard and who has it.
//!
//! # Reading the figures of somebody who may be leaving
//!
//! A shard is passed on as it stands, so a thread's own figures are the counters less what it found there, and
//! a reader that takes some of the three (id, counters, found) from one owner and some from the next shows one thread's
//! work as another's. So a seat counts its *sittings*: up by one when an owner has sat down, and by one when it
//! gets up, so that it is odd in between. A reader takes the figures only if it finds the same odd number before
//! and after.
//!
//! # Memory orderings
//!
//! * The owner writes the id, and what it found, and then the odd number, `Release`. The reader loads that first, with
//!   `Acquire`: so it has that owner's id and found, or later ones, and counters at least as high as were found.
//! * Whatever the next owner writes, be it the id, what it found or a counter, it writes `Release`, and the reader loads it
//!   `Acquire`. So a reader that has seen any of it is ordered after the moment at which the owner before got up
//!   (the registry orders the two owners), does not find the number again, and drops what it has (model:
//!   `a_reading_never_shows_one_threads_figures_under_anothers_id`).
//!
//! The number wraps after half the range of a word of owners. A reader would have to be held up between its two
//! looks for just that many.

use crate::registry::Slot;
use crate::shard::Shard;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicUsize, const_fn};
use crate::totals::Totals;

/// How often a reader looks at a seat whose owners change under it; then it goes on without: nobody had it throughout.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 4 };

/// See the module.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) shard: Shard,
    /// The owner's id. Written by the owner when it comes, read by listings.
    thread: AtomicUsize,
    /// Odd while somebody has the seat. Written by the owner when it comes and goes, read by listings.
    sittings: AtomicUsize,
}

// What the docs say of a shard's memory.
#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = assert!(size_of::<Seat>() == 128);

/// What a reader saw of a seat's owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sitting {
    pub(crate) thread: usize,
    pub(crate) totals: Totals,
    number: usize,
}

// SAFETY: a seat is made of atomic integers and of a shard, and a fresh one has zero in each.
#[allow(unsafe_code, reason = "promises that zero is a fresh seat")]
unsafe impl Slot for Seat {
    #[cfg(not(loom))]
    const FRESH: Self = Self::new();

    #[cfg(loom)]
    fn fresh() -> Self {
        Self::new()
    }
}

impl Seat {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                shard: Shard::new(),
                thread: AtomicUsize::new(0),
                sittings: AtomicUsize::new(0),
            }
        }
    }

    /// Says whose the seat is. Owner only, once it has the shard's counters as found.
    pub(crate) fn sit_down(&self, thread: usize) {
        self.thread.store(thread, Release);
        self.count_sitting();
    }

    /// Says that it is nobody's. Owner only, before it hands the seat back.
    pub(crate) fn get_up(&self) {
        self.count_sitting();
    }

    fn count_sitting(&self) {
        let number = self.sittings.load(Relaxed).wrapping_add(1);
        self.sittings.store(number, Release);
    }

    /// Returns the owner and its figures; `None` when there is none, or none that stays.
    pub(crate) fn sitting(&self) -> Option<Sitting> {
        (0..ATTEMPTS).find_map(|_| {
            let number = self.sittings.load(Acquire);
            let sitting = Sitting {
                thread: self.thread.load(Acquire),
                totals: self.shard.owner_totals(),
                number,
            };
            (number % 2 == 1 && self.still_has(&sitting)).then_some(sitting)
        })
    }

    /// Returns whether the owner is still the same.
    pub(crate) fn still_has(&self, sitting: &Sitting) -> bool {
        self.sittings.load(Relaxed) == sitting.number
    }
}
