//! Rounds: runs of all ways side by side, paired and interleaved.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::interval::{Interval, median};

/// What one run showed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// The time of the part that counts.
    pub elapsed: Duration,
    /// Writes to the shared line during the run, and the allocations and reallocations that they were
    /// made for; zero where nothing counts them.
    pub shared_writes: usize,
    /// See `shared_writes`.
    pub requests: usize,
}

/// When there have been enough rounds.
#[derive(Clone, Copy, Debug)]
pub struct Enough {
    /// Not before this many.
    pub rounds: usize,
    /// Not before this time has passed.
    pub time: Duration,
}

/// One workload under all ways.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The workload's name.
    pub workload: String,
    /// How many rounds there were.
    pub rounds: usize,
    /// The median time of the base, in nanoseconds.
    pub base_nanoseconds: f64,
    /// The ways other than the base, in the order given.
    pub ways: Vec<Compared>,
}

/// One way of counting in a [`Comparison`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// What is compared.
    pub way: String,
    /// Its time as a ratio to the base's in the same round.
    pub ratio: Interval,
    /// Writes to the shared line per million allocations and reallocations; absent where nothing counts
    /// them.
    pub writes_per_million: Option<f64>,
}

/// Runs `ways` in rounds until there have been `enough`; the first is the base. Each round runs every way
/// once, in random order, after one round of each to warm up.
///
/// `run` is given the index of a way, `progress` the time that has passed.
///
/// # Errors
///
/// The first that `run` returns.
pub fn compare(
    workload: &str,
    ways: &[String],
    enough: Enough,
    mut run: impl FnMut(usize) -> anyhow::Result<Run>,
    mut progress: impl FnMut(Duration),
) -> anyhow::Result<Comparison> {
    let begin = Instant::now();
    let mut random = fastrand::Rng::with_seed(9);
    let mut order: Vec<usize> = (0..ways.len()).collect();
    for &way in &order {
        run(way)?;
        progress(begin.elapsed());
    }
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); ways.len()];
    while runs[0].len() < enough.rounds || begin.elapsed() < enough.time {
        random.shuffle(&mut order);
        for &way in &order {
            runs[way].push(run(way)?);
            progress(begin.elapsed());
        }
    }
    let seconds = |run: &Run| run.elapsed.as_secs_f64();
    let base: Vec<f64> = runs[0].iter().map(seconds).collect();
    let compared = ways.iter().zip(&runs).skip(1).map(|(way, runs)| {
        let ratios: Vec<f64> = runs
            .iter()
            .zip(&base)
            .map(|(run, base)| seconds(run) / base)
            .collect();
        let writes: usize = runs.iter().map(|run| run.shared_writes).sum();
        let requests: usize = runs.iter().map(|run| run.requests).sum();
        Compared {
            way: way.clone(),
            ratio: Interval::around_median(&ratios),
            writes_per_million: (requests > 0).then(|| writes as f64 * 1e6 / requests as f64),
        }
    });
    Ok(Comparison {
        workload: workload.to_owned(),
        rounds: base.len(),
        base_nanoseconds: median(&base) * 1e9,
        ways: compared.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_runs_every_way_and_ratios_are_taken_within_it() {
        // Each round is twice as slow as the one before it: only pairing finds the ratios.
        let mut calls = vec![0_u32; 3];
        let ways = ["base", "same", "double"].map(String::from);
        let enough = Enough {
            rounds: 9,
            time: Duration::ZERO,
        };
        let run = |way: usize| {
            let round = calls[way];
            calls[way] += 1;
            Ok(Run {
                elapsed: Duration::from_micros(100 << round) * if way == 2 { 2 } else { 1 },
                shared_writes: way,
                requests: if way == 2 { 1_000 } else { 0 },
            })
        };
        let found = compare("made up", &ways, enough, run, |_| ()).expect("no run fails");
        assert_eq!(calls, [10, 10, 10], "nine rounds and one to warm up");
        assert_eq!(found.rounds, 9);
        let [same, double] = &found.ways[..] else {
            panic!("{found:?} has two ways beside the base")
        };
        assert_eq!((same.ratio.low, same.ratio.high), (1.0, 1.0));
        assert_eq!((double.ratio.low, double.ratio.high), (2.0, 2.0));
        assert_eq!(same.writes_per_million, None);
        assert_eq!(double.writes_per_million, Some(2_000.0));
    }
}
