//! mimalloc, uncounted.

use mimalloc::MiMalloc;

tally_alloc_bench::peer! {
    MiMalloc = MiMalloc;
    keep: ();
    live: None;
    read: || 0;
}
