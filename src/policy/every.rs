//! A collection at regular intervals, for stress tests.

use super::cycle::Cycle;
use super::error::{Parameter, PolicyError, above_zero};
use super::{Policy, Resumable};

/// A collection each time a number of bytes has been allocated since the one before.
///
/// ```text
/// next limit = live after + request + interval
/// ```
///
/// For stress tests: a runtime that forgets a root crashes the sooner, the more often it collects.
/// Cost does not matter here, so small intervals are taken as they are, down to 1/64 of what is live
/// ([`Cycle::least_progress`]).
///
/// With a trigger that watches [`Measure::AllocatedBytes`](crate::Measure::AllocatedBytes) the
/// interval is one of bytes allocated. With one that watches live bytes, what the program frees by
/// itself between two collections puts the next one off.
///
/// # Examples
///
/// ```
/// use tally_alloc::policy::{Cycle, EveryBytes, Policy};
///
/// let mut policy = EveryBytes::new(4096)?;
/// assert_eq!(policy.initial_limit(), 4096);
/// assert_eq!(policy.next_limit(&Cycle::new(4096, 1000)), 5096);
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct EveryBytes {
    interval: usize,
    in_force: usize,
}

impl EveryBytes {
    /// Makes a policy that collects every `interval` bytes.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] for an interval of 0.
    pub fn new(interval: usize) -> Result<Self, PolicyError> {
        let interval = above_zero(interval, Parameter::Interval)?;
        Ok(Self {
            interval,
            in_force: interval,
        })
    }
}

impl Policy for EveryBytes {
    fn initial_limit(&self) -> usize {
        self.in_force
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        self.in_force = cycle.granting(self.interval);
        self.in_force
    }
}

/// The state is the limit in force.
impl Resumable for EveryBytes {
    type State = usize;

    fn state(&self) -> usize {
        self.in_force
    }

    fn resume(&mut self, state: usize) -> Result<(), PolicyError> {
        self.in_force = above_zero(state, Parameter::Limit)?;
        Ok(())
    }
}
