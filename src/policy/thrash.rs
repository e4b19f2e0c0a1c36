//! Any policy, widened while collecting takes longer than the program's own work.

use super::cycle::Cycle;
use super::error::{Parameter, PolicyError, above_zero};
#[cfg(feature = "serde")]
use super::saved;
use super::{Policy, Resumable};

/// Any policy, its headroom doubled each time collecting has taken longer than the program's own work
/// several cycles in a row, and halved again once it takes little.
///
/// ```text
/// next limit = live after + request + 2^level x headroom of the inner limit
///
/// level + 1   after `strikes` cycles running with  pause > mutator
/// level - 1   after `strikes` cycles running with  4 x pause <= mutator, down to 0
/// ```
///
/// For heaps whose owner would rather spend memory than stand still: a limit chosen for ordinary days
/// meets a day when everything is live. Doubling the headroom halves the share of time collecting, so
/// after a widening the pause is about half of the program's time; the guard narrows at a quarter,
/// which halving brings back to a half. Between the two it stays where it is, and does not swing.
///
/// A cycle in which neither time could be measured says nothing and is passed over. What the inner
/// policy refuses, a pending request, stays refused.
///
/// # Defaults
///
/// Three strikes: one slow collection is an accident (the process lost the processor, a page was
/// swapped in), three in a row are a state. The level ends at 16, a factor of 65,536.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tally_alloc::policy::{Cycle, EveryBytes, Policy, ThrashGuard};
///
/// let mut policy = ThrashGuard::new(EveryBytes::new(100)?);
/// let thrashing = Cycle::new(1_000, 1_000)
///     .with_pause(Duration::from_millis(30))
///     .with_mutator(Duration::from_millis(10));
/// assert_eq!(policy.next_limit(&thrashing), 1_100);
/// assert_eq!(policy.next_limit(&thrashing), 1_100);
/// assert_eq!(policy.next_limit(&thrashing), 1_200, "three in a row: twice the headroom");
/// assert_eq!(policy.level(), 1);
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThrashGuard<P> {
    inner: P,
    strikes: u32,
    /// The last limit given out or resumed from; `None` until there is one.
    in_force: Option<usize>,
    level: u32,
    slow: u32,
    quick: u32,
}

/// For any policy within; public as [`ThrashGuard::MAX_LEVEL`].
const MAX_LEVEL: u32 = 16;

/// Returns `level` if the headroom can be doubled so often.
pub(super) fn possible_level(level: u32) -> Result<u32, PolicyError> {
    if level <= MAX_LEVEL {
        Ok(level)
    } else {
        Err(PolicyError::OutOfRange {
            parameter: Parameter::Level,
            value: f64::from(level),
        })
    }
}

/// What a [`ThrashGuard`] carries over: the state of the policy within, and how far it is widened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct ThrashGuardState<S> {
    /// The state of the policy within.
    pub inner: S,
    /// The limit in force, in bytes.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "saved::limit"))]
    pub limit: usize,
    /// How often the headroom is doubled.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "saved::level"))]
    pub level: u32,
}

impl<P: Policy> ThrashGuard<P> {
    /// The level above which the headroom is not widened: 65,536 times.
    pub const MAX_LEVEL: u32 = MAX_LEVEL;

    /// Guards `inner`, with three strikes.
    #[must_use]
    pub const fn new(inner: P) -> Self {
        Self {
            inner,
            strikes: 3,
            in_force: None,
            level: 0,
            slow: 0,
            quick: 0,
        }
    }

    /// Sets how many cycles in a row it takes to widen or to narrow.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] for 0 strikes.
    pub fn with_strikes(self, strikes: u32) -> Result<Self, PolicyError> {
        if strikes == 0 {
            return Err(PolicyError::Zero {
                parameter: Parameter::Strikes,
            });
        }
        Ok(Self { strikes, ..self })
    }

    /// Returns the policy within.
    #[must_use]
    pub const fn inner(&self) -> &P {
        &self.inner
    }

    /// Returns how often the headroom is doubled at present; 0 when the guard is at rest.
    #[must_use]
    pub const fn level(&self) -> u32 {
        self.level
    }

    fn judge(&mut self, cycle: &Cycle) {
        if cycle.pause.is_zero() && cycle.mutator.is_zero() {
            return;
        }
        let slow = cycle.pause > cycle.mutator;
        let quick = cycle.pause.saturating_mul(4) <= cycle.mutator;
        self.slow = if slow { self.slow + 1 } else { 0 };
        self.quick = if quick { self.quick + 1 } else { 0 };
        if self.slow >= self.strikes {
            self.level = (self.level + 1).min(Self::MAX_LEVEL);
            self.slow = 0;
        } else if self.quick >= self.strikes {
            self.level = self.level.saturating_sub(1);
            self.quick = 0;
        }
    }
}

impl<P: Policy> Policy for ThrashGuard<P> {
    fn initial_limit(&self) -> usize {
        self.in_force.unwrap_or_else(|| self.inner.initial_limit())
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        self.judge(cycle);
        let limit = self.inner.next_limit(cycle);
        let base = if cycle.fits(limit) {
            cycle.needed()
        } else {
            cycle.live_after
        };
        let headroom = limit.saturating_sub(base);
        let widened = base.saturating_add(headroom.saturating_mul(1 << self.level));
        let limit = if cycle.fits(limit) {
            widened
        } else {
            // Refused: as far as it goes without granting the request after all.
            widened.min(cycle.needed()).max(limit)
        };
        self.in_force = Some(limit);
        limit
    }

    fn growth_steps(&self) -> u64 {
        self.inner.growth_steps()
    }
}

impl<P: Resumable> Resumable for ThrashGuard<P> {
    type State = ThrashGuardState<P::State>;

    fn state(&self) -> Self::State {
        ThrashGuardState {
            inner: self.inner.state(),
            limit: self.initial_limit(),
            level: self.level,
        }
    }

    fn resume(&mut self, state: Self::State) -> Result<(), PolicyError> {
        let limit = above_zero(state.limit, Parameter::Limit)?;
        let level = possible_level(state.level)?;
        self.inner.resume(state.inner)?;
        self.in_force = Some(limit);
        self.level = level;
        self.slow = 0;
        self.quick = 0;
        Ok(())
    }
}
