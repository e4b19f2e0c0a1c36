//! A global allocator that counts every byte and block, in batches on each thread, and whose exact
//! figures can be read at any moment.
//!
//! ```
//! use tally_alloc::{TallyAlloc, heap};
//!
//! #[global_allocator]
//! static GLOBAL: TallyAlloc = TallyAlloc::system();
//!
//! fn main() {
//!     let before = heap().thread_totals();
//!     let kept = vec![1_u8; 100_000];
//!     let change = heap().thread_totals() - before;
//!     assert_eq!(change.bytes_allocated, 100_000);
//!     assert_eq!(change.allocations, 1);
//!
//!     // The process, exactly: a sum over all threads.
//!     let totals = heap().totals();
//!     assert!(totals.live_bytes() >= kept.len());
//!
//!     // The process, from one shared total: off by no more than the bound.
//!     assert!(heap().live_bytes().abs_diff(totals.live_bytes()) <= heap().error_bound());
//! }
//! ```
//!
//! [`TallyAlloc`] goes around any inner allocator; [`heap()`] is where everything is read. A [`Trigger`] tells a
//! collector when to act, at limits that a [`policy`] sets. A [hard limit](Heap::set_hard_limit) refuses what
//! would go past it. [`Heap::measure`] and a [`Scope`] tell what a piece of code did, [`assert_allocates!`] holds a
//! test to it, and [`Heap::threads`] lists who did what. A [`Counter`] is the same account for one object: a VM instance, a cache.
//!
//! # What is exact and what is not
//!
//! *Truth* is the bytes live at that moment: requested with success and not yet given back. Bytes are
//! those asked for (`Layout::size`), not what the allocator rounds them up to.
//!
//! | figure | what it promises |
//! | --- | --- |
//! | [`Heap::totals`], no operation under way | `live_bytes() == truth`, and every other field is exact, whatever threads have come and gone |
//! | [`Heap::totals`], while threads run | `live_bytes()` ≥ what was live throughout the call, and above that by at most what was freed during the call; a field never goes back |
//! | [`Heap::thread_totals`] | exact: what the calling thread itself has done |
//! | [`Heap::live_bytes`], [`Batched`] | `truth − error_bound()` ≤ `live_bytes()` ≤ `truth + error_bound()`, and never below zero |
//! | [`Heap::error_bound`], [`Batched`] | for each thread, the threshold it is under less one byte; [16 KiB](Heap::threshold) unless set. Under a hard limit, and in [`Exact`] too, what threads are just asking for comes on top |
//! | [`Heap::live_bytes`], [`Exact`] | `== truth` after every operation that has returned; the bound is 0 |
//! | [`Heap::peak_bytes`] | the highest *published* live bytes: ≥ every `live_bytes()` read before, and within the bound of the truth |
//! | [`Scope::peak_bytes`] | as [`Heap::peak_bytes`], since the scope was opened |
//! | [`Trigger`] on live bytes | never due while the exact figure is below its limit; due at the latest when a thread publishes with the exact figure at or above it, which is then above the limit by less than twice the bound and one block for each thread just publishing |
//! | [`Heap::set_hard_limit`] | exact live bytes never exceed it, but by what was under way when it was set, and up to a threshold for each thread that was just publishing then; a request is not refused while live bytes, request and twice the bound fit below it |
//!
//! # What it costs
//!
//! In batches, an operation is one subtraction from the thread's room, one branch and two additions to
//! counters that only this thread writes. Once per threshold of traffic the thread looks; only if a
//! threshold of bytes is then pending does it write to the cache line that all threads share. A thread that
//! frees what it allocates never does. [`Heap::shared_writes`] tells how often it happens in a program.
//!
//! A `malloc` and `free` of 64 bytes in a loop takes 148 instructions uncounted, 165.3 counted in batches and
//! 227 counted exactly (x86-64 Linux, glibc 2.36, release with LTO, callgrind). The README has the times, on
//! several threads, and the command for your own.
//!
//! A shard takes 128 bytes on x86-64 (192 resident, with what fills up its pages), and there are as many as threads were
//! alive at once.
//! None of the four methods of the allocator locks, allocates, panics or unwinds.
//!
//! # How it works
//!
//! Each thread has a *shard*: counters that only it writes and that are never reset, not even when the
//! thread ends and another takes the shard over. So the exact total is the plain sum over all shards, at
//! any moment, without a lock. What a thread has counted and not published yet is kept under the threshold
//! by its *room*: the bytes that may still pass in each direction before it has to look.
//!
//! The arguments, with the memory orderings, stand in the documentation of the private modules
//! (`cargo doc --document-private-items`): `shard` for the counters, `room` for how far a thread runs on,
//! `ledger`, `published` and `terms` for publishing, the error bound and the peak, `sum` for the exact sum, `registry`
//! for the shards' ownership, `local` and `exit` for how a thread comes by its shard and gives it back, `seat` for how
//! others read whose it is, `peaks` for the peaks of scopes,
//! `watermark` for how a limit is watched, `hard_limit` for how one is kept.
//!
//! # When not to use it
//!
//! * To learn which line of code allocates: this counts for the process and for each thread.
//! * To learn the resident size: what the allocator rounds up or keeps, stacks, mapped files and the
//!   `malloc` of C libraries are not in it.
//! * Across plugins: each copy of this crate in a process has an account of its own ([`heap()`]).
//! * Where signal handlers allocate, which `malloc` does not permit either: an update of a counter can be
//!   undone. [They may read](#signal-handlers).
//! * Where the standard library is linked as a shared object (`-C prefer-dynamic`): the compiler gives that object an allocator
//!   of its own ([rust-lang/rust#100781](https://github.com/rust-lang/rust/issues/100781)), so what the compiled code of
//!   the standard library asks for is not counted, but when the program frees it, it is.
//! * With tens of thousands of threads and only [`Heap::live_bytes`] to go by: the bound grows with each.
//!   Lower the threshold, or read [`Heap::totals`].
//!
//! # Signal handlers
//!
//! A signal handler may *read*, whatever its thread was doing, even inside the allocator: [`Heap::live_bytes`],
//! [`Heap::error_bound`], [`Heap::totals`], [`Heap::thread_totals`], [`Heap::peak_bytes`], [`Heap::threshold`],
//! [`Heap::hard_limit`], [`Heap::shared_writes`], [`Heap::is_installed`], those of them that a [`Counter`] has, and
//! [`Trigger::limit`]. They load atomic words and cells that no destructor ever takes away; they lock nothing, wait for
//! nobody, allocate nothing and leave `errno` alone. All that they write is the peak, which an
//! atomic operation raises. What the thread has done is in the figures, but for the one operation
//! that the signal has interrupted: that may be in them, or not yet, or its bytes without its block.
//!
//! A handler must not do anything else here. [`Heap::flush`] and [`Counter::add`], [`Counter::sub`] and
//! [`Counter::resize`] are updates of what may be half updated; scopes, [`Heap::measure`] and [`Heap::reset_peak`] take a lock, and so
//! do the methods of a [`Trigger`], [`Trigger::poll`] as soon as it is due; [`Heap::threads`] allocates.
//!
//! In a library that was loaded while the program ran, the C library may allocate when a thread first touches the library's
//! thread-local variables: there [`Heap::thread_totals`] is for threads that have allocated before.
//!
//! # Targets
//!
//! Tested on x86-64 Linux with glibc; the README says of each other kind of target what is known. It takes `std`, pointers
//! of 32 or 64 bits and atomic operations as wide as a pointer; anything less is a compile error. It uses
//! `thread_local!` inside the allocator, which [never allocates through the global
//! allocator](std::alloc::GlobalAlloc#re-entrance).
//!
//! # Features
//!
//! * `exact` makes [`Exact`] the [`DefaultMode`]. Without it, threads publish in batches; both modes are
//!   always compiled and can be asked for by name. The binary should choose, a library should not.
//! * `allocator-api2` adds `Counted`, an allocator for collections that charges a [`Counter`]. Without it there
//!   is one dependency less.
//! * `metrics` adds the module `export`: gauges and counters of an account and of a [`Trigger`], through the `metrics`
//!   crate, version 0.24. Without it there is one dependency less.
//! * `serde` makes [`Totals`], [`Report`] and [what policies carry over](policy::Resumable) `Serialize` and
//!   `Deserialize`, under names that are stable. Without it there are two dependencies less, one of them a procedural
//!   macro.
//! * `tracing` makes a [`Trigger`] send [an event](Trigger#tracing) when it fires and when a collection has ended. Without
//!   it there is one dependency less, and nothing of it in a trigger.
//!
//! None of them but `exact` adds an instruction to the allocator.

// Under loom there are no statics and no thread-local state, so what needs them is left out and the
// models drive accounts of their own.
#![cfg_attr(
    loom,
    allow(dead_code, unused_imports, reason = "models use the core, not the rim")
)]

#[cfg(not(any(target_pointer_width = "32", target_pointer_width = "64")))]
compile_error!(
    "tally-alloc needs pointers of 32 or 64 bits: its counters are as wide as a pointer"
);

#[cfg(not(all(target_has_atomic = "ptr", target_has_atomic = "32")))]
compile_error!("tally-alloc needs atomic operations, as wide as a pointer and of 32 bits");

mod account;
#[cfg(not(loom))]
mod alloc;
#[cfg(not(loom))]
mod assertion;
#[cfg(all(feature = "allocator-api2", not(loom)))]
mod counted;
#[cfg(not(loom))]
mod counter;
#[cfg(not(loom))]
mod exit;
#[cfg(feature = "metrics")]
pub mod export;
mod hard_limit;
#[cfg(not(loom))]
mod heap;
mod identity;
mod ledger;
#[cfg(not(loom))]
mod local;
#[cfg(not(loom))]
mod mode;
mod operation;
#[cfg(not(loom))]
mod pages;
mod peaks;
mod place;
pub mod policy;
mod published;
#[cfg(not(loom))]
mod readings;
mod registry;
#[cfg(not(loom))]
mod remembered;
#[cfg(not(loom))]
mod report;
mod room;
#[cfg(not(loom))]
mod scope;
mod seat;
mod shard;
mod sleeper;
mod sum;
mod sync;
mod terms;
#[cfg(not(loom))]
mod thread;
#[cfg(not(loom))]
mod threads;
mod threshold;
mod totals;
#[cfg(not(loom))]
mod trigger;
mod units;
mod watch;
mod watermark;

#[cfg(not(loom))]
pub use alloc::TallyAlloc;
#[cfg(not(loom))]
#[doc(hidden)]
pub use assertion::Allowance;
#[cfg(all(feature = "allocator-api2", not(loom)))]
pub use counted::Counted;
#[cfg(not(loom))]
pub use counter::Counter;
pub use hard_limit::HardLimitError;
#[cfg(not(loom))]
pub use heap::{Heap, heap};
#[cfg(not(loom))]
pub use mode::{Batched, DefaultMode, Exact, Mode};
#[cfg(not(loom))]
pub use report::{Cause, Report};
#[cfg(not(loom))]
pub use scope::{Measured, Scope};
#[cfg(not(loom))]
pub use threads::ThreadReading;
pub use threshold::{MAX_THRESHOLD, ThresholdError};
pub use totals::Totals;
#[cfg(not(loom))]
pub use trigger::{Announcement, Trigger, TriggerError};
pub use watch::Watch;
pub use watermark::{Evidence, Measure};

/// The program in the README is compiled and run like the examples here.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are those of the guide to triggers.
#[cfg(doctest)]
#[doc = include_str!("../docs/triggers.md")]
struct TriggersGuide;

#[cfg(all(test, loom))]
#[path = "../loom-tests/models/mod.rs"]
mod models;
