//! A word of each thread's own: the floor of any way of counting.

use std::alloc::System;

use tally_alloc_bench::adding::{Adding, OwnWord};

tally_alloc_bench::peer! {
    Adding<System, OwnWord> = Adding::over(System);
    keep: ();
    live: None;
    read: || 0;
}
