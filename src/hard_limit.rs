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
//! threshold, first *reserves* its bytes: it publishes them, with what is pending, if the sum stays within the
//! limit, then allocates, then counts. If the sum does not, the thread gives up its own threshold (it goes down to one
//! and leaves the error bound) and tries once more; then the request is refused.
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
//! Threads that run come down with their thresholds; one that sleeps keeps what it had. In exact mode the error
//! bound is zero and the limit is met to the byte.
//!
//! # Memory orderings
//!
//! The sum is of two atomics. A reservation adds to the total and then looks at the bound; a thread that widens the bound
//! then looks at the total; all four with read-modify-writes (`AcqRel`). Of two that meet, one is first on the bound. If the
//! widening, the reservation sees it there. If the reservation, the widening is ordered after its add, and sees it in the
//! total. Whoever sees the sum exceeded takes back what it did (model:
//! `the_hard_limit_holds_while_threads_reserve_and_widen`).

use std::error::Error;
use std::fmt;

use crate::ledger::{Attention, Ledger};
use crate::operation::{Net, Operation};
use crate::shard::Shard;

/// How often a reservation is tried when the error bound widens under it; each further time takes another thread that
/// starts, or comes to a higher threshold, in the same few nanoseconds.
const ATTEMPTS: usize = 4;

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
    /// Its bytes are in the published total, and must come off again if it fails.
    Reserved,
    /// It would go past the limit.
    Refused,
}

impl Admission {
    fn from_reserved(reserved: bool) -> Self {
        if reserved {
            Self::Reserved
        } else {
            Self::Refused
        }
    }
}

impl Ledger {
    /// Sets the hard limit, `usize::MAX` for none.
    pub(crate) fn set_hard_limit(&self, bytes: usize) -> Result<(), HardLimitError> {
        let before = self.terms.swap_hard_limit(bytes);
        let most = self.most_live();
        if most > bytes {
            self.terms.swap_hard_limit(before);
            return Err(HardLimitError::BelowLive {
                requested: bytes,
                least: most,
            });
        }
        Ok(())
    }

    /// Returns what can be live at the most.
    pub(crate) fn most_live(&self) -> usize {
        self.published
            .latest_live_bytes()
            .saturating_add(self.terms.latest_error_bound())
    }

    /// Widens the bound for a shard that wants to go from the threshold `before` to `threshold`, as far as the limit
    /// permits, and returns the threshold it may go to.
    #[cold]
    pub(crate) fn widen_within_limit(&self, threshold: usize, before: usize) -> usize {
        let limit = self.terms.hard_limit();
        if limit == usize::MAX {
            self.terms.widen_bound(threshold.saturating_sub(before));
            return threshold;
        }
        let left = limit.saturating_sub(self.most_live());
        let threshold = threshold.min((left / SHARE).saturating_add(1));
        let by = threshold.saturating_sub(before);
        if by == 0 {
            return threshold;
        }
        self.terms.widen_bound(by);
        if self.most_live() <= limit {
            return threshold;
        }
        self.terms.narrow_bound(by);
        before
    }

    /// Gives leave to allocate `bytes` to the owner of a shard that counts in batches; a reservation publishes what it
    /// had pending as well.
    pub(crate) fn admit_batched(&self, shard: &Shard, bytes: usize) -> Admission {
        let pending = (shard.net() - shard.published()).bytes;
        // Beyond the range only with what is pending, which is then published by itself.
        let after = pending.checked_add_unsigned(bytes);
        if after.is_some_and(|after| after < shard.threshold().cast_signed()) {
            // Inside what the error bound reckons with.
            return Admission::Free;
        }
        let reserved = after.is_some_and(|after| self.reserve(after)) || {
            // What is pending was reckoned with, and so was the threshold it stood under.
            let _shown_later = self.tighten(shard);
            self.reserve(bytes.cast_signed())
        };
        if reserved {
            let net = shard.net();
            shard.note_published(Net {
                bytes: net.bytes.wrapping_add_unsigned(bytes),
                blocks: shard.published().blocks,
            });
            shard.note_publish();
        }
        Admission::from_reserved(reserved)
    }

    /// Gives leave to allocate `bytes` to a thread that has nothing pending and no room.
    pub(crate) fn admit_exact(&self, bytes: usize) -> Admission {
        Admission::from_reserved(self.reserve(bytes.cast_signed()))
    }

    fn reserve(&self, bytes: isize) -> bool {
        let limit = self.terms.hard_limit();
        for _ in 0..ATTEMPTS {
            let Some(most) = limit.checked_sub(self.terms.latest_error_bound()) else {
                return false;
            };
            if !self.published.add_within(bytes, most) {
                return false;
            }
            if self.most_live() <= limit {
                return true;
            }
            self.published.take_off(bytes);
        }
        false
    }

    /// Takes back a reservation of the owner of a shard that counts in batches.
    pub(crate) fn cancel_batched(&self, shard: &Shard, bytes: usize) {
        let published = shard.published();
        shard.note_published(Net {
            bytes: published.bytes.wrapping_sub_unsigned(bytes),
            ..published
        });
        self.cancel_exact(bytes);
    }

    /// Takes back any other reservation.
    pub(crate) fn cancel_exact(&self, bytes: usize) {
        self.published.take_off(bytes.cast_signed());
    }

    /// Counts an operation whose bytes were reserved, on a shard under exact counting.
    pub(crate) fn count_reserved(
        &self,
        shard: &Shard,
        operation: Operation,
        bytes: usize,
    ) -> Attention {
        shard.count(operation, bytes);
        shard.note_publish();
        self.publish_block(operation)
    }

    /// Counts an operation whose bytes were reserved and that no thread's shard holds.
    pub(crate) fn count_reserved_shared(
        &self,
        shared: &Shard,
        operation: Operation,
        bytes: usize,
    ) -> Attention {
        shared.count_shared(operation, bytes);
        self.publish_block(operation)
    }

    fn publish_block(&self, operation: Operation) -> Attention {
        let net = Net {
            bytes: 0,
            ..Net::of(operation, 0)
        };
        let attention = self.add(net);
        attention.or(self.show_reserved())
    }

    /// Lets bytes that were reserved count for the peak and for triggers, now that they are allocated.
    pub(crate) fn show_reserved(&self) -> Attention {
        self.published.live_bytes();
        Attention::if_any(self.published.is_near_bytes_mark(self.terms.error_bound()))
    }
}
