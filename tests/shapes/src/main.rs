//! A program that does a little of everything and checks its own account, to be built and run in every shape of
//! process (`tests/shapes/run`).
//!
//! | arguments | what it does | how it ends |
//! | --- | --- | --- |
//! | none | the work of [`work`], twice, and again in an exit handler's sight | 0 |
//! | `panic` | allocates on several threads and panics on one, while the others go on | 0 where panics unwind, else by `SIGABRT` |
//! | `late-counter` | uses a `Counter` for the first time on threads that can no longer be numbered | the same |
//! | `race` | has a data race, for a thread checker to find | 0 without one |
//! | `load` *library* | loads the library, has it do the same work, and works itself | 0 |

#![allow(
    unsafe_code,
    reason = "calls the allocator, pthreads, fork and the dynamic loader"
)]

#[path = "../../support/block.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod block;
#[path = "../../support/fork.rs"]
mod fork;
mod late_counter;
mod load;
#[path = "../../support/oracle.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod oracle;
mod panics;
#[path = "../../support/pthread.rs"]
#[allow(dead_code, reason = "not all of it is used here")]
mod pthread;
mod race;
mod work;

use std::alloc::System;
use std::process::ExitCode;

use oracle::Oracle;
use tally_alloc::{TallyAlloc, Totals};

#[global_allocator]
static GLOBAL: TallyAlloc<Oracle<System>> = TallyAlloc::new(Oracle::over(System));

/// What the inner allocator has counted.
fn truth() -> Totals {
    GLOBAL.inner().totals()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            work::at_exit_too();
            work::all();
            work::all();
        }
        ["panic"] => panics::on_a_thread(),
        ["late-counter"] => late_counter::all(),
        ["race"] => race::run(),
        ["load", library] => load::run(library),
        _ => {
            eprintln!("shapes [panic | late-counter | race | load LIBRARY]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
