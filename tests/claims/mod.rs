//! What is claimed of the heap's account, a file per claim or family of claims.
//!
//! The programs of this directory install the allocator in one mode over one inner allocator each,
//! name that `GLOBAL` and the mode `EXACT`, and run all of this. Nothing here depends on either, but
//! for where the modes differ by design.

mod blocks_of_all_sizes;
mod foreign_threads;
mod fork;
mod fork_under_load;
mod four_methods;
mod handed_to_another_thread;
mod late_destructors;
mod parked_threads;
mod peak;
mod program_exit;
mod readers;
mod realloc;
mod refused;
mod shared_line;
#[cfg(target_os = "linux")]
mod signals;
mod thread_totals;
mod threads_come_and_go;
mod threshold;
mod watchdog;

use tally_alloc::{Totals, heap};

use crate::support::Claim;
use crate::{EXACT, GLOBAL};

/// Returns the claims of all files.
pub(crate) fn all() -> impl Iterator<Item = &'static Claim> {
    [
        blocks_of_all_sizes::CLAIMS,
        foreign_threads::CLAIMS,
        fork::CLAIMS,
        fork_under_load::CLAIMS,
        four_methods::CLAIMS,
        handed_to_another_thread::CLAIMS,
        late_destructors::CLAIMS,
        parked_threads::CLAIMS,
        peak::CLAIMS,
        program_exit::CLAIMS,
        readers::CLAIMS,
        realloc::CLAIMS,
        refused::CLAIMS,
        shared_line::CLAIMS,
        #[cfg(target_os = "linux")]
        signals::CLAIMS,
        thread_totals::CLAIMS,
        threads_come_and_go::CLAIMS,
        threshold::CLAIMS,
        watchdog::CLAIMS,
    ]
    .into_iter()
    .flatten()
}

fn truth() -> Totals {
    GLOBAL.inner().totals()
}

/// Checks every figure of the account against the truth. No operation may be under way.
#[track_caller]
fn assert_exact() {
    let (totals, truth) = (heap().totals(), truth());
    assert_eq!(totals, truth, "totals (left) and truth (right)");
    assert_within_bound();
}

/// Checks the published figure against the truth. No operation may be under way.
#[track_caller]
fn assert_within_bound() {
    let (live, truth, bound) = (
        heap().live_bytes(),
        truth().live_bytes(),
        heap().error_bound(),
    );
    assert!(
        live.abs_diff(truth) <= bound,
        "published {live}, truth {truth}, bound {bound} bytes"
    );
    if EXACT {
        assert_eq!(bound, 0, "the error bound in exact mode");
    }
}

/// Waits until the process has no thread but this one. A thread that was joined is gone already; a
/// scope does not wait that long for its own.
fn wait_until_alone() {
    #[cfg(target_os = "linux")]
    while std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count) > 1 {
        std::thread::yield_now();
    }
}
