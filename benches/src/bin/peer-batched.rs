//! Ours, in batches.

use std::alloc::System;

use tally_alloc::{Batched, TallyAlloc, heap};

tally_alloc_bench::peer! {
    TallyAlloc<System, Batched> = TallyAlloc::new(System);
    keep: ();
    live: Some(|| heap().totals().live_bytes());
    read: || heap().live_bytes();
}
