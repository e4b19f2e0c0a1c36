//! The workloads, one a file.

pub mod big_arrays;
pub mod grow;
pub mod handoff;
pub mod matmul;
pub mod mergesort;
pub mod mergesort_vec;
pub mod objarray;
pub mod pair;
pub mod tree;
