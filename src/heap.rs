//! The process's account, and how it is read.

use crate::account::Account;
use crate::hard_limit::HardLimitError;
use crate::ledger::Ledger;
use crate::local;
use crate::readings::{Readings, reading_methods};
use crate::sum::Sum;
use crate::threads::{self, ThreadReading};
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

reading_methods! {
    impl for Heap,
    example: "tally_alloc::heap()",
    error_bound: "It is the sum, over the threads that have a shard, of the threshold that each is under, less one; 0 in exact mode. While there is a hard limit, what threads are just asking for is in it as well.",
    thread_totals: "since it started.",
    flush: "A thread that ends does so by itself, but `std::thread::scope` may return before the last \
            steps of its threads; where `live_bytes` must be close right after it, flush at the end \
            of each closure.",
}

impl Readings for Heap {
    fn own_totals(&self) -> Totals {
        local::totals()
    }

    fn flush_own(&self) {
        local::flush();
    }
}

impl Heap {
    /// Sets a limit, in bytes, that live bytes never exceed (`usize::MAX` for none): an allocation that would is refused, before the inner allocator is
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
    /// it was set, and by up to a threshold for each thread that was just then publishing. A request of `n` bytes is refused no earlier than when `live bytes + n + 2 × error bound` exceeds
    /// the limit, with the [`error_bound`](Self::error_bound) of that moment; near the limit the threads that run
    /// come down with their thresholds, so that bound shrinks. In exact mode nothing is in it but what other threads are just
    /// asking for, and the limit is met to the byte.
    ///
    /// # Cost
    ///
    /// In batches: nothing on the fast path. A thread that has used up its room asks for leave before it allocates.
    ///
    /// # Fork
    ///
    /// In a child that was forked while another thread was in this call, it may wait for ever. What other threads were just asking
    /// for stays in the child's [`error_bound`](Self::error_bound), and away from what its limit leaves.
    ///
    /// # Errors
    ///
    /// [`HardLimitError::BelowLive`] when more may be live already; the limit is then what it was, all along. (Only where
    /// other threads allocate past the new limit during the call, it is in force for as long as it takes to see
    /// that.)
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
        self.account.ledger.clear_hard_limit();
    }

    /// Lists the living threads that have allocated or freed anything, each with what it has done itself, in no
    /// particular order.
    ///
    /// Allocates, and reads a file for each thread's name: a call for a debugging page, not for a loop. No thread
    /// is stopped or waited for.
    ///
    /// # Accuracy
    ///
    /// No figure of one thread is ever under the id of another. Each thread is read on its own, at some moment during
    /// the call, with each field as it was then or a little later; one that comes or ends during the call may be
    /// missing. The totals do not add up to [`totals`](Self::totals): that has the threads that have ended, too, and
    /// what threads do past their thread-local destructors.
    ///
    /// In a forked child the parent's threads stay in the list, without names, since the account goes on from theirs;
    /// so does the thread that forked, under the id it had in the parent.
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
    ///     for thread in heap().threads() {
    ///         let name = thread.name.unwrap_or_default();
    ///         println!("{:>8} {name:<15} {:>12} bytes net", thread.id, thread.totals.net_bytes());
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadReading> {
        threads::readings(self.account)
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

    fn publishes(&self) -> usize {
        self.account.publishes()
    }
}
