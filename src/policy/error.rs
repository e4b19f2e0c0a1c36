//! Why a policy could not be made.

use std::error::Error;
use std::fmt;

/// A parameter of a policy, or a figure of a state to resume from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parameter {
    /// The limit of a [`FixedLimit`](super::FixedLimit), or the one in a state.
    Limit,
    /// The minimum progress of a [`FixedLimit`](super::FixedLimit).
    Progress,
    /// The first reserve of an [`Increment`](super::Increment).
    Initial,
    /// The step of an [`Increment`](super::Increment).
    Increment,
    /// The interval of an [`EveryBytes`](super::EveryBytes).
    Interval,
    /// The lower bound of a range.
    Min,
    /// The growth of a [`Proportional`](super::Proportional).
    Growth,
    /// The `c` of a [`SquareRoot`](super::SquareRoot).
    C,
    /// The smoothing of a [`SquareRoot`](super::SquareRoot).
    Smoothing,
    /// A rate in the state of a [`SquareRoot`](super::SquareRoot).
    Rate,
    /// The number of cycles in a row that a [`ThrashGuard`](super::ThrashGuard) waits for.
    Strikes,
    /// The level in the state of a [`ThrashGuard`](super::ThrashGuard).
    Level,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "limit",
            Self::Progress => "minimum progress",
            Self::Initial => "initial reserve",
            Self::Increment => "increment",
            Self::Interval => "interval",
            Self::Min => "lower bound",
            Self::Growth => "growth",
            Self::C => "c",
            Self::Smoothing => "smoothing",
            Self::Rate => "rate",
            Self::Strikes => "number of strikes",
            Self::Level => "level",
        })
    }
}

/// Why a policy could not be made or resumed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The parameter must be above zero.
    #[non_exhaustive]
    Zero {
        /// Which one.
        parameter: Parameter,
    },
    /// The parameter is not a number, or outside the values that mean something.
    #[non_exhaustive]
    OutOfRange {
        /// Which one.
        parameter: Parameter,
        /// What it was.
        value: f64,
    },
    /// The lower bound of a range is above its upper bound.
    #[non_exhaustive]
    MinAboveMax {
        /// The lower bound, in bytes.
        min: usize,
        /// The upper bound, in bytes.
        max: usize,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero { parameter } => write!(f, "the {parameter} must be above zero"),
            Self::OutOfRange { parameter, value } => {
                write!(f, "the {parameter} cannot be {value}")
            }
            Self::MinAboveMax { min, max } => {
                write!(f, "the lower bound {min} is above the upper bound {max}")
            }
        }
    }
}

impl Error for PolicyError {}

/// Returns `value` unless it is zero.
pub(super) const fn above_zero(value: usize, parameter: Parameter) -> Result<usize, PolicyError> {
    if value == 0 {
        Err(PolicyError::Zero { parameter })
    } else {
        Ok(value)
    }
}

/// Returns `value` if it is a finite number above zero.
pub(super) fn positive(value: f64, parameter: Parameter) -> Result<f64, PolicyError> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else if value == 0.0 {
        Err(PolicyError::Zero { parameter })
    } else {
        Err(PolicyError::OutOfRange { parameter, value })
    }
}
