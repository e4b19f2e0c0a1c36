//! One shared atomic.

use std::alloc::System;

use tally_alloc_bench::one_atomic::{OneAtomic, live_bytes};

tally_alloc_bench::peer! {
    OneAtomic<System> = OneAtomic(System);
    keep: ();
    live: Some(live_bytes);
    read: live_bytes;
}
