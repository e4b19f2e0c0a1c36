//! The process's account, and how it is read.

use std::fmt;

use crate::account::Account;
use crate::hard_limit::HardLimitError;
use crate::ledger::Ledger;
use crate::local;
use crate::sum::Sum;
use crate::threshold::{self, ThresholdError};
use crate::totals::Totals;
use crate::watch::{Watch, Watched};

/// Returns the account of this process: of everything that went through any
/// [`TallyAlloc`](crate::TallyAlloc).
///
/// Each copy of this crate in a process has an account of its own: a plugin that was linked with
/// its own copy, or a second version of the crate, counts what went through *its* allocators. Two
/// copies can be told apart by the address of what this returns, and a copy whose allocator is
/// not installed says so ([`Heap::is_installed`]).
///
/// # Examples
///
/// ```
/// use tally_alloc::{TallyAlloc, heap};
///
/// #[global_allocator]
/// static GLOBAL: TallyAlloc = TallyAlloc::system();
///
/// fn main() {
///     println!("{} bytes live, at most {} off", heap().live_bytes(), heap().error_bound());
/// }
/// ```
#[must_use]
#[inline]
pub fn heap() -> &'static Heap {
    static HEAP: Heap = Heap {
        account: &local::ACCOUNT,
    };
    &HEAP
}

/// The process's account. [`heap`] returns the one there is.
pub struct Heap {
    account: &'static Account,
}

impl Heap {
    /// Returns the published live bytes: one cache line read, whatever the number of threads.
    ///
    /// # Accuracy
    ///
    /// Off from the truth, in either direction, by at most [`error_bound`](Self::error_bound)
    /// bytes; never negative. In exact mode, the truth after every operation that has returned.
    #[must_use]
    #[inline]
    pub fn live_bytes(&self) -> usize {
        self.account.ledger.published.live_bytes()
    }

    /// Returns the bytes by which [`live_bytes`](Self::live_bytes) may be off right now: the sum,
    /// over the threads that have a shard, of the threshold that each is under, less one. 0 in
    /// exact mode.
    #[must_use]
    pub fn error_bound(&self) -> usize {
        self.account.ledger.terms.error_bound()
    }

    /// Returns the exact totals, summed over every thread's counters, those of ended threads
    /// included. Takes time in proportion to the largest number of threads that were alive at
    /// once; locks nothing and stops nobody.
    ///
    /// # Accuracy
    ///
    /// With no operation under way, the truth. While threads run, its live bytes and blocks are
    /// never below what was live throughout the call, and above it by at most what was freed
    /// during the call; and no field is lower than in an earlier call that this one is ordered
    /// after.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.account.sum().totals
    }

    /// Returns what the calling thread itself has done since it started.
    ///
    /// A block that one thread allocates and another frees counts as allocated here and as
    /// deallocated there, so a thread's own net can be below zero.
    ///
    /// # Accuracy
    ///
    /// Exact. Zero for a thread that is past its thread-local destructors; what such a thread
    /// still does is in [`totals`](Self::totals) all the same.
    #[must_use]
    pub fn thread_totals(&self) -> Totals {
        local::totals()
    }

    /// Returns the highest published live bytes since the program began or the last
    /// [`reset_peak`](Self::reset_peak).
    ///
    /// # Accuracy
    ///
    /// Never below a [`live_bytes`](Self::live_bytes) that was read before; like it, within
    /// [`error_bound`](Self::error_bound) of the truth.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.account.ledger.published.peak_bytes()
    }

    /// Starts the peak anew from the published live bytes of now. A publish that another thread
    /// has under way counts as coming after.
    pub fn reset_peak(&self) {
        self.account.ledger.published.reset_peak();
    }

    /// Publishes the calling thread's pending bytes now, and brings it under the present
    /// [`threshold`](Self::threshold).
    ///
    /// A thread that ends does so by itself, but `std::thread::scope` may return before the last
    /// steps of its threads; where `live_bytes` must be close right after it, flush at the end of
    /// each closure.
    pub fn flush(&self) {
        local::flush();
    }

    /// Returns the pending bytes, from 1 up, at which a thread publishes: 16 KiB unless it was
    /// set.
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.account.ledger.terms.threshold()
    }

    /// Sets the threshold, in bytes. 0 means the same as 1: every operation is published.
    ///
    /// A thread comes under the new threshold when it next takes the slow path, at the latest
    /// after twice its old one has passed on one side, or calls [`flush`](Self::flush); until then
    /// [`error_bound`](Self::error_bound) goes by the old one. In exact mode there is nothing to
    /// wait for and the threshold has no effect.
    ///
    /// # Errors
    ///
    /// [`ThresholdError::TooLarge`] above [`MAX_THRESHOLD`](crate::MAX_THRESHOLD); the threshold
    /// stays what it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use tally_alloc::heap;
    ///
    /// heap().set_threshold(64 * 1024)?;
    /// assert_eq!(heap().threshold(), 64 * 1024);
    /// assert!(heap().set_threshold(usize::MAX).is_err());
    /// assert_eq!(heap().threshold(), 64 * 1024);
    /// # Ok::<(), tally_alloc::ThresholdError>(())
    /// ```
    pub fn set_threshold(&self, bytes: usize) -> Result<(), ThresholdError> {
        self.account
            .ledger
            .terms
            .set_threshold(threshold::checked(bytes)?);
        Ok(())
    }

    /// Sets a limit that live bytes never exceed: an allocation that would is refused, before the inner allocator is
    /// asked, and nothing is called back.
    ///
    /// What a refusal does is the caller's matter. `Vec::try_reserve` and its like return an error, and the program
    /// goes on. What can not fail, such as `Box::new` or `Vec::push`, ends the program through
    /// [`handle_alloc_error`](std::alloc::handle_alloc_error) (an abort: "memory allocation of … bytes failed"). A
    /// [`Trigger`](crate::Trigger) some way below the limit is how a program makes room in time.
    ///
    /// # Accuracy
    ///
    /// Exact live bytes never exceed the limit, on any number of threads, except by allocations that were under way when
    /// it was set. A request of `n` bytes is refused no earlier than when `live bytes + n + 2 × error bound` exceeds
    /// the limit, with the [`error_bound`](Self::error_bound) of that moment; near the limit the threads that run
    /// come down with their thresholds, so that bound shrinks. In exact mode it is met to the byte.
    ///
    /// # Cost
    ///
    /// In batches: nothing on the fast path. A thread that has used up its room publishes before it allocates.
    ///
    /// # Errors
    ///
    /// [`HardLimitError::BelowLive`] when more may be live already; the limit is then what it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use tally_alloc::{TallyAlloc, heap};
    ///
    /// #[global_allocator]
    /// static GLOBAL: TallyAlloc = TallyAlloc::system();
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     heap().set_hard_limit(64 << 20)?;
    ///     let mut huge: Vec<u8> = Vec::new();
    ///     assert!(huge.try_reserve(100 << 20).is_err());
    ///     assert!(huge.try_reserve(1 << 20).is_ok());
    ///     Ok(())
    /// }
    /// ```
    pub fn set_hard_limit(&self, bytes: usize) -> Result<(), HardLimitError> {
        self.account.ledger.set_hard_limit(bytes)
    }

    /// Returns the hard limit, in bytes, if there is one.
    #[must_use]
    pub fn hard_limit(&self) -> Option<usize> {
        Some(self.account.ledger.terms.hard_limit()).filter(|&limit| limit != usize::MAX)
    }

    /// Takes the hard limit away.
    pub fn clear_hard_limit(&self) {
        self.account.ledger.terms.swap_hard_limit(usize::MAX);
    }

    /// Returns how often threads have written to the shared cache line: the figure that a
    /// threshold is chosen by. Grows only; takes time like [`totals`](Self::totals).
    #[must_use]
    pub fn shared_writes(&self) -> usize {
        self.account.publishes()
    }

    /// Returns whether the allocator has served a request: `false` in a program that links this
    /// crate without installing [`TallyAlloc`](crate::TallyAlloc) (and never uses one by hand),
    /// where every figure is zero.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        self.account.has_counted()
    }
}

impl Watch for Heap {}

impl Watched for Heap {
    fn ledger(&self) -> &Ledger {
        self.account.ledger()
    }

    fn sum(&self) -> Sum {
        self.account.sum()
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap")
            .field("live_bytes", &self.live_bytes())
            .field("error_bound", &self.error_bound())
            .field("peak_bytes", &self.peak_bytes())
            .field("threshold", &self.threshold())
            .field("totals", &self.totals())
            .finish_non_exhaustive()
    }
}
