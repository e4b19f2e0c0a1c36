//! Ours in batches, over jemalloc.

use tally_alloc::{Batched, TallyAlloc, heap};
use tikv_jemallocator::Jemalloc;

tally_alloc_bench::peer! {
    TallyAlloc<Jemalloc, Batched> = TallyAlloc::new(Jemalloc);
    keep: ();
    live: Some(|| heap().totals().live_bytes());
    read: || heap().live_bytes();
}
