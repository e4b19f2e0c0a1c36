//! Counted malloc for language runtimes, in Rust ([`malloc`]) and behind a C interface
//! (`include/tally_alloc.h`).
//!
//! A runtime keeps one account per VM instance, isolate or heap, and allocates through it what its
//! collector has to know about. Each function states what it does with null, with sizes of zero and
//! when there is no memory; nothing here unwinds into C, calls back, or stops the program, with one
//! exception: a thread's first operation on an account allocates the thread's place in it, and a
//! process without memory for those few hundred bytes is aborted.

pub mod malloc;

mod account;
mod blocks;
mod status;
mod trigger;

pub use account::*;
pub use blocks::*;
pub use status::*;
pub use trigger::*;
