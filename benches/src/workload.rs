//! `Workload`: what every workload offers, and the list of them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

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

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pick("smoke", "short", "full"))
    }
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        [Self::Smoke, Self::Short, Self::Full]
            .into_iter()
            .find(|size| size.to_string() == text)
            .with_context(|| format!("no size is called {text}"))
    }
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
        list.push(Box::new(Grow::new(size, threads, true)));
        list.push(Box::new(Grow::new(size, threads, false)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_finds_its_own_result_right_at_the_smallest_size() {
        for workload in all(Size::Smoke) {
            let elapsed = workload.run();
            assert!(elapsed > Duration::ZERO, "{} took no time", workload.name());
        }
    }

    #[test]
    fn names_tell_workloads_apart() {
        let mut names: Vec<String> = all(Size::Smoke)
            .iter()
            .map(|workload| workload.name())
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
