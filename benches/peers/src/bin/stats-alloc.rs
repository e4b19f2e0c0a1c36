//! `stats_alloc`.

use std::alloc::System;

use stats_alloc::StatsAlloc;

fn live() -> usize {
    let stats = GLOBAL.stats();
    stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated)
}

tally_alloc_bench::peer! {
    StatsAlloc<System> = StatsAlloc::system();
    keep: ();
    live: Some(live);
    read: live;
}
