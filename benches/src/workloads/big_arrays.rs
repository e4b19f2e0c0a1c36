//! `big_arrays`: eight lanes, each round a fresh array of 800 KB: every block is above any threshold, and the
//! work on it is long.
//!
//! A round fills the array from a generator, finds the places of its 4,245 largest numbers by partial
//! selection, and doubles that window until the sum of the numbers in it passes a bound. At full size 1,000
//! rounds a lane: 6.4 GB allocated in all.

use std::time::Duration;

use crate::lanes;
use crate::pool::THREADS;
use crate::workload::{Size, Workload};

const LEN: usize = 99_951;
const WINDOW: usize = 4_245;
/// The largest 17,000 of a hundred thousand numbers uniform in 0..1 sum up to about 15,500: two doublings.
const BOUND: f64 = 12_000.0;

/// See the module.
#[derive(Debug)]
pub struct BigArrays {
    rounds: usize,
}

impl BigArrays {
    /// Returns the workload.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            rounds: size.pick(1, 8, 1_000),
        }
    }
}

/// Runs one round and returns the window that was enough; `places` is room for the selection.
fn round(random: &mut fastrand::Rng, places: &mut [u32]) -> usize {
    let array: Vec<f64> = (0..LEN).map(|_| random.f64()).collect();
    let mut window = WINDOW;
    loop {
        for (place, index) in places.iter_mut().zip(0..) {
            *place = index;
        }
        let at = |place: &u32| array[*place as usize];
        places.select_nth_unstable_by(window, |a, b| at(b).total_cmp(&at(a)));
        let sum: f64 = places[..window].iter().map(at).sum();
        if sum > BOUND {
            return window;
        }
        window *= 2;
    }
}

impl Workload for BigArrays {
    fn name(&self) -> String {
        "big_arrays".into()
    }

    fn run(&self) -> Duration {
        let (elapsed, windows) = lanes::run(THREADS, |lane| {
            let mut random = fastrand::Rng::with_seed(lane as u64);
            let mut places = vec![0; LEN];
            (0..self.rounds)
                .filter(|_| round(&mut random, &mut places) == WINDOW * 4)
                .count()
        });
        assert_eq!(
            windows.iter().sum::<usize>(),
            self.rounds * THREADS,
            "rounds whose window was doubled twice"
        );
        elapsed
    }
}
