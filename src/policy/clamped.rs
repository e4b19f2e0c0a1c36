//! Any policy between a minimum and a maximum heap.

use std::ops::RangeInclusive;

use super::cycle::Cycle;
use super::error::PolicyError;
use super::span::Span;
use super::{Policy, Resumable};

/// Any policy, its limits brought between a minimum and a maximum heap.
///
/// ```text
/// next limit = inner limit, between min and max
/// ```
///
/// The minimum saves a small heap from being collected for nothing. The maximum is a soft ceiling:
/// when what is live does not fit under it, collections come every 1/64 of what is live
/// ([`Cycle::least_progress`]) and the limit says by how much the heap is over; whether to stop the
/// program there is its host's decision. A pending request that does not fit under the ceiling is
/// refused.
///
/// Outermost, so that nothing widens past it: `Clamped<ThrashGuard<..>>`, not the reverse.
///
/// # Examples
///
/// ```
/// use tally_alloc::policy::{Clamped, Cycle, Increment, Policy};
///
/// let mut policy = Clamped::new(Increment::new(1_000, 1_000)?, 4_000..=10_000)?;
/// assert_eq!(policy.initial_limit(), 4_000);
/// let large = Cycle::new(3_000, 3_000).with_request(20_000);
/// assert_eq!(policy.next_limit(&large), 10_000, "refused");
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Clamped<P> {
    inner: P,
    span: Span,
}

impl<P: Policy> Clamped<P> {
    /// Makes `inner` a policy with limits in `range` bytes.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] for a minimum of 0, [`PolicyError::MinAboveMax`] for an empty range.
    pub fn new(inner: P, range: RangeInclusive<usize>) -> Result<Self, PolicyError> {
        Ok(Self {
            inner,
            span: Span::new(&range)?,
        })
    }

    /// Returns the policy within.
    #[must_use]
    pub const fn inner(&self) -> &P {
        &self.inner
    }
}

impl<P: Policy> Policy for Clamped<P> {
    fn initial_limit(&self) -> usize {
        self.span.clamp(self.inner.initial_limit())
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        self.span.bound(self.inner.next_limit(cycle), cycle)
    }

    fn growth_steps(&self) -> u64 {
        self.inner.growth_steps()
    }
}

/// The state is that of the policy within.
impl<P: Resumable> Resumable for Clamped<P> {
    type State = P::State;

    fn state(&self) -> P::State {
        self.inner.state()
    }

    fn resume(&mut self, state: P::State) -> Result<(), PolicyError> {
        self.inner.resume(state)
    }
}
