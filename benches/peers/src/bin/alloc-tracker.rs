//! `alloc_tracker`: bytes allocated per measured operation; no live bytes of the process.

use std::alloc::System;

use alloc_tracker::Allocator;

tally_alloc_bench::peer! {
    Allocator<System> = Allocator::system();
    keep: ();
    live: None;
    read: || 0;
}
