//! The claims, with the allocator installed in exact mode.

#![allow(
    unsafe_code,
    reason = "the claims call the allocator, pthreads and fork"
)]

mod claims;
mod support;

use std::alloc::System;
use std::process::ExitCode;

use support::oracle::Oracle;
use tally_alloc::{Exact, TallyAlloc};

#[global_allocator]
static GLOBAL: TallyAlloc<Oracle<System>, Exact> = TallyAlloc::new(Oracle::over(System));

/// Every operation is published before it returns.
const EXACT: bool = true;

fn main() -> ExitCode {
    support::run(claims::all(), &[])
}
