//! divan's `AllocProfiler`: counts per thread while one of divan's benches runs; no live bytes of the process.

use divan::AllocProfiler;

tally_alloc_bench::peer! {
    AllocProfiler = AllocProfiler::system();
    keep: ();
    live: None;
    read: || 0;
}
