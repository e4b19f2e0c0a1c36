//! Bytes per second, smoothed.

use std::time::Duration;

use super::error::{Parameter, PolicyError};

/// A rate as two exponentially weighted means, one of bytes and one of seconds.
///
/// Kept apart, they take any clock: a stretch too short to measure adds its bytes now and its time
/// with the tick that ends it, and a long stretch weighs more than a short one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Mean of the bytes.
    pub bytes: f64,
    /// Mean of the time, in seconds.
    pub seconds: f64,
}

impl Rate {
    /// Mixes in a new sample; `keep` in `0..1` is the weight of what was there before. The first
    /// sample counts in full.
    pub(super) fn record(&mut self, bytes: usize, time: Duration, keep: f64) {
        let sample = Self {
            bytes: bytes as f64,
            seconds: time.as_secs_f64(),
        };
        if *self == Self::default() {
            *self = sample;
        } else {
            self.bytes = keep * self.bytes + (1.0 - keep) * sample.bytes;
            self.seconds = keep * self.seconds + (1.0 - keep) * sample.seconds;
        }
    }

    /// Returns bytes per second; `None` until both bytes and time have been seen.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        (self.bytes > 0.0 && self.seconds > 0.0).then(|| self.bytes / self.seconds)
    }

    /// Returns the rate unless one of its figures is negative, infinite or not a number.
    pub(super) fn checked(self) -> Result<Self, PolicyError> {
        for value in [self.bytes, self.seconds] {
            if !value.is_finite() || value < 0.0 {
                return Err(PolicyError::OutOfRange {
                    parameter: Parameter::Rate,
                    value,
                });
            }
        }
        Ok(self)
    }
}
