//! Headroom in proportion to what is live.

use std::ops::RangeInclusive;

use super::cycle::Cycle;
use super::error::{Parameter, PolicyError, above_zero, positive};
use super::span::Span;
use super::{Policy, Resumable};

/// Headroom in proportion to what is live, between two bounds.
///
/// ```text
/// next limit = live after x (1 + growth) + request, between min and max
/// ```
///
/// This is Go's `GOGC` (growth x 100) with `GOMEMLIMIT` (max); see "A Guide to the Go Garbage
/// Collector", <https://go.dev/doc/gc-guide>, which counts stacks and globals in with the live heap.
/// Collecting takes a constant share of the time however large the heap grows, and the memory used is
/// at most (1 + growth) times what is needed.
///
/// Like Go's, the upper bound is soft: when what is live does not fit under it the limit goes above,
/// by [`Cycle::least_progress`] and no more. A pending request that does not fit is refused.
///
/// # Choosing the parameters
///
/// A growth of 1 (Go's default) means at most twice the memory, and at steady state one marking of
/// each live byte per live heap allocated. Half the growth is half the headroom and twice the time
/// collecting. The lower bound is the heap below which collecting is not worth it (Go's is 4 MiB
/// x growth); it is the first limit as well.
///
/// # Examples
///
/// ```
/// use tally_alloc::policy::{Cycle, Policy, Proportional};
///
/// let mut policy = Proportional::new(0.5, 4_000_000..=usize::MAX)?;
/// assert_eq!(policy.next_limit(&Cycle::new(9_000_000, 8_000_000)), 12_000_000);
/// assert_eq!(policy.next_limit(&Cycle::new(4_000_000, 1_000)), 4_000_000);
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Proportional {
    growth: f64,
    span: Span,
    in_force: usize,
}

impl Proportional {
    /// Makes a policy that leaves `growth` times what is live as headroom, with limits in `range`
    /// bytes. `4_000_000..=usize::MAX` is a range without a ceiling.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] for a growth or a lower bound of 0, [`PolicyError::OutOfRange`] for a
    /// growth that is negative, infinite or not a number, [`PolicyError::MinAboveMax`] for an empty
    /// range.
    pub fn new(growth: f64, range: RangeInclusive<usize>) -> Result<Self, PolicyError> {
        let span = Span::new(&range)?;
        Ok(Self {
            growth: positive(growth, Parameter::Growth)?,
            span,
            in_force: span.min(),
        })
    }
}

impl Policy for Proportional {
    fn initial_limit(&self) -> usize {
        self.in_force
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        // `as` saturates, and the product of two numbers that are not negative is one.
        let headroom = (cycle.live_after as f64 * self.growth) as usize;
        self.in_force = self.span.bound(cycle.granting(headroom), cycle);
        self.in_force
    }
}

/// The state is the limit in force.
impl Resumable for Proportional {
    type State = usize;

    fn state(&self) -> usize {
        self.in_force
    }

    fn resume(&mut self, state: usize) -> Result<(), PolicyError> {
        self.in_force = self.span.clamp(above_zero(state, Parameter::Limit)?);
        Ok(())
    }
}
