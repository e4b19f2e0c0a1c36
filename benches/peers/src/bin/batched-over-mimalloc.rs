//! Ours in batches, over mimalloc.

use mimalloc::MiMalloc;
use tally_alloc::{Batched, TallyAlloc, heap};

tally_alloc_bench::peer! {
    TallyAlloc<MiMalloc, Batched> = TallyAlloc::new(MiMalloc);
    keep: ();
    live: Some(|| heap().totals().live_bytes());
    read: || heap().live_bytes();
}
