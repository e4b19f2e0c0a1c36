//! The claims, with the allocator installed in batched mode.

#![allow(
    unsafe_code,
    reason = "the claims call the allocator, pthreads and fork"
)]

mod claims;
mod support;

use std::alloc::System;
use std::process::ExitCode;

use support::oracle::Oracle;
use tally_alloc::{Batched, TallyAlloc};

#[global_allocator]
static GLOBAL: TallyAlloc<Oracle<System>, Batched> = TallyAlloc::new(Oracle::over(System));

/// Every operation is published before it returns.
const EXACT: bool = false;

fn main() -> ExitCode {
    support::run(claims::all(), &[])
}
