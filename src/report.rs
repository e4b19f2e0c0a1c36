//! What a trigger can say about itself.

use std::time::Duration;

use crate::watermark::Evidence;

/// Why a trigger last fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// The limit that was reached, in the trigger's measure.
    pub limit: usize,
    /// The figure that reached it; for a request, what would be live once it is served. Of several
    /// threads that saw the same crossing, any one's.
    pub figure: usize,
    /// How the figure was found.
    pub evidence: Evidence,
}

/// What a trigger has seen and done since it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Collections that have ended.
    pub cycles: u64,
    /// Time collecting, as it was reported.
    pub collecting: Duration,
    /// Time in between, up to the last collection.
    pub mutating: Duration,
    /// Bytes allocated, up to the last collection.
    pub bytes_allocated: u64,
    /// The limit in force, in the trigger's measure.
    pub limit: usize,
    /// What is left below the limit, in the trigger's measure: 0 when it is reached.
    pub headroom: usize,
    /// How often the policy has grown its reserve.
    pub growth_steps: u64,
    /// Why it last fired; `None` before the first time.
    pub cause: Option<Cause>,
}

impl Report {
    /// Returns the share of time spent collecting, from 0 to 1; 0 before the first collection.
    #[must_use]
    pub fn collecting_share(&self) -> f64 {
        let all = self.collecting.saturating_add(self.mutating).as_secs_f64();
        if all > 0.0 {
            self.collecting.as_secs_f64() / all
        } else {
            0.0
        }
    }

    /// Returns the bytes allocated per second of time between collections; 0 before the first.
    #[must_use]
    pub fn allocation_rate(&self) -> f64 {
        let seconds = self.mutating.as_secs_f64();
        if seconds > 0.0 {
            self.bytes_allocated as f64 / seconds
        } else {
            0.0
        }
    }
}
