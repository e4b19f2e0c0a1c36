//! `peak_alloc`.

use peak_alloc::PeakAlloc;

tally_alloc_bench::peer! {
    PeakAlloc = PeakAlloc;
    keep: ();
    live: Some(|| GLOBAL.current_usage());
    read: || GLOBAL.current_usage();
}
