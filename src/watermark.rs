//! A watermark: what a publish checks. A limit, whether it was reached, and a sleeper to wake; it knows
//! no policy.
//!
//! # States
//!
//! ```text
//!           arm                reach                take
//!   IDLE ─────────▶ ARMED ─────────────▶ DUE ─────────────▶ TAKEN
//!    ▲                │                   │                   │
//!    └────────────────┴──── withdraw ─────┴───────────────────┘
//! ```
//!
//! `reach` is what a publishing thread does, `take` what a poll does; each is one compare-and-swap, so one
//! thread wins a crossing and one wins its collection (model: `one_poll_wins_a_crossing`).
//!
//! # Generations
//!
//! The limit may change only outside `ARMED`, and every arming is a generation of its own, kept in the same
//! word as the state. A publishing thread reads the word, then the limit, then the figure, and changes the
//! state only if the word is still the same: so what it compared was the limit in force, and a thread that was
//! held up between its look and its verdict can not fire a limit that it never saw (model:
//! `a_late_verdict_does_not_fire_a_newer_limit`). With a watermark of its own for a new trigger the same
//! holds, since generations go on: a trigger may be dropped while a thread publishes.
//!
//! # What is told of a crossing
//!
//! How it was found stands in the word, so it is the word of whoever won. The figure has no room there: it is left
//! before the word changes, by every thread that comes to a verdict, and the highest one stays until the next
//! arming. So the one that wins, which is at or above the limit, is in it. A thread that was held up since an
//! earlier generation may still leave its own; a lower one is not taken (model:
//! `a_late_verdict_leaves_no_figure_below_a_newer_limit`).
//!
//! # Memory orderings
//!
//! The word is written `Release` by `arm` and read `Acquire` by `armed`, so the limit read is that of the
//! generation or a newer one, and with a newer one the compare-and-swap fails. Every change of the word is a
//! read-modify-write, which the sleeper relies on ([`sleeper`](crate::sleeper)). That a crossing is not lost
//! between a publish and an arming is the ledger's part ([`Ledger`](crate::ledger)).

use crate::registry::Slot;
use crate::sleeper::Sleeper;
use crate::sum::Sum;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{AtomicUsize, Handle, const_fn};

/// What a limit is a limit of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Measure {
    /// Bytes live.
    LiveBytes,
    /// Blocks live.
    LiveBlocks,
    /// Bytes allocated since the last collection, whether or not they were freed since.
    AllocatedBytes,
}

impl Measure {
    /// Returns its name in logs, labels and saved reports, which is stable: `live_bytes`, `live_blocks` or
    /// `allocated_bytes`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LiveBytes => "live_bytes",
            Self::LiveBlocks => "live_blocks",
            Self::AllocatedBytes => "allocated_bytes",
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::LiveBytes => 0,
            Self::LiveBlocks => 1,
            Self::AllocatedBytes => 2,
        }
    }
}

/// What made a trigger due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Evidence {
    /// The published total, which is exact when every thread counts exactly.
    Published,
    /// The exact sum over all threads.
    Sum,
    /// A request that was announced and does not fit below the limit.
    Request,
}

impl Evidence {
    /// Returns its name in logs and saved reports, which is stable: `published`, `sum` or `request`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Sum => "sum",
            Self::Request => "request",
        }
    }
}

const IDLE: usize = 0;
const ARMED: usize = 1;
const DUE: usize = 2;
const TAKEN: usize = 3;
const STATE: usize = 3;
/// How it was found, beside `DUE` and `TAKEN`.
const PUBLISHED: usize = 0;
const SUM: usize = 1 << 2;
const REQUEST: usize = 2 << 2;
const EVIDENCE: usize = 3 << 2;
const GENERATION: usize = STATE + EVIDENCE + 1;

/// A watermark as seen in one generation of `ARMED`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    word: usize,
    pub(crate) measure: Measure,
    pub(crate) limit: usize,
    base: usize,
}

impl Armed {
    /// Returns a figure that was certainly reached while the sum was taken.
    ///
    /// Among what was freed meanwhile may be blocks that the sum has not seen allocated. Then it comes to less than
    /// zero, which says nothing.
    pub(crate) const fn reached(&self, sum: &Sum) -> usize {
        match self.measure {
            Measure::LiveBytes => or_zero(sum.totals.live_bytes().wrapping_sub(sum.freed_bytes)),
            Measure::LiveBlocks => or_zero(sum.totals.live_blocks().wrapping_sub(sum.freed_blocks)),
            Measure::AllocatedBytes => sum.totals.bytes_allocated.wrapping_sub(self.base),
        }
    }
}

/// The most that can be live. What is above stands for a number below zero, as in the published
/// totals ([`published`](crate::published)): half of the range would be too little where pointers have 32 bits.
const MOST_LIVE: usize = usize::MAX / 8 * 7;

/// Returns a live figure, or zero for one that stands for less.
pub(crate) const fn or_zero(live: usize) -> usize {
    if live > MOST_LIVE { 0 } else { live }
}

/// What has made a watermark due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    pub(crate) limit: usize,
    /// At or above the limit.
    pub(crate) figure: usize,
    pub(crate) evidence: Evidence,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Watermark {
    /// The state in the two lowest bits, the evidence in the next two, the generation above.
    word: AtomicUsize,
    /// In force while `ARMED`; written by the trigger outside that state.
    limit: AtomicUsize,
    measure: AtomicUsize,
    /// Bytes allocated at the last arming.
    base: AtomicUsize,
    /// The highest figure that would make it due; raised by `reach`, from nothing after each arming.
    figure: AtomicUsize,
    sleeper: Sleeper,
}

// SAFETY: a fresh watermark has zero in every integer, and in its sleeper, whose handle is not there.
#[allow(unsafe_code, reason = "promises that zero is a fresh watermark")]
unsafe impl Slot for Watermark {
    #[cfg(not(loom))]
    const FRESH: Self = Self::new();

    #[cfg(loom)]
    fn fresh() -> Self {
        Self::new()
    }
}

impl Watermark {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                word: AtomicUsize::new(IDLE),
                limit: AtomicUsize::new(0),
                measure: AtomicUsize::new(0),
                base: AtomicUsize::new(0),
                figure: AtomicUsize::new(0),
                sleeper: Sleeper::new(),
            }
        }
    }

    /// Arms a new generation. The caller owns the watermark and it is not armed.
    pub(crate) fn arm(&self, measure: Measure, limit: usize, base: usize) {
        self.measure.store(measure.index(), Relaxed);
        self.limit.store(limit, Relaxed);
        self.base.store(base, Relaxed);
        // A swap for the models' sake: loom orders the writes to a variable among read-modify-writes.
        self.figure.swap(0, Relaxed);
        let word = self.word.load(Relaxed);
        let next = (word & !(STATE | EVIDENCE)).wrapping_add(GENERATION) | ARMED;
        // Not a plain store: whoever has entered the sleeper in the meantime must stay ordered before the
        // thread that will reach this limit.
        self.word.swap(next, AcqRel);
    }

    /// Leaves whatever state it is in for `TAKEN`, or for `IDLE` when the owner is done with it.
    pub(crate) fn withdraw(&self, done: bool) {
        let state = if done { IDLE } else { TAKEN };
        let mut word = self.word.load(Relaxed);
        while let Err(now) =
            self.word
                .compare_exchange_weak(word, word & !STATE | state, AcqRel, Relaxed)
        {
            word = now;
        }
    }

    /// Returns what is in force; `None` unless armed.
    pub(crate) fn armed(&self) -> Option<Armed> {
        let word = self.word.load(Acquire);
        (word & STATE == ARMED).then(|| Armed {
            word,
            measure: match self.measure.load(Relaxed) {
                0 => Measure::LiveBytes,
                1 => Measure::LiveBlocks,
                _ => Measure::AllocatedBytes,
            },
            limit: self.limit.load(Relaxed),
            base: self.base.load(Relaxed),
        })
    }

    /// Makes it due, on a figure that was reached while `armed` was in force; `false` when it was not in
    /// force any more. Wakes the sleeper.
    pub(crate) fn reach(&self, armed: Armed, figure: usize, evidence: Evidence) -> bool {
        if self.word.load(Relaxed) != armed.word {
            return false;
        }
        // Before the word says so, whoever's verdict that will be.
        self.figure.fetch_max(figure, Relaxed);
        let evidence = match evidence {
            Evidence::Published => PUBLISHED,
            Evidence::Sum => SUM,
            Evidence::Request => REQUEST,
        };
        let due = armed.word & !STATE | evidence | DUE;
        if self
            .word
            .compare_exchange(armed.word, due, AcqRel, Relaxed)
            .is_err()
        {
            return false;
        }
        self.sleeper.wake();
        true
    }

    /// Returns whether it is due. One relaxed load.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.word.load(Relaxed) & STATE == DUE
    }

    /// Takes the crossing; one of all threads that try gets it.
    pub(crate) fn take(&self) -> Option<Crossing> {
        let word = self.word.load(Acquire);
        if word & STATE != DUE {
            return None;
        }
        // Read while it is due in this generation: it is armed anew only once it has been withdrawn, and then the
        // exchange below fails.
        let crossing = Crossing {
            limit: self.limit.load(Relaxed),
            figure: self.figure.load(Relaxed),
            evidence: match word & EVIDENCE {
                PUBLISHED => Evidence::Published,
                SUM => Evidence::Sum,
                _ => Evidence::Request,
            },
        };
        self.word
            .compare_exchange(word, word & !STATE | TAKEN, AcqRel, Relaxed)
            .is_ok()
            .then_some(crossing)
    }

    /// Leaves a handle to the calling thread for `reach` to wake, and returns whether it is due: then there
    /// is nothing to sleep for. [`leave`](Self::leave) must follow.
    pub(crate) fn enter(&self, me: Handle) -> bool {
        self.sleeper.enter(me);
        self.word.fetch_add(0, AcqRel) & STATE == DUE
    }

    /// Takes the handle out again.
    pub(crate) fn leave(&self) {
        self.sleeper.leave();
    }

    /// Returns the limit last armed.
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
