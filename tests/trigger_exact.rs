//! What is claimed of triggers, with the allocator installed in exact mode.
//!
//! The claim about a million crossings looks at 5,000 unless told otherwise:
//!
//! ```text
//! TALLY_ALLOC_CROSSINGS=1000000 cargo test --release --test trigger_exact -- a_million_crossings
//! ```

#![allow(
    unsafe_code,
    reason = "the claims call the allocator, pthreads and fork"
)]
#![allow(
    dead_code,
    unused_imports,
    reason = "shares its support with other programs and uses part of it"
)]

mod support;
mod triggers;

use std::alloc::System;
use std::process::ExitCode;

use support::oracle::Oracle;
use tally_alloc::{Exact, TallyAlloc};

#[global_allocator]
static GLOBAL: TallyAlloc<Oracle<System>, Exact> = TallyAlloc::new(Oracle::over(System));

/// Every operation is published before it returns.
const EXACT: bool = true;

fn main() -> ExitCode {
    support::run(triggers::all(), &[])
}
