//! One shared atomic.

use std::alloc::System;

use tally_alloc_bench::adding::{Adding, SharedAtomic};

tally_alloc_bench::peer! {
    Adding<System, SharedAtomic> = Adding::over(System);
    keep: ();
    live: Some(SharedAtomic::live_bytes);
    read: SharedAtomic::live_bytes;
}
