//! `cap`, without a limit.

use std::alloc::System;

use cap::Cap;

tally_alloc_bench::peer! {
    Cap<System> = Cap::new(System, usize::MAX);
    keep: ();
    live: Some(|| GLOBAL.allocated());
    read: || GLOBAL.allocated();
}
