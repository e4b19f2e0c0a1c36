//! `mergesort`: both halves of every range are spawned as boxed tasks on the pool, down to leaves of 32
//! numbers: as many small blocks as the work can be cut into, often freed on another thread.
//!
//! Two arrays of the same size; levels take turns in which of them they merge into. At full size 2,097,150
//! tasks.

use std::time::{Duration, Instant};

use crate::pool::pool;
use crate::workload::{Size, Workload};

/// Longer ranges are cut in two.
const LEAF: usize = 32;

/// See the module.
#[derive(Debug)]
pub struct Mergesort {
    numbers: Vec<i64>,
}

impl Mergesort {
    /// Returns the workload with its input.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            numbers: numbers(size.pick(1 << 14, 1 << 20, 1 << 25)),
        }
    }
}

/// Returns `count` numbers uniform in `1..=count`, always the same.
pub(crate) fn numbers(count: usize) -> Vec<i64> {
    let mut random = fastrand::Rng::with_seed(42);
    (0..count).map(|_| random.i64(1..=count as i64)).collect()
}

/// Panics unless `sorted` is the numbers of `input` in order.
pub(crate) fn check(sorted: &[i64], input: &[i64]) {
    assert!(sorted.is_sorted(), "{} numbers are in order", sorted.len());
    // A sum and a sum of squares: what was lost or doubled shows in one of them.
    let sums = |numbers: &[i64]| {
        numbers.iter().fold((0_i64, 0_i64), |(sum, squares), &n| {
            (sum.wrapping_add(n), squares.wrapping_add(n.wrapping_mul(n)))
        })
    };
    assert_eq!(sums(sorted), sums(input), "sums of sorted and of input");
}

/// Merges two sorted ranges into one.
pub(crate) fn merge(left: &[i64], right: &[i64], into: &mut [i64]) {
    let (mut l, mut r) = (0, 0);
    for slot in into {
        let from_left = r == right.len() || (l < left.len() && left[l] <= right[r]);
        let (from, at) = if from_left {
            (left, &mut l)
        } else {
            (right, &mut r)
        };
        *slot = from[*at];
        *at += 1;
    }
}

/// Sorts `source`, and leaves the result in `other` if `into_other`, else in `source`.
fn sort(source: &mut [i64], other: &mut [i64], into_other: bool) {
    if source.len() <= LEAF {
        source.sort_unstable();
        if into_other {
            other.copy_from_slice(source);
        }
        return;
    }
    let middle = source.len() / 2;
    {
        let (source_left, source_right) = source.split_at_mut(middle);
        let (other_left, other_right) = other.split_at_mut(middle);
        rayon::scope(|scope| {
            scope.spawn(|_| sort(source_left, other_left, !into_other));
            scope.spawn(|_| sort(source_right, other_right, !into_other));
        });
    }
    let (from, into) = if into_other {
        (source, other)
    } else {
        (other, source)
    };
    let (left, right) = from.split_at(middle);
    merge(left, right, into);
}

impl Workload for Mergesort {
    fn name(&self) -> String {
        "mergesort".into()
    }

    fn run(&self) -> Duration {
        let mut numbers = self.numbers.clone();
        let mut auxiliary = vec![1; numbers.len()];
        let elapsed = pool().install(|| {
            let begin = Instant::now();
            sort(&mut numbers, &mut auxiliary, false);
            begin.elapsed()
        });
        check(&numbers, &self.numbers);
        elapsed
    }
}
