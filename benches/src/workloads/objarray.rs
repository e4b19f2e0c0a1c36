//! `objarray`: eight lanes; lane *i* builds a square matrix of side *s·i* of boxed trait objects, all of which
//! live until the lane ends.
//!
//! Each cell makes two boxes, a number and a decimal string, and keeps one of them at random. 204·s² cells.

use std::time::Duration;

use crate::lanes;
use crate::pool::THREADS;
use crate::workload::{Size, Workload};

/// See the module.
#[derive(Debug)]
pub struct ObjArray {
    side: usize,
}

impl ObjArray {
    /// Returns the workload. A side of 1,000 would have 204 million cells; the full size, 300, stays under
    /// 2 GiB.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            side: size.pick(10, 60, 300),
        }
    }
}

trait Cell {
    fn value(&self) -> u64;
}

impl Cell for u64 {
    fn value(&self) -> u64 {
        *self
    }
}

impl Cell for String {
    fn value(&self) -> u64 {
        self.parse().expect("a number was written")
    }
}

/// Builds one lane's matrix row by row; returns its cells' sum as they were built and as they are found.
fn build(side: usize, seed: u64) -> (u64, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut built = 0_u64;
    let matrix: Vec<Vec<Box<dyn Cell>>> = (0..side)
        .map(|_| {
            (0..side)
                .map(|_| {
                    let value = random.u64(..1 << 40);
                    built += value;
                    let number: Box<dyn Cell> = Box::new(value);
                    let text: Box<dyn Cell> = Box::new(value.to_string());
                    if random.bool() { number } else { text }
                })
                .collect()
        })
        .collect();
    let found = matrix.iter().flatten().map(|cell| cell.value()).sum();
    (built, found)
}

impl Workload for ObjArray {
    fn name(&self) -> String {
        "objarray".into()
    }

    fn run(&self) -> Duration {
        let (elapsed, sums) =
            lanes::run(THREADS, |lane| build(self.side * (lane + 1), lane as u64));
        for (lane, (built, found)) in sums.into_iter().enumerate() {
            assert_eq!(built, found, "sum of the cells of lane {lane}");
        }
        elapsed
    }
}
