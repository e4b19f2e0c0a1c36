//! Bytes per second, smoothed.

use std::time::Duration;

use super::error::{Parameter, PolicyError};
#[cfg(feature = "serde")]
use super::saved;

/// A rate as two exponentially weighted means, one of bytes and one of seconds.
///
/// Kept apart, they take any clock: a stretch too short to measure adds its bytes now and its time
/// with the tick that ends it, and a long stretch weighs more than a short one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct Rate {
    /// Mean of the bytes.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "saved::mean"))]
    pub bytes: f64,
    /// Mean of the time, in seconds.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "saved::mean"))]
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
        Ok(Self {
            bytes: mean(self.bytes)?,
            seconds: mean(self.seconds)?,
        })
    }
}

/// Returns `value` if it can be a mean of what was measured.
pub(super) fn mean(value: f64) -> Result<f64, PolicyError> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(PolicyError::OutOfRange {
            parameter: Parameter::Rate,
            value,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Rate;
    use std::time::Duration;

    #[test]
    fn the_first_sample_counts_in_full_and_a_later_one_for_what_is_not_kept() {
        let mut rate = Rate::default();
        rate.record(400, Duration::from_secs(8), 0.75);
        assert_eq!((rate.bytes, rate.seconds), (400.0, 8.0));
        rate.record(800, Duration::from_secs(16), 0.75);
        assert_eq!((rate.bytes, rate.seconds), (500.0, 10.0));
        assert_eq!(rate.per_second(), Some(50.0));
    }

    #[test]
    fn there_is_a_rate_once_both_bytes_and_time_have_been_seen() {
        for (bytes, seconds, per_second) in [
            (0.0, 0.0, None),
            (6.0, 0.0, None),
            (0.0, 2.0, None),
            (6.0, 2.0, Some(3.0)),
            (0.5, 0.25, Some(2.0)),
        ] {
            assert_eq!(Rate { bytes, seconds }.per_second(), per_second);
        }
    }
}
