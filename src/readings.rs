//! How an account is read: the methods that [`Heap`](crate::Heap) and
//! [`Counter`](crate::Counter) have in common, written once.

use crate::totals::Totals;
use crate::watch::Watched;

/// What the readings are taken from, beside the ledger and the sum.
pub(crate) trait Readings: Watched {
    /// Returns what the calling thread has counted since it came.
    fn own_totals(&self) -> Totals;

    /// Publishes what the calling thread has pending.
    fn flush_own(&self);
}

/// Gives a type that has [`Readings`] the public methods. `$example` is an expression, as text, for an
/// account of the type; the docs of a method end with the text given for it.
macro_rules! reading_methods {
    (
        impl $(<$mode:ident>)? for $account:ty,
        example: $example:literal,
        error_bound: $error_bound:literal,
        thread_totals: $thread_totals:literal,
        flush: $flush:literal,
    ) => {
        impl $(<$mode: crate::mode::Mode>)? $account {
            /// Returns the published live bytes: two words read, whatever the number of threads.
            ///
            /// # Accuracy
            ///
            /// Off from the truth, in either direction, by at most [`error_bound`](Self::error_bound)
            /// bytes; never negative. In exact mode, the truth after every operation that has returned.
            #[must_use]
            #[inline]
            pub fn live_bytes(&self) -> usize {
                crate::watch::Watched::ledger(self).published.live_bytes()
            }

            /// Returns the bytes by which [`live_bytes`](Self::live_bytes) may be off right now.
            #[doc = $error_bound]
            ///
            /// # Accuracy
            ///
            /// Live bytes are within the bound of the moment at which they are read; but bound and live bytes are
            /// read one after the other, and the bound moves when threads come, go, change between
            /// thresholds or modes, or ask for something under a hard limit. A thread that goes, or comes under a lower threshold, publishes what it held
            /// back and *then* narrows the bound: so a bound read after the live bytes can be too small for them.
            /// A thread that comes, or comes under a higher threshold, widens the bound and *then* holds
            /// back: so a bound read before can be too small as well.
            ///
            /// Read the bound both before and after. The larger of the two holds for the live bytes in
            /// between when threads only came meanwhile, or only went; the sum of the two when some came and
            /// others went. (A thread that came, held back and went again within those few nanoseconds is in
            /// neither.) Where threads only do their work the bound stands still, and one reading will do.
            ///
            /// ```
            #[doc = concat!("let account = ", $example, ";")]
            /// let before = account.error_bound();
            /// let live = account.live_bytes();
            /// let off_by_at_most = before.max(account.error_bound());
            /// # let _ = (live, off_by_at_most);
            /// ```
            #[must_use]
            pub fn error_bound(&self) -> usize {
                crate::watch::Watched::ledger(self).terms.error_bound()
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
            pub fn totals(&self) -> crate::totals::Totals {
                crate::watch::Watched::sum(self).totals
            }

            /// Returns what the calling thread itself has done
            #[doc = $thread_totals]
            ///
            /// A block that one thread allocates and another frees counts as allocated here and as
            /// deallocated there, so a thread's own net can be below zero.
            ///
            /// # Accuracy
            ///
            /// Exact. Zero for a thread that is past its thread-local destructors; what such a thread
            /// still does is in [`totals`](Self::totals) all the same.
            #[must_use]
            pub fn thread_totals(&self) -> crate::totals::Totals {
                crate::readings::Readings::own_totals(self)
            }

            /// Returns the highest published live bytes since the account began or the last
            /// [`reset_peak`](Self::reset_peak).
            ///
            /// # Accuracy
            ///
            /// Never below a [`live_bytes`](Self::live_bytes) that was read before; like it, within
            /// [`error_bound`](Self::error_bound) of the truth.
            #[must_use]
            pub fn peak_bytes(&self) -> usize {
                crate::watch::Watched::ledger(self).published.peak_bytes()
            }

            /// Starts the peak anew from the published live bytes of now. A publish that another thread
            /// has under way counts as coming after. A [`Scope`](crate::Scope) that is open keeps its own.
            ///
            /// Takes a lock that only this and the opening of scopes take, for a moment; in a child that was forked
            /// while another thread held it, it may be taken for ever.
            pub fn reset_peak(&self) {
                crate::peaks::PEAKS.reset(&crate::watch::Watched::ledger(self).published);
            }

            /// Publishes the calling thread's pending bytes now, and brings it under the present
            /// [`threshold`](Self::threshold).
            ///
            #[doc = $flush]
            pub fn flush(&self) {
                crate::readings::Readings::flush_own(self);
            }

            /// Returns the pending bytes, from 1 up, at which a thread publishes: 16 KiB unless it was
            /// set.
            #[must_use]
            pub fn threshold(&self) -> usize {
                crate::watch::Watched::ledger(self).terms.threshold()
            }

            /// Sets the threshold, in bytes. 0 means the same as 1: every operation is published.
            ///
            /// A thread comes under the new threshold when it next takes the slow path, at the latest
            /// once it has allocated, or freed, as many bytes as the old one, or calls [`flush`](Self::flush); until
            /// then [`error_bound`](Self::error_bound) goes by the old one. In exact mode there is
            /// nothing to wait for and the threshold has no effect.
            ///
            /// # Errors
            ///
            /// [`ThresholdError::TooLarge`](crate::ThresholdError::TooLarge) above
            /// [`MAX_THRESHOLD`](crate::MAX_THRESHOLD); the threshold stays what it was.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let account = ", $example, ";")]
            ///
            /// account.set_threshold(64 * 1024)?;
            /// assert_eq!(account.threshold(), 64 * 1024);
            /// assert!(account.set_threshold(usize::MAX).is_err());
            /// assert_eq!(account.threshold(), 64 * 1024);
            /// # Ok::<(), tally_alloc::ThresholdError>(())
            /// ```
            pub fn set_threshold(&self, bytes: usize) -> Result<(), crate::ThresholdError> {
                crate::watch::Watched::ledger(self)
                    .terms
                    .set_threshold(crate::threshold::checked(bytes)?);
                Ok(())
            }

            /// Returns how often threads have written to the shared cache line: the figure that a
            /// threshold is chosen by. Grows only; takes time like [`totals`](Self::totals).
            #[must_use]
            pub fn shared_writes(&self) -> usize {
                crate::watch::Watched::publishes(self)
            }
        }

        impl $(<$mode: crate::mode::Mode>)? std::fmt::Debug for $account {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(crate::readings::name_of(stringify!($account)))
                    .field("live_bytes", &self.live_bytes())
                    .field("error_bound", &self.error_bound())
                    .field("peak_bytes", &self.peak_bytes())
                    .field("threshold", &self.threshold())
                    .field("totals", &self.totals())
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use reading_methods;

/// Returns a type's name without its parameters.
pub(crate) fn name_of(account: &'static str) -> &'static str {
    account.split('<').next().unwrap_or(account).trim_end()
}
