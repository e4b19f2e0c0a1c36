//! A reserve that grows by fixed steps, as the JavaScript engine XS does it.

use super::cycle::Cycle;
use super::error::{Parameter, PolicyError, above_zero};
#[cfg(feature = "serde")]
use super::saved;
use super::{Policy, Resumable};

/// A reserve that grows by a fixed step once two successive collections have left less than one
/// step free, and never shrinks.
///
/// ```text
/// low         = reserve - live after < increment
/// reserve    += increment             when low now and low after the collection before
/// reserve    += what is missing,      when live after and the request do not fit,
///               or the request if that
///               is more, rounded up
/// next limit  = reserve
/// ```
///
/// This is the rule of XS, the JavaScript engine of the Moddable SDK (`xsMemory.c`), for each of its
/// two pools; `initial` and `increment` are its `initialHeapCount` / `incrementalHeapCount` (slots,
/// by number) and `initialChunkSize` / `incrementalChunkSize` (bytes). The strike survives a
/// growth: a heap that is low again after the next collection grows again. When what is live, with
/// the pending request, does not fit at all, the reserve grows at once, by as many steps as it
/// takes.
///
/// A first strike may leave as little as one byte free; the collection that follows at once is the
/// second, and then there is a step. So there are at most two collections without a step of room
/// between them, and an increment that is small beside the heap is taken as it is, not widened to
/// [`Cycle::least_progress`].
///
/// # When to use it
///
/// To imitate an engine that does so, and to be compared against: with a live heap that grows, the
/// headroom stays within two steps, so that collections come at a constant interval while each takes
/// longer, and their share of the time grows with the heap. [`Proportional`](super::Proportional) and
/// [`SquareRoot`](super::SquareRoot) are what such a program wants.
///
/// # Examples
///
/// ```
/// use tally_alloc::policy::{Cycle, Increment, Policy};
///
/// let mut policy = Increment::new(1_000, 100)?;
/// // 60 free of 1,000: a first strike. Again: a step.
/// assert_eq!(policy.next_limit(&Cycle::new(1_000, 940)), 1_000);
/// assert_eq!(policy.next_limit(&Cycle::new(1_000, 950)), 1_100);
/// // A request of two and a half steps makes it three.
/// assert_eq!(policy.next_limit(&Cycle::new(1_100, 960).with_request(250)), 1_400);
/// assert_eq!(policy.growth_steps(), 2);
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Increment {
    increment: usize,
    state: IncrementState,
}

/// What an [`Increment`] carries over: what XS's snapshot does, the reserve reached, and the strike
/// and the count of steps beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct IncrementState {
    /// The reserve reached, in bytes.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "saved::limit"))]
    pub reserve: usize,
    /// Whether the last collection left less than one step free.
    pub low: bool,
    /// How often the reserve has grown.
    pub growth_steps: u64,
}

impl Increment {
    /// Makes a policy whose reserve is `initial` bytes at first and grows by multiples of `increment`
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] when either is 0.
    pub fn new(initial: usize, increment: usize) -> Result<Self, PolicyError> {
        Ok(Self {
            increment: above_zero(increment, Parameter::Increment)?,
            state: IncrementState {
                reserve: above_zero(initial, Parameter::Initial)?,
                low: false,
                growth_steps: 0,
            },
        })
    }

    /// Returns the reserve: the limit in force, in bytes.
    #[must_use]
    pub const fn reserve(&self) -> usize {
        self.state.reserve
    }

    /// `bytes` rounded up to a multiple of the increment.
    const fn steps(&self, bytes: usize) -> usize {
        bytes
            .div_ceil(self.increment)
            .saturating_mul(self.increment)
    }
}

impl Policy for Increment {
    fn initial_limit(&self) -> usize {
        self.state.reserve
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        let reserve = self.state.reserve;
        let low = reserve.saturating_sub(cycle.live_after) < self.increment;
        let growth = if !cycle.fits(reserve) {
            let missing = cycle.needed().saturating_sub(reserve).saturating_add(1);
            self.steps(missing.max(cycle.request))
        } else if low && self.state.low {
            self.increment
        } else {
            0
        };
        if growth > 0 {
            self.state.reserve = reserve.saturating_add(growth);
            self.state.growth_steps = self.state.growth_steps.saturating_add(1);
        }
        self.state.low = low;
        self.state.reserve
    }

    fn growth_steps(&self) -> u64 {
        self.state.growth_steps
    }
}

impl Resumable for Increment {
    type State = IncrementState;

    fn state(&self) -> IncrementState {
        self.state
    }

    fn resume(&mut self, state: IncrementState) -> Result<(), PolicyError> {
        above_zero(state.reserve, Parameter::Limit)?;
        self.state = state;
        Ok(())
    }
}
