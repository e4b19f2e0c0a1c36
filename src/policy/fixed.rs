//! A constant limit.

use super::cycle::Cycle;
use super::error::{Parameter, PolicyError, above_zero};
use super::{Policy, Resumable};

/// A constant limit, and the progress the program makes between two collections when it is full.
///
/// ```text
/// next limit = max(limit, live after + progress)
/// ```
///
/// For a heap with a budget: a cache, a worker with a quota, a test that wants to know when
/// collections happen. When what is live comes close to the limit or goes above it, a collection
/// frees nothing that helps, and a limit that stayed put would be due again at every allocation. The
/// minimum progress is what may be allocated all the same: collecting goes on, at that interval.
///
/// A pending request that does not fit under the limit is refused.
///
/// # Defaults
///
/// The progress is 1/16 of the limit: a full heap is collected every 1/16 of its size, so that the
/// overrun stays within about 6 % at a time while each byte allocated costs at most the marking of
/// 16. Whoever wants a harder limit sets a smaller one.
///
/// # Examples
///
/// ```
/// use tally_alloc::policy::{Cycle, FixedLimit, Policy};
///
/// let mut policy = FixedLimit::new(10_000_000)?.with_progress(500_000)?;
/// assert_eq!(policy.next_limit(&Cycle::new(10_000_000, 2_000_000)), 10_000_000);
/// // Live just under the limit, and above it: the next half megabyte is free of collections.
/// assert_eq!(policy.next_limit(&Cycle::new(10_000_000, 9_999_000)), 10_499_000);
/// assert_eq!(policy.next_limit(&Cycle::new(12_000_000, 12_000_000)), 12_500_000);
/// // A request larger than the limit is refused.
/// let cycle = Cycle::new(1_000, 1_000).with_request(20_000_000);
/// assert!(!cycle.fits(policy.next_limit(&cycle)));
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FixedLimit {
    limit: usize,
    progress: usize,
    in_force: usize,
}

impl FixedLimit {
    /// Makes a policy with a constant limit of `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] for a limit of 0.
    pub fn new(limit: usize) -> Result<Self, PolicyError> {
        let limit = above_zero(limit, Parameter::Limit)?;
        Ok(Self {
            limit,
            progress: (limit / 16).max(1),
            in_force: limit,
        })
    }

    /// Sets the bytes that may be allocated between two collections even when the heap is full. (1/64
    /// of what is live where that is more, [`Cycle::least_progress`].)
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] for a progress of 0.
    pub fn with_progress(self, progress: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            progress: above_zero(progress, Parameter::Progress)?,
            ..self
        })
    }
}

impl Policy for FixedLimit {
    fn initial_limit(&self) -> usize {
        self.in_force
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        self.in_force = self
            .limit
            .max(cycle.live_after.saturating_add(self.progress))
            .max(cycle.lowest_limit());
        self.in_force
    }
}

/// The state is the limit in force.
impl Resumable for FixedLimit {
    type State = usize;

    fn state(&self) -> usize {
        self.in_force
    }

    fn resume(&mut self, state: usize) -> Result<(), PolicyError> {
        self.in_force = above_zero(state, Parameter::Limit)?.max(self.limit);
        Ok(())
    }
}
