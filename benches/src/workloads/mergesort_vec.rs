//! `mergesort_vec`: the textbook form, in which each merge allocates a `Vec` of its own; eight threads at the
//! top levels.

use std::time::{Duration, Instant};

use crate::pool::pool;
use crate::workload::{Size, Workload};
use crate::workloads::mergesort::{check, merge, numbers};

/// See the module.
#[derive(Debug)]
pub struct MergesortVec {
    numbers: Vec<i64>,
}

impl MergesortVec {
    /// Returns the workload with its input.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            numbers: numbers(size.pick(1 << 14, 1 << 20, 1 << 25)),
        }
    }
}

/// Returns `numbers` in order; `forks` levels go to the pool.
fn sorted(numbers: &[i64], forks: u32) -> Vec<i64> {
    if numbers.len() <= 1 {
        return numbers.to_vec();
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    let (left, right) = if forks == 0 {
        (sorted(left, 0), sorted(right, 0))
    } else {
        rayon::join(|| sorted(left, forks - 1), || sorted(right, forks - 1))
    };
    let mut merged = vec![0; numbers.len()];
    merge(&left, &right, &mut merged);
    merged
}

impl Workload for MergesortVec {
    fn name(&self) -> String {
        "mergesort_vec".into()
    }

    fn run(&self) -> Duration {
        let (elapsed, result) = pool().install(|| {
            let begin = Instant::now();
            let result = sorted(&self.numbers, 3);
            (begin.elapsed(), result)
        });
        check(&result, &self.numbers);
        elapsed
    }
}
