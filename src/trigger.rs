//! A trigger: a watermark, a policy and the cycle between them.
//!
//! The watermark is what publishing threads see ([`watermark`](crate::watermark)); everything else here runs on
//! the threads that poll, wait and collect, and may lock.
//!
//! # The cycle
//!
//! A publish that finds the limit reached makes the watermark due. One poll, or one wait, takes it and
//! notes what the collection begins with. [`Trigger::collected`] ends the cycle: it takes the exact figures again,
//! asks the policy for the next limit, arms the watermark with it and looks at once whether it is reached already,
//! so that nothing allocated in between is lost.
//!
//! # Locks
//!
//! Publishing threads take none. `policy` is held from the start of [`Trigger::collected`] to its end, so that one
//! cycle ends at a time; `history` for a few instructions, and never while the policy is asked. So a policy may
//! allocate, take its time and look at its own trigger, but not end a cycle of it.

mod announcement;
#[cfg(feature = "tracing")]
mod events;
mod history;
mod rearm;
mod waiters;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use announcement::{Announcement, TriggerError};

use crate::policy::{Policy, Resumable};
use crate::report::{Cause, Report};
use crate::sum::Sum;
use crate::watch::{Watch, Watched};
use crate::watermark::{Evidence, Measure, Watermark, or_zero};
use history::History;
use rearm::Rearm;
use waiters::Waiters;

/// Decides when to collect.
///
/// Watches one figure of an account, and is due once the figure reaches the limit that its policy has set. Any
/// number of triggers may watch one account; each has its own limit and its own cycles.
///
/// # Accuracy
///
/// * Never due while the exact figure is below the limit (but for [`announce`](Self::announce), whose purpose that is).
/// * Due at the latest when some thread publishes a change of it with the exact figure at or above the limit. Since each
///   thread may hold back a threshold either way, the figure can by then be above the limit by less than twice
///   [`Heap::error_bound`](crate::Heap::error_bound), plus one block per thread that is just publishing (for
///   [`Measure::LiveBlocks`], twice that, in blocks). In exact mode: by the blocks just being published.
/// * The decision goes by a figure that was certainly reached: the exact one, less what other threads freed while it was
///   summed up. A crossing by less than that, or one that is undone while a thread decides, is left to the next publish.
/// * A limit is in force from the moment it is armed. What is allocated between the collector's last look and that moment
///   adds to the overshoot, unless the collector has stopped the threads.
/// * [`Measure::AllocatedBytes`] is looked at when a thread takes its slow path, at the latest after its threshold of
///   traffic on one side; the figure can be above the limit by that much per thread, and by as much again for a thread whose look
///   met the arming.
///
/// # Cost
///
/// Armed and not near its limit, a trigger on what is live adds nothing to an operation: publishing threads compare the
/// total with the lowest limit whether or not there is one. [`poll`](Self::poll) is one relaxed load. Within
/// [`error_bound`](crate::Heap::error_bound) of the limit each publish takes an exact sum, in time proportional to the number
/// of threads. A trigger on [`Measure::AllocatedBytes`] takes one whenever a thread takes its slow path: in exact mode, at
/// every operation.
///
/// # Tracing
///
/// With the feature `tracing`, two events of level `DEBUG` and target `tally_alloc::trigger`. Amounts are in the measure.
///
/// | message | when | fields |
/// | --- | --- | --- |
/// | `collection due` | as a poll or a wait is about to return that the caller is to collect | `measure` ([`Measure::name`]), `limit`, `figure` (what reached it), `evidence` ([`Evidence::name`]) |
/// | `collected` | at the end of [`collected`](Self::collected) | `measure`, `pause_seconds`, `live_before`, `live_after`, `next_limit` |
///
/// Both come from the thread that polls, waits or collects, outside the allocator and with no lock of the trigger held: a
/// subscriber may allocate, and may read the trigger. Triggers are told apart by the span their thread is in.
///
/// # Fork
///
/// Counting goes on in a forked child, and so does a trigger's crossing. But a trigger that other threads were using at
/// that moment may be locked for ever there, or be waited for by a thread that the child does not have: in the child,
/// make triggers of its own.
///
/// # Examples
///
/// A runtime whose threads poll at safepoints:
///
/// ```
/// use std::time::Instant;
/// use tally_alloc::policy::Proportional;
/// use tally_alloc::{Measure, TallyAlloc, Trigger, heap};
///
/// #[global_allocator]
/// static GLOBAL: TallyAlloc = TallyAlloc::system();
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let policy = Proportional::new(1.0, 1 << 20..=1 << 30)?;
///     let trigger = Trigger::new(heap(), Measure::LiveBytes, policy)?;
///     let mut garbage = Vec::new();
///     for _ in 0..10_000 {
///         garbage.push(vec![0_u8; 1024]);
///         if trigger.poll() {
///             let begun = Instant::now();
///             garbage.clear();
///             trigger.collected(begun.elapsed());
///         }
///     }
///     assert!(trigger.report().cycles >= 5);
///     Ok(())
/// }
/// ```
///
/// A thread of its own that collects:
///
/// ```
/// use std::time::{Duration, Instant};
/// use tally_alloc::policy::FixedLimit;
/// use tally_alloc::{Measure, TallyAlloc, Trigger, heap};
///
/// #[global_allocator]
/// static GLOBAL: TallyAlloc = TallyAlloc::system();
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let limit = heap().totals().live_bytes() + (8 << 20);
///     let trigger = Trigger::new(heap(), Measure::LiveBytes, FixedLimit::new(limit)?)?;
///     std::thread::scope(|scope| {
///         let collector = scope.spawn(|| {
///             trigger.wait();
///             let begun = Instant::now();
///             // Collect here.
///             trigger.collected(begun.elapsed());
///         });
///         let cache = vec![0_u8; 8 << 20];
///         collector.join().unwrap();
///         drop(cache);
///     });
///     assert_eq!(trigger.report().cycles, 1);
///     Ok(())
/// }
/// ```
pub struct Trigger<'a, P: Policy = Box<dyn Policy>> {
    account: &'a dyn Watched,
    mark: &'a Watermark,
    measure: Measure,
    /// Held while a cycle ends.
    policy: Mutex<P>,
    history: Mutex<History>,
    waiters: Waiters,
}

impl<'a, P: Policy> Trigger<'a, P> {
    /// Makes a trigger and arms it with the policy's initial limit. It is due at once if that is reached already.
    ///
    /// # Errors
    ///
    /// [`TriggerError::OutOfMemory`] when there is no memory for another.
    pub fn new(account: &'a impl Watch, measure: Measure, policy: P) -> Result<Self, TriggerError> {
        // The policy's code comes first: if it panics, there is nothing to take back yet.
        let limit = policy.initial_limit();
        let growth_steps = policy.growth_steps();
        let ledger = account.ledger();
        let mark = ledger.claim_watermark().ok_or(TriggerError::OutOfMemory)?;
        let allocated = account.sum().totals.bytes_allocated;
        let trigger = Self {
            account,
            mark,
            measure,
            policy: Mutex::new(policy),
            history: Mutex::new(History::new(allocated, growth_steps)),
            waiters: Waiters::default(),
        };
        trigger.arm(limit, allocated);
        Ok(trigger)
    }

    /// Arms a new generation and looks whether its limit is reached already.
    fn arm(&self, limit: usize, allocated: usize) {
        let ledger = self.account.ledger();
        ledger.arm(self.mark, self.measure, limit, allocated);
        self.account.consult();
    }

    /// Returns whether a collection is due and the caller is the one to run it: of all threads that poll or wait, one gets
    /// `true` for each crossing. It must call [`collected`](Self::collected) afterwards; until then the trigger does not
    /// fire again.
    ///
    /// One relaxed load when nothing is due.
    #[inline]
    #[must_use]
    pub fn poll(&self) -> bool {
        self.mark.is_due() && self.begin()
    }

    #[cold]
    fn begin(&self) -> bool {
        self.tell(self.take())
    }

    /// Takes the crossing if it is due and nobody has.
    fn take(&self) -> Option<Cause> {
        let crossing = self.mark.take()?;
        // Publishing threads need not come back for this limit.
        self.account.ledger().refresh_marks();
        let sum = self.account.sum();
        let cause = Cause::from(crossing);
        let mut history = self.history();
        let live = self.figure(&sum, history.allocated);
        history.begin(live, cause);
        Some(cause)
    }

    /// Tells of a crossing that the calling thread has taken, if it has. It holds no lock here, so that whoever
    /// listens may look at the trigger.
    fn tell(&self, taken: Option<Cause>) -> bool {
        #[cfg(feature = "tracing")]
        if let Some(cause) = &taken {
            events::fired(self.measure, cause);
        }
        taken.is_some()
    }

    /// Sleeps until a collection is due and the caller is the one to run it, as in [`poll`](Self::poll). Any number of threads
    /// may wait; each crossing wakes one to `true`. Nothing else ends it: who has to stop waits with
    /// [`wait_timeout`](Self::wait_timeout).
    pub fn wait(&self) {
        while !self.wait_until(None) {}
    }

    /// Sleeps like [`wait`](Self::wait), but no longer than `timeout`; returns whether the caller is to collect.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> bool {
        self.tell(self.waiters.wait(self.mark, || self.take(), deadline))
    }

    /// Announces that `amount` (bytes or blocks, in the trigger's measure) are about to be allocated in one go, so that a
    /// collection can make room first.
    ///
    /// After [`Announcement::Collect`], collect (as after a [`poll`](Self::poll), which will be `true` for one thread) and announce
    /// again: it then fits, or is refused. A refusal stands until the next collection, whatever it was for; so a
    /// program that keeps asking for what it can not have does not keep collecting.
    pub fn announce(&self, amount: usize) -> Announcement {
        let estimate = self.account.ledger().estimate(self.measure);
        if estimate.is_some_and(|it| it.most().saturating_add(amount) < self.mark.limit()) {
            return Announcement::Fits;
        }
        let mut history = self.history();
        // A cycle that ends is armed under the same lock: this limit is that of this arming.
        let armed = self.mark.armed();
        let live = self.figure(&self.account.sum(), history.allocated);
        let needed = live.saturating_add(amount);
        if needed < self.mark.limit() {
            return Announcement::Fits;
        }
        if !history.request(amount) {
            return Announcement::Refused;
        }
        drop(history);
        if let Some(armed) = armed {
            self.mark.reach(armed, needed, Evidence::Request);
        }
        Announcement::Collect
    }

    /// Ends a cycle: the collection took `pause`. Asks the policy for the next limit and arms the trigger with it; it is due at
    /// once if that is reached already.
    ///
    /// May also be called after a collection that this trigger did not ask for.
    ///
    /// # Panics
    ///
    /// When the policy does. The trigger is then armed with the limit it had, as if the cycle had not ended.
    pub fn collected(&self, pause: Duration) {
        let mut policy = lock(&self.policy);
        self.mark.withdraw(false);
        let sum = self.account.sum();
        let now = Instant::now();
        let mut history = self.history();
        let live = self.figure(&sum, history.allocated);
        // What is measured from the last cycle starts from nothing.
        let after = match self.measure {
            Measure::AllocatedBytes => 0,
            Measure::LiveBytes | Measure::LiveBlocks => live,
        };
        let cycle = history
            .cycle(live, after, sum.totals.bytes_allocated, pause, now)
            .with_limit(self.mark.limit());
        drop(history);

        let unless_it_panics = Rearm {
            trigger: self,
            request: cycle.request,
        };
        let limit = policy.next_limit(&cycle);
        let growth_steps = policy.growth_steps();
        std::mem::forget(unless_it_panics);

        let mut history = self.history();
        history.end(&cycle, limit, growth_steps, now);
        self.arm_again(&mut history, limit);
        #[cfg(feature = "tracing")]
        {
            drop((history, policy));
            events::collected(self.measure, &cycle, limit);
        }
    }

    /// Returns the limit in force, in the trigger's measure.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.mark.limit()
    }

    /// Returns what is left below the limit, by the exact figure; 0 when it is reached.
    #[must_use]
    pub fn headroom(&self) -> usize {
        let allocated = self.history().allocated;
        let live = self.figure(&self.account.sum(), allocated);
        self.limit().saturating_sub(live)
    }

    /// Returns what the trigger has seen and done.
    #[must_use]
    pub fn report(&self) -> Report {
        let headroom = self.headroom();
        let history = self.history();
        Report {
            measure: self.measure,
            cycles: history.cycles,
            collecting: history.collecting,
            mutating: history.mutating,
            bytes_allocated: history.bytes_allocated,
            limit: self.limit(),
            headroom,
            growth_steps: history.growth_steps,
            cause: history.cause,
        }
    }

    /// Returns what another process needs to go on with this policy: see [`Resumable`].
    #[must_use]
    pub fn policy_state(&self) -> P::State
    where
        P: Resumable,
    {
        lock(&self.policy).state()
    }

    /// The figure that the trigger measures, not below the truth; `since` is where allocated bytes are counted from.
    fn figure(&self, sum: &Sum, since: usize) -> usize {
        match self.measure {
            Measure::LiveBytes => or_zero(sum.totals.live_bytes()),
            Measure::LiveBlocks => or_zero(sum.totals.live_blocks()),
            Measure::AllocatedBytes => sum.totals.bytes_allocated.wrapping_sub(since),
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }
}

/// A policy that panicked has left no state of ours half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A publishing thread that still looks at the watermark finds a generation that is over.
impl<P: Policy> Drop for Trigger<'_, P> {
    fn drop(&mut self) {
        self.account.ledger().release_watermark(self.mark);
    }
}

impl<P: Policy> fmt::Debug for Trigger<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trigger")
            .field("measure", &self.measure)
            .field("report", &self.report())
            .finish_non_exhaustive()
    }
}
