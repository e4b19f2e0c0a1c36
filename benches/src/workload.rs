//! `Workload`: what every workload offers, and the list of them.

use std::time::Duration;

use crate::workloads::big_arrays::BigArrays;
use crate::workloads::grow::Grow;
use crate::workloads::handoff::Handoff;
use crate::workloads::matmul::Matmul;
use crate::workloads::mergesort::Mergesort;
use crate::workloads::mergesort_vec::MergesortVec;
use crate::workloads::objarray::ObjArray;
use crate::workloads::pair::Pair;
use crate::workloads::tree::{Kind, Tree};

/// Something that allocates.
pub trait Workload: Sync {
    /// Returns the name, as short as a table needs it and unique in the list.
    fn name(&self) -> String;

    /// Runs once and returns the time of the part that counts: without making the input, starting
    /// threads, or checking the result.
    ///
    /// # Panics
    ///
    /// When the result is wrong.
    fn run(&self) -> Duration;
}

/// How large a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    /// A few milliseconds: for tests and smoke runs.
    Smoke,
    /// About a tenth of a second on two processors: short, so that the runs of a round lie close
    /// together in time.
    Short,
    /// The size of the published descriptions: seconds to a minute each.
    Full,
}

impl Size {
    /// Returns the value for this size.
    pub(crate) fn pick<T>(self, smoke: T, short: T, full: T) -> T {
        match self {
            Self::Smoke => smoke,
            Self::Short => short,
            Self::Full => full,
        }
    }
}

/// Returns all workloads, in the order of the tables.
#[must_use]
pub fn all(size: Size) -> Vec<Box<dyn Workload>> {
    let mut list: Vec<Box<dyn Workload>> = Vec::new();
    for threads in [1, 2, 4, 8] {
        list.push(Box::new(Pair::new(size, 64, threads)));
    }
    // Either side of the default threshold.
    for bytes in [16_383, 16_384] {
        list.push(Box::new(Pair::new(size, bytes, 8)));
    }
    for threads in [1, 8] {
        list.push(Box::new(Grow::new(size, threads)));
    }
    list.push(Box::new(Mergesort::new(size)));
    list.push(Box::new(MergesortVec::new(size)));
    list.push(Box::new(Tree::new(size, Kind::Immutable)));
    list.push(Box::new(Tree::new(size, Kind::Mutable)));
    list.push(Box::new(BigArrays::new(size)));
    list.push(Box::new(ObjArray::new(size)));
    list.push(Box::new(Matmul::new(size)));
    list.push(Box::new(Handoff::new(size)));
    list
}
