//! Ours, exact.

use std::alloc::System;

use tally_alloc::{Exact, TallyAlloc, heap};

tally_alloc_bench::peer! {
    TallyAlloc<System, Exact> = TallyAlloc::new(System);
    keep: ();
    live: Some(|| heap().live_bytes());
    read: || heap().live_bytes();
}
