//! What a run came to.

use std::time::Duration;

/// A worker at the end of one delivery. Counts and times are sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Collections.
    pub collections: u64,
    /// Time collecting.
    pub collecting: Duration,
    /// The worker's own time.
    pub mutating: Duration,
    /// Bytes found live by all collections together: their work, as a figure that no noise touches.
    pub marked: u64,
    /// Bytes live.
    pub live: usize,
    /// Bytes resident: the most that was in use since the process began.
    pub resident: usize,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Collections.
    pub collections: u64,
    /// Time collecting.
    pub collecting: Duration,
    /// The worker's own time.
    pub mutating: Duration,
    /// Share of time collecting in each tenth of the deliveries.
    pub tenths: Vec<f64>,
    /// Bytes found live by all collections together.
    pub marked: u64,
    /// The same in each tenth of the deliveries.
    pub marked_in_tenths: Vec<u64>,
    /// How often a reserve has grown.
    pub growth_steps: u64,
    /// Bytes reserved at the end.
    pub reserved: usize,
    /// Bytes live at the end.
    pub live: usize,
    /// Mean of the bytes resident at the end of each delivery.
    pub mean_resident: f64,
    /// Most bytes resident.
    pub peak_resident: usize,
}

impl Outcome {
    /// Sums up the samples of a run.
    ///
    /// # Panics
    ///
    /// When there are none.
    #[must_use]
    pub fn new(samples: &[Sample], reserved: usize, growth_steps: u64) -> Self {
        let last = samples.last().expect("a run has deliveries");
        let mut ends: Vec<Sample> = (1..=10)
            .map(|tenth| samples[(samples.len() * tenth / 10).max(1) - 1])
            .collect();
        ends.insert(0, Sample::default());
        let tenths = ends
            .windows(2)
            .map(|pair| {
                share(
                    pair[1].collecting.saturating_sub(pair[0].collecting),
                    pair[1].mutating.saturating_sub(pair[0].mutating),
                )
            })
            .collect();
        Self {
            collections: last.collections,
            collecting: last.collecting,
            mutating: last.mutating,
            tenths,
            marked: last.marked,
            marked_in_tenths: ends
                .windows(2)
                .map(|pair| pair[1].marked - pair[0].marked)
                .collect(),
            growth_steps,
            reserved,
            live: last.live,
            mean_resident: samples.iter().map(|s| s.resident as f64).sum::<f64>()
                / samples.len() as f64,
            peak_resident: samples.iter().map(|s| s.resident).max().unwrap_or(0),
        }
    }

    /// Mean of the shares of some of the tenths.
    #[must_use]
    pub fn mean_of_tenths(&self, tenths: std::ops::Range<usize>) -> f64 {
        let count = tenths.len().max(1) as f64;
        self.tenths[tenths].iter().sum::<f64>() / count
    }

    /// Share of time collecting.
    #[must_use]
    pub fn share(&self) -> f64 {
        share(self.collecting, self.mutating)
    }
}

fn share(collecting: Duration, mutating: Duration) -> f64 {
    let total = (collecting + mutating).as_secs_f64();
    if total > 0.0 {
        collecting.as_secs_f64() / total
    } else {
        0.0
    }
}
