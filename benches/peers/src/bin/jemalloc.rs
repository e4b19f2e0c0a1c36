//! `tikv-jemallocator`, read through `tikv-jemalloc-ctl`: usable bytes, not requested ones.

use tikv_jemalloc_ctl::{epoch, stats};
use tikv_jemallocator::Jemalloc;

fn live() -> usize {
    // Without statistics the figure is 0, and the probes say so.
    epoch::advance()
        .and_then(|_| stats::allocated::read())
        .unwrap_or(0)
}

tally_alloc_bench::peer! {
    Jemalloc = Jemalloc;
    keep: ();
    live: Some(live);
    read: live;
}
