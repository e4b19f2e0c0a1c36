//! `dhat`, in its testing mode: a backtrace for every block.

use dhat::{Alloc, HeapStats, Profiler};

fn live() -> usize {
    HeapStats::get().curr_bytes
}

tally_alloc_bench::peer! {
    Alloc = Alloc;
    keep: Profiler::builder().testing().build();
    live: Some(live);
    read: live;
}
