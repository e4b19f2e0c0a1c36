//! A global allocator that counts every byte and block at almost no cost.

// Under loom there are no statics and no thread-local state, so what needs them is left out and the
// models drive accounts of their own.
#![cfg_attr(
    loom,
    allow(dead_code, unused_imports, reason = "models use the core, not the rim")
)]

mod account;
#[cfg(not(loom))]
mod alloc;
#[cfg(not(loom))]
mod exit;
mod hard_limit;
#[cfg(not(loom))]
mod heap;
mod ledger;
#[cfg(not(loom))]
mod local;
#[cfg(not(loom))]
mod mode;
mod operation;
#[cfg(not(loom))]
mod pages;
pub mod policy;
mod published;
mod registry;
#[cfg(not(loom))]
mod report;
mod room;
mod shard;
mod sleeper;
mod sum;
mod sync;
mod terms;
mod threshold;
mod totals;
#[cfg(not(loom))]
mod trigger;
mod watch;
mod watermark;

#[cfg(not(loom))]
pub use alloc::TallyAlloc;
pub use hard_limit::HardLimitError;
#[cfg(not(loom))]
pub use heap::{Heap, heap};
#[cfg(not(loom))]
pub use mode::{Batched, DefaultMode, Exact, Mode};
#[cfg(not(loom))]
pub use report::{Cause, Report};
pub use threshold::{MAX_THRESHOLD, ThresholdError};
pub use totals::Totals;
#[cfg(not(loom))]
pub use trigger::{Announcement, Trigger, TriggerError};
pub use watch::Watch;
pub use watermark::{Evidence, Measure};

#[cfg(all(test, loom))]
#[path = "../loom-tests/models/mod.rs"]
mod models;
