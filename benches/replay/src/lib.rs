//! What each policy costs in time and memory while a heap grows.
//!
//! A long-running worker of the JavaScript engine XS slowed to half its speed because its live heap
//! grew and its reserve grew by fixed steps; people then tuned initial and incremental sizes by hand.
//! This package sets those five settings beside the policies of `tally_alloc`:
//!
//! * in virtual time ([`worker`]): 12,000 deliveries from a seed, times from a cost model
//!   ([`cost`]), so that every figure is the same on every machine. `cargo run --release -p
//!   tally-alloc-replay --bin replay`.
//! * on a real collector, QuickJS, whose heap the allocator counts and whose collections a policy
//!   starts. `cargo run --release -p tally-alloc-replay`.

pub mod cost;
pub mod engine;
pub mod matching;
pub mod outcome;
pub mod plot;
pub mod settings;
pub mod sizing;
pub mod table;
pub mod virtual_time;
pub mod worker;
pub mod workload;
