//! Figures that are likely to hurt.

use std::time::Duration;

use arbitrary::Arbitrary;

/// A number of bytes or blocks, anywhere in the range but more often at its edges.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Amount {
    /// As it is.
    Small(u8),
    /// As it is.
    Middle(u16),
    /// As it is.
    Large(u32),
    /// Above or below the default threshold by as much.
    AroundThreshold(i8),
    /// So many below half of the range.
    BelowHalf(u8),
    /// So many below the end of the range.
    BelowAll(u8),
    /// As it is.
    Any(u64),
}

impl Amount {
    /// Returns the number.
    pub(crate) fn get(self) -> usize {
        match self {
            Self::Small(amount) => usize::from(amount),
            Self::Middle(amount) => usize::from(amount),
            Self::Large(amount) => amount as usize,
            Self::AroundThreshold(off) => (16_usize << 10).wrapping_add_signed(isize::from(off)),
            Self::BelowHalf(less) => usize::MAX / 2 - usize::from(less),
            Self::BelowAll(less) => usize::MAX - usize::from(less),
            Self::Any(amount) => amount as usize,
        }
    }
}

/// A parameter that is a fraction, or should be.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Fraction {
    /// So many thousandths.
    Thousandths(u16),
    /// The negative of that.
    Negative(u16),
    /// Any number there is, those included that are none.
    Bits(u64),
    /// The smallest above zero.
    Least,
    /// The largest.
    Most,
    /// No number.
    Nan,
    /// Above all.
    Infinite,
}

impl Fraction {
    /// Returns the number.
    pub(crate) fn get(self) -> f64 {
        match self {
            Self::Thousandths(thousandths) => f64::from(thousandths) / 1000.0,
            Self::Negative(thousandths) => f64::from(thousandths) / -1000.0,
            Self::Bits(bits) => f64::from_bits(bits),
            Self::Least => f64::from_bits(1),
            Self::Most => f64::MAX,
            Self::Nan => f64::NAN,
            Self::Infinite => f64::INFINITY,
        }
    }
}

/// A time that something took.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Time {
    /// None that a clock could see, as when it stands still or goes back.
    Zero,
    /// So many nanoseconds.
    Nanoseconds(u32),
    /// So many milliseconds.
    Milliseconds(u16),
    /// So many seconds.
    Seconds(u64),
    /// All there is.
    Most,
}

impl Time {
    /// Returns the time.
    pub(crate) const fn get(self) -> Duration {
        match self {
            Self::Zero => Duration::ZERO,
            Self::Nanoseconds(nanoseconds) => Duration::from_nanos(nanoseconds as u64),
            Self::Milliseconds(milliseconds) => Duration::from_millis(milliseconds as u64),
            Self::Seconds(seconds) => Duration::from_secs(seconds),
            Self::Most => Duration::MAX,
        }
    }
}
