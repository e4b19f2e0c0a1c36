//! A policy through its cycles, beside what it promises.

use std::fmt::Debug;

use tally_alloc::policy::{Cycle, Policy, Resumable};

/// What must hold of each limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    min: usize,
    /// What a limit is above only as far as there is no other way to make progress.
    max: usize,
    /// Pending requests are always granted.
    grants: bool,
    /// It leaves the least progress, not only something.
    progress: bool,
}

impl Promise {
    pub(super) const fn at_least(min: usize) -> Self {
        Self::within(min, usize::MAX)
    }

    pub(super) const fn within(min: usize, max: usize) -> Self {
        Self {
            min,
            max,
            grants: false,
            progress: true,
        }
    }

    pub(super) const fn granting(self) -> Self {
        Self {
            grants: true,
            ..self
        }
    }

    pub(super) const fn with_any_progress(self) -> Self {
        Self {
            progress: false,
            ..self
        }
    }

    pub(super) const fn widened(self) -> Self {
        Self {
            max: usize::MAX,
            ..self
        }
    }

    pub(super) const fn with_any_reserve(self) -> Self {
        Self { min: 1, ..self }
    }

    fn check(&self, cycle: &Cycle, limit: usize) {
        let least = cycle.live_after.saturating_add(cycle.least_progress());
        let above = if self.progress {
            least
        } else {
            cycle.live_after.saturating_add(1)
        };
        assert!(limit >= above, "{limit} after {cycle:?}: {self:?}");
        assert!(
            limit >= self.min,
            "{limit} is below the minimum of {self:?}"
        );
        assert!(
            limit <= self.max.max(least),
            "{limit} is above the maximum of {self:?} after {cycle:?}"
        );
        if self.grants && cycle.needed() < usize::MAX {
            assert!(
                cycle.fits(limit),
                "{limit} refuses the request of {cycle:?}"
            );
        }
    }
}

/// What a policy carries over, as a program would save it.
#[cfg(feature = "serde")]
pub(super) trait Saved:
    Copy + Debug + PartialEq + serde::Serialize + serde::de::DeserializeOwned
{
    fn saved_and_read(self) -> Self {
        let text = serde_json::to_string(&self).expect("a state can be written");
        serde_json::from_str(&text).expect("a state that a policy has left can be read")
    }
}

#[cfg(feature = "serde")]
impl<S: Copy + Debug + PartialEq + serde::Serialize + serde::de::DeserializeOwned> Saved for S {}

/// What a policy carries over.
#[cfg(not(feature = "serde"))]
pub(super) trait Saved: Copy + Debug + PartialEq {
    fn saved_and_read(self) -> Self {
        self
    }
}

#[cfg(not(feature = "serde"))]
impl<S: Copy + Debug + PartialEq> Saved for S {}

/// Lets a policy go through the cycles. `within` is a copy of the policy that it guards.
pub(super) fn drive<P>(
    mut policy: P,
    promise: Promise,
    cycles: &[Cycle],
    mut within: Option<Box<dyn Policy>>,
) where
    P: Policy + Resumable + Clone,
    P::State: Saved,
{
    assert!(policy.initial_limit() > 0, "the first limit is zero");
    let fresh = policy.clone();
    let mut steps = policy.growth_steps();
    for cycle in cycles {
        let limit = policy.next_limit(cycle);
        promise.check(cycle, limit);
        if let Some(within) = &mut within {
            let unguarded = within.next_limit(cycle);
            assert!(
                limit >= unguarded,
                "a guard has narrowed {unguarded} to {limit}"
            );
            assert!(
                cycle.fits(unguarded) || !cycle.fits(limit),
                "a guard has granted what was refused: {limit}, not {unguarded}, {cycle:?}"
            );
        }
        assert!(
            policy.growth_steps() >= steps,
            "fewer growth steps than before"
        );
        steps = policy.growth_steps();

        let state = policy.state();
        let read = state.saved_and_read();
        assert_eq!(state, read, "saved (left) and read (right)");
        let mut reloaded = fresh.clone();
        reloaded
            .resume(read)
            .expect("a state that a policy has left");
        assert!(
            reloaded.initial_limit() > 0,
            "the limit to go on with is zero"
        );
        let next = reloaded.next_limit(cycle);
        promise.with_any_reserve().check(cycle, next);
    }
}
