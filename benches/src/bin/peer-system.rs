//! The system allocator, uncounted.

use std::alloc::System;

tally_alloc_bench::peer! {
    System = System;
    keep: ();
    live: None;
    read: || 0;
}
