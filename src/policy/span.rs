//! The two bounds of a heap, and what happens when it does not fit between them.

use std::ops::RangeInclusive;

use super::cycle::Cycle;
use super::error::{Parameter, PolicyError, above_zero};

/// The least and the most a limit may be, `1 <= min <= max`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    min: usize,
    max: usize,
}

impl Span {
    pub(super) fn new(range: &RangeInclusive<usize>) -> Result<Self, PolicyError> {
        let (min, max) = (*range.start(), *range.end());
        // Before `RangeInclusive::is_empty`, which is also true of a range iterated to its end.
        if min > max {
            return Err(PolicyError::MinAboveMax { min, max });
        }
        above_zero(min, Parameter::Min)?;
        Ok(Self { min, max })
    }

    pub(super) const fn min(self) -> usize {
        self.min
    }

    /// `limit` brought between the bounds.
    pub(super) fn clamp(self, limit: usize) -> usize {
        limit.clamp(self.min, self.max)
    }

    /// `limit` brought between the bounds after `cycle`: above the upper one only as far as what is
    /// already live leaves no other way to make progress.
    pub(super) fn bound(self, limit: usize, cycle: &Cycle) -> usize {
        self.clamp(limit).max(cycle.lowest_limit())
    }
}
