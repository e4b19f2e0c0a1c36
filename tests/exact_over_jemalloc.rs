//! The claims, with the allocator installed in exact mode over jemalloc.

#![allow(
    unsafe_code,
    reason = "the claims call the allocator, pthreads and fork"
)]

mod claims;
mod support;

use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

use support::oracle::Oracle;
use tally_alloc::{Exact, TallyAlloc};

#[global_allocator]
static GLOBAL: TallyAlloc<Oracle<Jemalloc>, Exact> = TallyAlloc::new(Oracle::over(Jemalloc));

/// Every operation is published before it returns.
const EXACT: bool = true;

fn main() -> ExitCode {
    support::run(claims::all(), &[])
}
