//! How the next limit is chosen: figures in, a limit out.
//!
//! A [`Policy`] is asked once before the first collection and once after each: given what a
//! collection found and cost (a [`Cycle`]), how many bytes (or blocks) may be live before the next
//! one is due? It reads no clock, allocates nothing and knows no heap, so the same policy runs
//! under a trigger, in a replay in virtual time, and in a test that makes its cycles up.
//!
//! # The trade
//!
//! Call *headroom* what a limit leaves above the live heap. A collection that marks what is live
//! costs time in proportion to the live heap *L*; with headroom *h* and an allocation rate *g* there
//! is one every *h / g* seconds. A collector of speed *s* (bytes marked per second) therefore takes
//!
//! ```text
//! share of time collecting = (L / s) / (h / g) = L g / (s h)
//! ```
//!
//! Headroom is memory, the share is time, and each policy is an answer to how *h* should move as
//! *L* grows:
//!
//! | policy | headroom | share of time as the live heap grows |
//! | --- | --- | --- |
//! | [`FixedLimit`] | limit - L | grows without bound |
//! | [`Increment`] | between nothing and two steps | grows with L |
//! | [`Proportional`] | growth x L | constant |
//! | [`SquareRoot`] | sqrt(L g / (c s)) | grows with the square root of L |
//! | [`EveryBytes`] | N | grows with L |
//!
//! Around any of them: [`Clamped`] keeps a limit between two bounds, [`ThrashGuard`] widens it while
//! collecting takes longer than the program's own work.
//!
//! # What every policy here promises
//!
//! * **No loop.** A limit is always above what is live after the collection, by at least
//!   [1/64 of it](Cycle::least_progress): for a collector whose cost is in proportion to what is
//!   live, collecting then costs at most 64 times the marking of one byte for each byte allocated,
//!   whatever the parameters and however little fits. ([`Increment`], true to its model, can leave
//!   less once; after the next collection it leaves a step.)
//! * **A pending request is answered once.** A [`request`](Cycle::request) that was announced is
//!   either granted (the new limit leaves room for it on top of the headroom) or refused (it does not,
//!   [`Cycle::fits`]). [`FixedLimit`], [`Clamped`] and the upper bound of a range refuse; the rest
//!   grant.
//! * **Any figures.** No cycle makes a policy panic, overflow, or return a limit that is not a number:
//!   times may be zero, live bytes above the limit, everything `usize::MAX`. (At `usize::MAX` itself
//!   there is nothing above to promise.)
//!
//! # Bytes or blocks
//!
//! A policy works in whatever unit its cycles are in. The docs say bytes; where a trigger watches
//! blocks, read blocks, in the parameters as well.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use tally_alloc::policy::{Cycle, Policy, Proportional};
//!
//! const MB: usize = 1_000_000;
//! let mut policy = Proportional::new(1.0, 4 * MB..=500 * MB)?;
//! assert_eq!(policy.initial_limit(), 4 * MB);
//!
//! // A collection found 30 MB of 40 still live: the next is due at twice that.
//! let cycle = Cycle::new(40 * MB, 30 * MB)
//!     .with_pause(Duration::from_millis(8))
//!     .with_mutator(Duration::from_millis(200));
//! assert_eq!(policy.next_limit(&cycle), 60 * MB);
//! # Ok::<(), tally_alloc::policy::PolicyError>(())
//! ```

mod clamped;
mod cycle;
mod error;
mod every;
mod fixed;
mod increment;
mod proportional;
mod rate;
#[cfg(feature = "serde")]
mod saved;
mod span;
mod square_root;
mod thrash;

use std::fmt;

pub use clamped::Clamped;
pub use cycle::Cycle;
pub use error::{Parameter, PolicyError};
pub use every::EveryBytes;
pub use fixed::FixedLimit;
pub use increment::{Increment, IncrementState};
pub use proportional::Proportional;
pub use rate::Rate;
pub use square_root::{SquareRoot, SquareRootState};
pub use thrash::{ThrashGuard, ThrashGuardState};

/// Chooses how many bytes (or blocks) may be live before the next collection is due.
///
/// # Writing one
///
/// Return a limit above [`Cycle::live_after`]; a trigger whose limit is at or below what is live is
/// due again at once, after every collection. [`Cycle::least_progress`] is what the policies here
/// leave at least.
///
/// The methods are called outside the allocator and outside every path that publishing threads take, so a
/// policy may allocate and may take its time. [`next_limit`](Self::next_limit) and
/// [`growth_steps`](Self::growth_steps) are called while the cycle ends, under a lock of the trigger that only
/// [`collected`](crate::Trigger::collected) and [`policy_state`](crate::Trigger::policy_state) take: they may
/// read the trigger that asks (its limit, headroom and report), poll it, and announce a request to it, but must
/// not call those two, which would wait for ever or panic. Another thread that calls one of the two waits until
/// the policy has answered.
///
/// ```
/// use tally_alloc::policy::{Cycle, Policy};
///
/// /// Collects whenever the heap has grown by what is live, to the next full mebibyte.
/// struct WholeMebibytes;
///
/// impl Policy for WholeMebibytes {
///     fn initial_limit(&self) -> usize {
///         1 << 20
///     }
///
///     fn next_limit(&mut self, cycle: &Cycle) -> usize {
///         let wanted = cycle.needed().saturating_add(cycle.live_after.max(1));
///         wanted.checked_next_multiple_of(1 << 20).unwrap_or(usize::MAX)
///     }
/// }
///
/// let limit = WholeMebibytes.next_limit(&Cycle::new(3_000_000, 1_000_000));
/// assert_eq!(limit, 2 << 20);
/// ```
pub trait Policy: Send {
    /// Returns the limit before any collection; after [`Resumable::resume`], the one to go on with.
    fn initial_limit(&self) -> usize;

    /// Returns the limit until the next collection, given the one that has just ended.
    fn next_limit(&mut self, cycle: &Cycle) -> usize;

    /// Returns how often this policy has grown its reserve; 0 for those that have none.
    fn growth_steps(&self) -> u64 {
        0
    }
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn initial_limit(&self) -> usize {
        (**self).initial_limit()
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        (**self).next_limit(cycle)
    }

    fn growth_steps(&self) -> u64 {
        (**self).growth_steps()
    }
}

/// A policy that can go on in another process where it left off in this one.
///
/// What a state holds are plain numbers with public fields, to be written in whatever format the
/// program's own snapshot has. The parameters are not part of it: a reloaded policy is made with
/// the parameters of its day, and then resumed.
///
/// With the feature `serde` each state of this crate is `Serialize` and `Deserialize`: a number where it is one,
/// otherwise a map of the public fields under their names, which are stable. Reading one checks what
/// [`resume`](Self::resume) checks, and what no policy can have left is an error of the deserializer.
///
/// # Examples
///
/// ```
/// use tally_alloc::policy::{Cycle, Increment, Policy, Resumable};
///
/// let mut old = Increment::new(1_000, 100)?;
/// old.next_limit(&Cycle::new(1_000, 950));
/// old.next_limit(&Cycle::new(1_000, 980)); // low twice running: one step more
///
/// let mut reloaded = Increment::new(1_000, 100)?;
/// reloaded.resume(old.state())?;
/// assert_eq!(reloaded.initial_limit(), 1_100);
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
pub trait Resumable: Policy {
    /// What there is to carry over.
    type State: Copy + fmt::Debug + PartialEq + Send;

    /// Returns what a new process needs to go on from here.
    fn state(&self) -> Self::State;

    /// Takes over the state of another policy of this kind.
    ///
    /// # Errors
    ///
    /// A [`PolicyError`] when the state holds what no policy can have left: a limit of zero, a rate
    /// that is not a number. The policy is then as it was.
    fn resume(&mut self, state: Self::State) -> Result<(), PolicyError>;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Clamped, Cycle, FixedLimit, Policy, ThrashGuard};

    /// Says what it was told to.
    struct Told;

    impl Policy for Told {
        fn initial_limit(&self) -> usize {
            500
        }

        fn next_limit(&mut self, cycle: &Cycle) -> usize {
            600 + cycle.live_after
        }

        fn growth_steps(&self) -> u64 {
            7
        }
    }

    fn said(mut policy: impl Policy) -> (usize, usize, u64) {
        let initial = policy.initial_limit();
        let next = policy.next_limit(&Cycle::new(300, 30));
        (initial, next, policy.growth_steps())
    }

    #[test]
    fn what_is_around_a_policy_passes_on_what_it_says() {
        let told = (500, 630, 7);
        assert_eq!(said(Told), told);
        assert_eq!(said(Box::new(Told)), told, "boxed");
        assert_eq!(said(ThrashGuard::new(Told)), told, "guarded");
        let clamped = |least, most| Clamped::new(Told, least..=most).expect("a range");
        assert_eq!(said(clamped(1, usize::MAX)), told, "clamped to anything");
        assert_eq!(said(clamped(700, 800)), (700, 700, 7), "clamped from below");
        assert_eq!(said(clamped(1, 400)), (400, 400, 7), "clamped from above");
    }

    #[test]
    fn what_has_no_reserve_never_grows_it() {
        let fixed = FixedLimit::new(500).expect("a limit");
        assert_eq!(said(fixed).2, 0);
    }
}
