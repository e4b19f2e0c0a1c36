//! What counting costs: the workloads and the harness, shared by every bench.
//!
//! # How a ratio is taken
//!
//! Times on a shared machine say little; ratios taken side by side do. A *round* runs a workload once
//! under every way of counting, in random order, and divides each time by the uncounted time of the same
//! round. What is printed is the median of those ratios and a bootstrap interval around it
//! ([`interval`]). One of the ways is *control*: uncounted once more. Its ratio is what the machine and
//! the method make of no difference at all, and no other ratio means more than that.
//!
//! # Two harnesses
//!
//! * [`switch`] picks the way of counting at run time, inside one process: the same code at the same
//!   addresses, so nothing but the counting differs. The `overhead` command and the criterion benches
//!   use it.
//! * A process has one global allocator, and other crates' allocators cannot be switched; each has a
//!   program of its own ([`child`]), and rounds go from process to process.

#![cfg_attr(not(test), warn(clippy::print_stdout))]

pub mod adding;
pub mod callgrind;
pub mod child;
pub mod count;
pub mod interval;
pub mod lanes;
pub mod memcheck;
pub mod overhead;
pub mod plots;
pub mod pool;
pub mod probes;
pub mod published;
pub mod report;
pub mod rounds;
pub mod scaling;
pub mod switch;
pub mod workload;
pub mod workloads;

#[doc(hidden)]
pub use anyhow;
