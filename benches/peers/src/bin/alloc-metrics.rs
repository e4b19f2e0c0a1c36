//! `alloc-metrics`, with its global and its per-thread figures.

use std::alloc::System;

use alloc_metrics::{MetricAlloc, global_metrics};

fn live() -> usize {
    global_metrics().allocated_bytes.cast_unsigned()
}

tally_alloc_bench::peer! {
    MetricAlloc<System> = MetricAlloc::new(System);
    keep: ();
    live: Some(live);
    read: live;
}
