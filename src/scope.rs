//! `Scope`: what an account sees between two points of a program.

use std::fmt;
use std::marker::PhantomData;

use crate::counter::Counter;
use crate::heap::Heap;
use crate::mode::Mode;
use crate::peaks::{Kept, PEAKS};
use crate::readings::Readings;
use crate::totals::Totals;

/// A stretch of a program, from the call of [`Heap::scope`] or [`Counter::scope`] on: what this thread did in it,
/// what all threads did, and the peak.
///
/// A scope is read as often as one likes while it is open, and ends when it is dropped. Scopes nest, overlap, and may
/// be open on any number of threads at once; none shows in the figures of another, nor in its own, nor does it
/// disturb [`Heap::peak_bytes`] or is disturbed by [`Heap::reset_peak`]. It stays on the thread that opened it:
///
/// ```compile_fail,E0277
/// let scope = tally_alloc::heap().scope();
/// std::thread::spawn(move || scope.thread_totals());
/// ```
///
/// To measure one call, there is [`Heap::measure`]; to hold a test to a number of blocks or bytes,
/// [`assert_allocates!`](crate::assert_allocates).
///
/// # Cost
///
/// An open scope costs no operation anything. To open one takes a sum over all threads
/// ([`Heap::totals`]), a lock that only openings and [`Heap::reset_peak`] take, and a step for each
/// scope that is open; it allocates nothing. In a child that was forked while another thread was opening a scope,
/// that lock may be taken for ever.
///
/// A scope that is never dropped ([`mem::forget`](std::mem::forget)) does no harm but to keep its place, 128 bytes, and
/// to be passed over by each opening.
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
///     let scope = heap().scope();
///     let numbers: Vec<u64> = Vec::with_capacity(1_000_000);
///     let own = scope.thread_totals();
///     assert_eq!((own.allocations, own.bytes_allocated), (1, 8_000_000));
///     drop(numbers);
///     assert_eq!(scope.thread_totals().net_bytes(), 0);
///     assert!(scope.peak_bytes() + heap().error_bound() >= 8_000_000);
/// }
/// ```
#[must_use = "a scope measures until it is dropped"]
pub struct Scope<'a> {
    account: &'a dyn Readings,
    totals: Totals,
    thread_totals: Totals,
    kept: Option<&'static Kept>,
    /// The thread's own totals mean nothing on another.
    stays: PhantomData<*const ()>,
}

impl<'a> Scope<'a> {
    fn open(account: &'a dyn Readings) -> Self {
        let kept = PEAKS.open(&account.ledger().published);
        Self {
            totals: account.sum().totals,
            thread_totals: account.own_totals(),
            account,
            kept,
            stays: PhantomData,
        }
    }

    /// Returns what this thread has done since the scope was opened.
    ///
    /// Blocks may be freed in a scope that were allocated before it or elsewhere, so ask for
    /// [`net_bytes`](Totals::net_bytes) rather than `live_bytes`.
    ///
    /// # Accuracy
    ///
    /// Exact. Zero when the thread has come past its thread-local destructors.
    #[must_use]
    pub fn thread_totals(&self) -> Totals {
        match self.account.own_totals() {
            // Its counters only grow, so it has none any more.
            now if now == Totals::default() => now,
            now => now - self.thread_totals,
        }
    }

    /// Returns what all threads have done since the scope was opened. Takes time in proportion to their number.
    ///
    /// # Accuracy
    ///
    /// Each field is exact but for what other threads do while it is opened or read. The net of bytes or blocks is that
    /// of what was live at two moments, one in each, and off by at most what was freed during the two.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.account.sum().totals - self.totals
    }

    /// Returns the highest published live bytes of the account since the scope was opened, all threads together and
    /// what was live before it included.
    ///
    /// # Accuracy
    ///
    /// Never below a [`live_bytes`](Heap::live_bytes) that was read in the scope. Let `bound` be the highest
    /// [`error_bound`](Heap::error_bound) in the scope:
    ///
    /// > highest live bytes − `bound` ≤ `peak_bytes()` ≤ highest live bytes + `bound`
    ///
    /// where a publish that another thread had under way at the opening counts as coming after it. So what a thread
    /// allocates and frees again below its [`threshold`](Heap::threshold) need not show; in exact mode it does.
    ///
    /// If the system had no memory for one scope more, it is the peak of the account: too high, never too low.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        let published = &self.account.ledger().published;
        self.kept
            .map_or_else(|| published.peak_bytes(), |kept| kept.peak_bytes(published))
    }

    /// Returns the three figures of now.
    #[must_use]
    pub fn measured(&self) -> Measured {
        Measured {
            thread_totals: self.thread_totals(),
            totals: self.totals(),
            peak_bytes: self.peak_bytes(),
        }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.kept {
            PEAKS.close(kept);
        }
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("measured", &self.measured())
            .finish_non_exhaustive()
    }
}

/// What was measured between two points: the figures of a [`Scope`], with its accuracy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// What the thread itself did ([`Scope::thread_totals`]).
    pub thread_totals: Totals,
    /// What all threads did ([`Scope::totals`]).
    pub totals: Totals,
    /// The highest published live bytes ([`Scope::peak_bytes`]).
    pub peak_bytes: usize,
}

/// Gives an account the methods that open scopes.
macro_rules! scope_methods {
    (impl $(<$mode:ident>)? for $account:ty, example: $example:literal, allocates: $allocates:literal) => {
        impl $(<$mode: Mode>)? $account {
            /// Opens a [`Scope`]: from here on, until it is dropped, it tells what happened.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let account = ", $example, ";")]
            /// let scope = account.scope();
            #[doc = $allocates]
            /// assert_eq!(scope.thread_totals().allocations, 1);
            /// ```
            pub fn scope(&self) -> Scope<'_> {
                Scope::open(self)
            }

            /// Runs `work` in a [`Scope`]; returns what it returned and what was measured.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let account = ", $example, ";")]
            /// let ((), measured) = account.measure(|| {
            #[doc = concat!("    ", $allocates)]
            /// });
            /// assert_eq!(measured.thread_totals.allocations, 1);
            /// assert!(measured.totals.allocations >= 1);
            /// ```
            pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Measured) {
                let scope = self.scope();
                let result = work();
                let measured = scope.measured();
                (result, measured)
            }
        }
    };
}

scope_methods! {
    impl for Heap,
    example: "{ #[global_allocator] static GLOBAL: tally_alloc::TallyAlloc = tally_alloc::TallyAlloc::system(); tally_alloc::heap() }",
    allocates: "std::hint::black_box(Box::new(7));"
}

scope_methods! {
    impl<M> for Counter<M>,
    example: "tally_alloc::Counter::new()",
    allocates: "account.add(100);"
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr;

    use crate::counter::Counter;

    /// No other test of this program opens scopes.
    #[test]
    fn a_scope_that_is_dropped_gives_its_place_back() {
        let counter = Counter::new();
        let first = counter.scope().kept.expect("memory");
        for _ in 0..100 {
            counter.measure(|| ());
            let again = counter.scope().kept.expect("memory");
            assert!(ptr::eq(first, again), "{again:?} is another place");
        }
    }
}
