//! The hard limit: live bytes never exceed it.
//!
//! # The bound that is kept
//!
//! What is live is at most the published total plus the error bound, since each thread under threshold `t` may hold
//! back `t − 1` bytes. So it is enough to keep
//!
//! > published total + error bound ≤ hard limit
//!
//! and nothing has to be known of what other threads do meanwhile. Room that a thread has is already reckoned with, so
//! the fast path is as it always is. An operation for which there is no room, and that could take pending past the
//! threshold, first *reserves* what it would publish: it widens the error bound by that, if the sum stays within the
//! limit; then it allocates, counts and publishes, and takes its reservation off. A block that is not there yet is thus never in the
//! total, the peak, or what a trigger is decided on: until it is counted, the total may be off by it, and the bound says so. If there
//! is no place, the thread gives up its own threshold (it goes down to one
//! and leaves the error bound) and tries once more; then the request is refused.
//!
//! A publish of what was pending adds to the total, and the thread may hold back as much again. So after each the
//! sum is looked at, and a thread that finds it exceeded gives up its threshold, by which the sum falls at least as far
//! as it rose.
//!
//! # Near the limit
//!
//! A thread that looks gets a threshold of at most 1 + 1/16 of what is left below the limit, so budgets shrink as the
//! limit comes near, and many threads can still be served before it. Far from it they are what they always are:
//! with the default threshold, while more than 256 KiB are left.
//!
//! # How early it refuses
//!
//! A request is refused when the published total, the request and the error bound of the *other* threads exceed
//! the limit together. The published total may itself be above the truth by the error bound, so
//!
//! > a request of `n` bytes is never refused while live bytes + n + 2 × error bound ≤ hard limit.
//!
//! Threads that run come down with their thresholds; one that sleeps keeps what it had. What other threads are just asking
//! for is in the bound too. In exact mode there is nothing else in it, and the limit is met to the byte.
//!
//! # Memory orderings
//!
//! The sum is of two atomics. Whoever raises one of them, by a reservation, a wider bound or a publish, looks at both
//! afterwards, all with read-modify-writes (`AcqRel`). Of two that meet, one is first on the total or on the bound, and the other
//! is ordered after it there and sees what it has raised. Whoever sees the sum exceeded takes back what it did (models:
//! `the_hard_limit_holds_while_threads_reserve_and_widen`, `the_hard_limit_holds_while_pending_bytes_are_published`).
//!
//! Setting a limit writes it and looks at both then; who widens the bound reads the limit after. So either the limit is
//! set with that in the sum, or the thread sees it (model: `a_limit_that_is_set_reckons_with_whoever_widens_meanwhile`). A
//! thread that was in the middle of a publish when there was no limit yet looks at the sum when it looks next; until then it
//! may hold back a threshold that the limit has not reckoned with.

use std::error::Error;
use std::fmt;
use std::hint;

use crate::ledger::{Attention, Ledger};
use crate::shard::Shard;

/// How often a reservation is tried. What another thread is being given goes from the bound to the total, and is in both for
/// a few instructions; and the total may rise between a look at it and a widening of the bound.
const ATTEMPTS: usize = 16;

/// The share of what is left below the limit that one thread may hold back: small enough that sixteen threads can look
/// at the same moment and leave something for the next.
const SHARE: usize = 16;

/// Why a hard limit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HardLimitError {
    /// It is below what may be live already.
    #[non_exhaustive]
    BelowLive {
        /// The limit that was asked for, in bytes.
        requested: usize,
        /// The published live bytes and the error bound together: the least limit that can be set.
        least: usize,
    },
}

impl fmt::Display for HardLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowLive { requested, least } => write!(
                f,
                "a hard limit of {requested} bytes is below the {least} that may be live already"
            ),
        }
    }
}

impl Error for HardLimitError {}

/// What the hard limit says of an allocation.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It needs no leave: there is no limit, or the error bound reckons with it already.
    Free,
    /// The error bound is wider by this many bytes, to be taken off once the operation is counted or has failed.
    Reserved(usize),
    /// It would go past the limit.
    Refused,
}

impl Ledger {
    /// Sets the hard limit, `usize::MAX` for none.
    pub(crate) fn set_hard_limit(&self, bytes: usize) -> Result<(), HardLimitError> {
        // One at a time, so that what a limit gives way to again is one that was set.
        let _setting = self.setting.lock();
        // One that is too low is never in force: others would be refused.
        self.is_above_live(bytes)?;
        let before = self.terms.swap_hard_limit(bytes);
        // What is allocated from here on sees it, what was is looked for once more.
        self.is_above_live(bytes).inspect_err(|_| {
            self.terms.swap_hard_limit(before);
        })
    }

    /// Takes the hard limit away.
    pub(crate) fn clear_hard_limit(&self) {
        let _setting = self.setting.lock();
        self.terms.swap_hard_limit(usize::MAX);
    }

    fn is_above_live(&self, requested: usize) -> Result<(), HardLimitError> {
        let least = (0..ATTEMPTS).map(|_| self.most_live()).min();
        match least {
            Some(least) if least > requested => Err(HardLimitError::BelowLive { requested, least }),
            _ => Ok(()),
        }
    }

    /// Returns what can be live at the most.
    pub(crate) fn most_live(&self) -> usize {
        // The bound first: what goes over into the total meanwhile is then seen twice, and not missed.
        let bound = self.terms.latest_error_bound();
        bound.saturating_add(self.published.latest_live_bytes())
    }

    /// Widens the bound for a shard that wants to go from the threshold `before` to `threshold`, as far as the limit
    /// permits, and returns the threshold it may go to.
    #[cold]
    pub(crate) fn widen_within_limit(&self, threshold: usize, before: usize) -> usize {
        let limit = self.terms.hard_limit();
        let threshold = if limit == usize::MAX {
            threshold
        } else {
            let left = limit.saturating_sub(self.most_live());
            threshold.min((left / SHARE).saturating_add(1))
        };
        let by = threshold.saturating_sub(before);
        if by == 0 {
            return threshold;
        }
        self.terms.widen_bound(by);
        // Of a limit that was set meanwhile, too.
        if self.is_within_limit() {
            return threshold;
        }
        self.terms.narrow_bound(by);
        before
    }

    /// Returns whether nothing that threads may hold back goes past the limit.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_within_limit(&self) -> bool {
        let limit = self.terms.hard_limit();
        limit == usize::MAX || self.most_live() <= limit
    }

    /// Gives leave to allocate `bytes` to the owner of a shard that counts in batches. What it has set off is to
    /// be attended to whatever the answer.
    pub(crate) fn admit_batched(&self, shard: &Shard, bytes: usize) -> (Admission, Attention) {
        let pending = (shard.net() - shard.published()).bytes;
        // Beyond the range only with what is pending, which is then published by itself.
        if let Some(after) = pending.checked_add_unsigned(bytes) {
            if after < shard.threshold().cast_signed() {
                // Inside what the error bound reckons with.
                return (Admission::Free, Attention::None);
            }
            if self.reserve(after.unsigned_abs()) {
                return (Admission::Reserved(after.unsigned_abs()), Attention::None);
            }
        }
        // What is pending was reckoned with, and so was the threshold it stood under.
        let attention = self.tighten(shard);
        (self.admit_exact(bytes), attention)
    }

    /// Gives leave to allocate `bytes` to a thread that has nothing pending and no room.
    pub(crate) fn admit_exact(&self, bytes: usize) -> Admission {
        if self.reserve(bytes) {
            Admission::Reserved(bytes)
        } else {
            Admission::Refused
        }
    }

    #[cold]
    #[inline(never)]
    fn reserve(&self, bytes: usize) -> bool {
        let limit = self.terms.hard_limit();
        (0..ATTEMPTS).any(|_| {
            let live = self.published.latest_live_bytes();
            let most = limit.checked_sub(live).and_then(|it| it.checked_sub(bytes));
            if !most.is_some_and(|most| self.terms.widen_bound_from(most, bytes)) {
                hint::spin_loop();
                return false;
            }
            let fits = self.most_live() <= limit;
            if !fits {
                self.terms.narrow_bound(bytes);
            }
            fits
        })
    }

    /// Takes off what was reserved, for an operation that has failed or is published by now.
    pub(crate) fn release_reserved(&self, reserved: usize) {
        self.terms.narrow_bound(reserved);
    }
}
