//! `matmul`: matrices of i64 multiplied by quarters, down to leaves of 128: few blocks, most of them large,
//! much arithmetic.
//!
//! A node copies the eight quarters of its operands, has the four quarters of the result computed, three of
//! them as tasks and one inline, and puts them together: with the two products that each quarter is the sum
//! of, 17 arrays. The description this follows speaks of 341 inner nodes and 1,024 leaves for 4,096², which is
//! one product a quarter; a true product has two, and then it can be checked.

use std::time::{Duration, Instant};

use crate::pool::pool;
use crate::workload::{Size, Workload};

const LEAF: usize = 128;

/// See the module.
#[derive(Debug)]
pub struct Matmul {
    side: usize,
    left: Vec<i64>,
    right: Vec<i64>,
}

impl Matmul {
    /// Returns the workload with its operands.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let side: usize = size.pick(256, 512, 4_096);
        let mut random = fastrand::Rng::with_seed(7);
        let mut matrix = || {
            (0..side * side)
                .map(|_| random.i64(-1_000..1_000))
                .collect()
        };
        Self {
            side,
            left: matrix(),
            right: matrix(),
        }
    }

    /// Checks a product against its factors, by multiplying a vector with either: a wrong product agrees
    /// with the right one on a random vector next to never.
    fn check(&self, product: &[i64]) {
        let mut random = fastrand::Rng::with_seed(11);
        let vector: Vec<i64> = (0..self.side).map(|_| random.i64(-1_000..1_000)).collect();
        let times = |matrix: &[i64], vector: &[i64]| -> Vec<i64> {
            matrix
                .chunks(self.side)
                .map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
                .collect()
        };
        assert!(
            times(product, &vector) == times(&self.left, &times(&self.right, &vector)),
            "the product is right"
        );
    }
}

/// Copies the quarter of a square that begins at a row and a column.
fn quarter(matrix: &[i64], side: usize, row: usize, column: usize) -> Vec<i64> {
    let half = side / 2;
    let mut copy = Vec::with_capacity(half * half);
    for line in matrix.chunks(side).skip(row).take(half) {
        copy.extend_from_slice(&line[column..column + half]);
    }
    copy
}

fn leaf(left: &[i64], right: &[i64], side: usize) -> Vec<i64> {
    let mut product = vec![0; side * side];
    for (line, row) in product.chunks_mut(side).zip(left.chunks(side)) {
        for (&a, column) in row.iter().zip(right.chunks(side)) {
            for (sum, &b) in line.iter_mut().zip(column) {
                *sum += a * b;
            }
        }
    }
    product
}

fn multiply(left: &[i64], right: &[i64], side: usize) -> Vec<i64> {
    if side <= LEAF {
        return leaf(left, right, side);
    }
    let half = side / 2;
    let quarters = |matrix| {
        [(0, 0), (0, half), (half, 0), (half, half)]
            .map(|(row, column)| quarter(matrix, side, row, column))
    };
    let (a, b) = (quarters(left), quarters(right));
    // The quarter of the result in a row and a column of quarters.
    let part = |row: usize, column: usize| {
        let mut sum = multiply(&a[row * 2], &b[column], half);
        let second = multiply(&a[row * 2 + 1], &b[2 + column], half);
        for (sum, term) in sum.iter_mut().zip(second) {
            *sum += term;
        }
        sum
    };
    let (mut p0, mut p1, mut p2) = (Vec::new(), Vec::new(), Vec::new());
    let mut p3 = Vec::new();
    rayon::scope(|scope| {
        scope.spawn(|_| p0 = part(0, 0));
        scope.spawn(|_| p1 = part(0, 1));
        scope.spawn(|_| p2 = part(1, 0));
        p3 = part(1, 1);
    });
    let mut product = Vec::with_capacity(side * side);
    for (left, right) in [(p0, p1), (p2, p3)] {
        for (left, right) in left.chunks(half).zip(right.chunks(half)) {
            product.extend_from_slice(left);
            product.extend_from_slice(right);
        }
    }
    product
}

impl Workload for Matmul {
    fn name(&self) -> String {
        "matmul".into()
    }

    fn run(&self) -> Duration {
        let (elapsed, product) = pool().install(|| {
            let begin = Instant::now();
            let product = multiply(&self.left, &self.right, self.side);
            (begin.elapsed(), product)
        });
        self.check(&product);
        elapsed
    }
}
