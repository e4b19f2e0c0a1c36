//! The deliveries: what each allocates, keeps and takes, from a seed.

use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_pcg::Pcg64Mcg;

/// The deliveries of a whole run.
pub const DELIVERIES: usize = 12_000;

/// The seed of every figure in the docs.
pub const SEED: u64 = 20_231_115;

/// What a worker holds before the first delivery: its program, booted.
pub const BOOTED: Amount = Amount {
    slots: 150_000,
    chunk_bytes: 12 << 20,
};

/// Slots and chunk bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Slots, by number.
    pub slots: usize,
    /// Bytes in chunks.
    pub chunk_bytes: usize,
}

/// One message delivered to the worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// What it allocates in small pieces.
    pub allocated: Amount,
    /// What of it stays for ever.
    pub kept: Amount,
    /// One large chunk, in bytes, dropped when the delivery ends; 0 for nearly all.
    pub large: usize,
    /// What the worker itself takes for it.
    pub time: Duration,
}

/// Makes `count` deliveries.
///
/// A delivery allocates 8,000 slots and 250 kB of chunks in the mean, log-normal with a long tail,
/// and takes 1 ms and 1.1 microseconds per slot: 10 ms in the mean. It keeps 250 slots and 20 kB in
/// the mean, so that a run of 12,000 ends with 100 MB of slots and 250 MB of chunks: what the
/// 400-500 MB reported for the setting that follows the live heap most closely leaves room for. One
/// in a thousand makes a chunk of 1 to 12 MiB. With these figures the default setting ends at half
/// speed, as was reported.
#[must_use]
pub fn deliveries(seed: u64, count: usize) -> Vec<Delivery> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..count).map(|_| delivery(&mut random)).collect()
}

fn delivery(random: &mut impl Rng) -> Delivery {
    let slots = log_normal(random, 8_000.0, 0.8);
    let chunk_bytes = log_normal(random, 250_000.0, 0.8);
    let kept = Amount {
        slots: log_normal(random, 250.0, 0.8).min(slots),
        chunk_bytes: log_normal(random, 20_000.0, 0.8).min(chunk_bytes),
    };
    let large = if random.random_range(0..1_000) == 0 {
        random.random_range(1 << 20..=12 << 20)
    } else {
        0
    };
    Delivery {
        allocated: Amount { slots, chunk_bytes },
        kept,
        large,
        time: Duration::from_nanos(1_000_000 + 1_100 * slots as u64),
    }
}

/// A log-normal number with this mean; `sigma` is the deviation of its logarithm.
fn log_normal(random: &mut impl Rng, mean: f64, sigma: f64) -> usize {
    let mu = mean.ln() - sigma * sigma / 2.0;
    let distribution = LogNormal::new(mu, sigma).expect("sigma is a number");
    distribution.sample(random) as usize
}
