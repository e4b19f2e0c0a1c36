//! `Interval`: the median of some ratios and how sure it is.
//!
//! The interval is the percentile bootstrap's: the ratios are drawn anew from themselves, with replacement,
//! 10,000 times, and the middle 95 % of the medians of those draws is what is printed. It supposes nothing
//! about how times are distributed, which is good, since on a shared machine they have long tails. Medians
//! and quantiles are `statrs`'s. The draws are seeded: the same ratios give the same interval.

use serde::{Deserialize, Serialize};
use statrs::statistics::{Data, OrderStatistics};

const DRAWS: usize = 10_000;

/// A median and the 95 % interval around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median of the ratios themselves.
    pub median: f64,
    /// 2.5 % of the drawn medians are below.
    pub low: f64,
    /// 2.5 % of the drawn medians are above.
    pub high: f64,
}

impl Interval {
    /// Returns the median of `ratios` with its interval.
    ///
    /// # Panics
    ///
    /// Without ratios.
    #[must_use]
    pub fn around_median(ratios: &[f64]) -> Self {
        assert!(!ratios.is_empty(), "no ratios, no median");
        let mut random = fastrand::Rng::with_seed(1);
        let mut draw = vec![0.0; ratios.len()];
        let medians: Vec<f64> = (0..DRAWS)
            .map(|_| {
                draw.fill_with(|| ratios[random.usize(..ratios.len())]);
                Data::new(draw.as_mut_slice()).median()
            })
            .collect();
        let mut medians = Data::new(medians);
        Self {
            median: median(ratios),
            low: medians.quantile(0.025),
            high: medians.quantile(0.975),
        }
    }
}

/// Returns the median of `values`.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    Data::new(values.to_vec()).median()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median_and_narrows_with_more_ratios() {
        let mut random = fastrand::Rng::with_seed(3);
        let few: Vec<f64> = (0..10).map(|_| 1.0 + random.f64()).collect();
        let many: Vec<f64> = (0..1_000).map(|_| 1.0 + random.f64()).collect();
        let (few, many) = (
            Interval::around_median(&few),
            Interval::around_median(&many),
        );
        for interval in [few, many] {
            assert!(
                interval.low <= interval.median && interval.median <= interval.high,
                "{interval:?}"
            );
        }
        assert!(
            many.high - many.low < (few.high - few.low) / 2.0,
            "{many:?} is much narrower than {few:?}"
        );
        assert!((many.median - 1.5).abs() < 0.05, "{many:?} is about 1.5");
    }

    #[test]
    fn the_interval_misses_the_truth_about_as_often_as_it_says() {
        let mut random = fastrand::Rng::with_seed(5);
        let misses = (0..200)
            .filter(|_| {
                let ratios: Vec<f64> = (0..25).map(|_| random.f64()).collect();
                let interval = Interval::around_median(&ratios);
                interval.low > 0.5 || interval.high < 0.5
            })
            .count();
        assert!(
            (2..=24).contains(&misses),
            "{misses} of 200 intervals missed, about 10 should"
        );
    }
}
