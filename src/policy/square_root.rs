//! Headroom by the square-root rule of MemBalancer.

use std::ops::RangeInclusive;

use super::cycle::Cycle;
use super::error::{Parameter, PolicyError, above_zero, positive};
use super::rate::Rate;
#[cfg(feature = "serde")]
use super::saved;
use super::span::Span;
use super::{Policy, Resumable};

/// Headroom by the square-root rule: where one more byte would save less time than it is worth.
///
/// ```text
/// next limit = L + sqrt(L g / (c s)) + request, between min and max
///
/// L  bytes live after the collection
/// g  bytes allocated per second of the program's own time
/// s  bytes marked (live after) per second of collecting
/// c  share of time that a byte of headroom must save, per byte
/// ```
///
/// From Marisa Kirisame, Pranav Shenoy and Pavel Panchekha, "Optimal Heap Limits for Reducing Browser
/// Memory Use", OOPSLA 2022 (<https://doi.org/10.1145/3563323>), where it is derived: with headroom
/// `h` the share of time spent collecting is `L g / (s h)`; its slope in `h` is `-L g / (s h²)`; the
/// rule is the `h` at which that slope is `-c`. Heaps that follow it with the same `c` cannot
/// together use less memory for the same time, nor less time for the same memory: a program with
/// several heaps, or a machine with several programs, gives each its own policy and all the same
/// `c`.
///
/// # What `c` is
///
/// A price: how much time you would spend to save memory, as a share of time per byte. Who would
/// give 1 % of the processor for 100 MB has `c = 0.01 / 100e6 = 1e-10` per byte
/// ([`DEFAULT_C`](Self::DEFAULT_C)). Four times the price is half the headroom and twice the time
/// collecting. Where blocks are counted, it is a share of time per block.
///
/// # Smoothing
///
/// Bytes and seconds of both rates are smoothed exponentially, each by itself
/// ([`Rate`]): after each cycle, `mean = k mean + (1 - k) sample`, and the rate is the
/// quotient of the means. The default of `k` is 0.5, with which a change is 97 % in after five
/// cycles; that is the paper's own value for the collection rate. The paper smooths the allocation
/// rate more heavily (0.95) since it samples it every second; here a sample is a whole cycle, which
/// is a mean already. `L` is exact and is not smoothed. Until both rates are known (the first
/// cycle, a clock too coarse to see a pause) the headroom is `L`: twice what is live, as
/// [`Proportional`](super::Proportional) with a growth of 1.
///
/// The bounds work as those of [`Proportional`](super::Proportional).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tally_alloc::policy::{Cycle, Policy, SquareRoot};
///
/// // 1 % of the time is worth 100 MB.
/// let mut policy = SquareRoot::new(0.01 / 100e6, 4_000_000..=usize::MAX)?;
/// // 64 MB live, marked in 64 ms (1 GB/s); 100 MB allocated in a second.
/// let cycle = Cycle::new(100_000_000, 64_000_000)
///     .with_allocated(100_000_000)
///     .with_pause(Duration::from_millis(64))
///     .with_mutator(Duration::from_secs(1));
/// // sqrt(64e6 x 100e6 / (1e-10 x 1e9)) = 253 MB of headroom: one collection of 64 ms every 2.5 s.
/// let limit = policy.next_limit(&cycle);
/// assert_eq!((limit - 64_000_000) / 1_000_000, 252);
/// # Ok::<(), tally_alloc::policy::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SquareRoot {
    c: f64,
    smoothing: f64,
    span: Span,
    state: SquareRootState,
}

/// What a [`SquareRoot`] carries over: the limit in force and the two rates measured.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct SquareRootState {
    /// The limit in force, in bytes.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "saved::limit"))]
    pub limit: usize,
    /// Bytes allocated and the program's own time.
    pub allocation: Rate,
    /// Bytes marked and the time spent collecting.
    pub collection: Rate,
}

impl SquareRoot {
    /// 1 % of the time for 100 MB, as a share of time per byte.
    pub const DEFAULT_C: f64 = 0.01 / 100e6;

    /// Makes a policy with the price `c`, a share of time per byte, and limits in `range` bytes.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Zero`] for a price or a lower bound of 0, [`PolicyError::OutOfRange`] for a
    /// price that is negative, infinite or not a number, [`PolicyError::MinAboveMax`] for an empty
    /// range.
    pub fn new(c: f64, range: RangeInclusive<usize>) -> Result<Self, PolicyError> {
        let span = Span::new(&range)?;
        Ok(Self {
            c: positive(c, Parameter::C)?,
            smoothing: 0.5,
            span,
            state: SquareRootState {
                limit: span.min(),
                allocation: Rate::default(),
                collection: Rate::default(),
            },
        })
    }

    /// Sets the weight, from 0 up to but not including 1, that what was measured before keeps when a
    /// new cycle is mixed in. 0 goes by the last cycle alone.
    ///
    /// # Errors
    ///
    /// [`PolicyError::OutOfRange`] for anything else.
    pub fn with_smoothing(self, smoothing: f64) -> Result<Self, PolicyError> {
        if !(0.0..1.0).contains(&smoothing) {
            return Err(PolicyError::OutOfRange {
                parameter: Parameter::Smoothing,
                value: smoothing,
            });
        }
        Ok(Self { smoothing, ..self })
    }

    /// Bytes of headroom for `live` bytes.
    fn headroom(&self, live: usize) -> usize {
        let rates = (
            self.state.allocation.per_second(),
            self.state.collection.per_second(),
        );
        let (Some(g), Some(s)) = rates else {
            return live;
        };
        // Divided first, so that the largest figures stay finite; `as` saturates, and takes what is
        // not a number (there is none: g and s are above zero, c is too) for 0.
        ((live as f64 / s) * (g / self.c)).sqrt() as usize
    }
}

impl Policy for SquareRoot {
    fn initial_limit(&self) -> usize {
        self.state.limit
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        let keep = self.smoothing;
        self.state
            .allocation
            .record(cycle.allocated, cycle.mutator, keep);
        self.state
            .collection
            .record(cycle.live_after, cycle.pause, keep);
        let limit = cycle.granting(self.headroom(cycle.live_after));
        self.state.limit = self.span.bound(limit, cycle);
        self.state.limit
    }
}

impl Resumable for SquareRoot {
    type State = SquareRootState;

    fn state(&self) -> SquareRootState {
        self.state
    }

    fn resume(&mut self, state: SquareRootState) -> Result<(), PolicyError> {
        self.state = SquareRootState {
            limit: self.span.clamp(above_zero(state.limit, Parameter::Limit)?),
            allocation: state.allocation.checked()?,
            collection: state.collection.checked()?,
        };
        Ok(())
    }
}
