//! `thresher`: batches of 64 KiB, without a callback or a limit.

use std::alloc::System;

use thresher::Thresher;

/// The calling thread's batch is handed in before the figure is read: its best.
fn live() -> usize {
    GLOBAL.flush();
    GLOBAL.get_allocated()
}

tally_alloc_bench::peer! {
    Thresher<System> = Thresher::new(System);
    keep: ();
    live: Some(live);
    read: || GLOBAL.get_allocated();
}
