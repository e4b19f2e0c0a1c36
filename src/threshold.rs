//! Which thresholds there are.

use std::error::Error;
use std::fmt;

use crate::terms;

/// The largest threshold, in bytes: 1 GiB, or 128 KiB where pointers have 32 bits.
///
/// The error bound is the threshold times the number of threads; this keeps the bound of a million
/// threads (4,096 on 32 bits) inside an eighth of the range of a `usize`.
pub const MAX_THRESHOLD: usize = terms::MAX_THRESHOLD;

/// Why a threshold was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThresholdError {
    /// It is above [`MAX_THRESHOLD`].
    #[non_exhaustive]
    TooLarge {
        /// The threshold that was asked for, in bytes.
        requested: usize,
    },
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { requested } => write!(
                f,
                "a threshold of {requested} bytes is above the maximum of {MAX_THRESHOLD}"
            ),
        }
    }
}

impl Error for ThresholdError {}

/// Returns the threshold that `bytes` stands for.
pub(crate) fn checked(bytes: usize) -> Result<usize, ThresholdError> {
    if bytes > MAX_THRESHOLD {
        return Err(ThresholdError::TooLarge { requested: bytes });
    }
    Ok(bytes.max(1))
}
