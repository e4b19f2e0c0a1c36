//! A plugin linked with a copy of the library of its own, which it installs.

#![allow(unsafe_code, reason = "exports functions by name")]

use std::hint::black_box;

use tally_alloc::{TallyAlloc, heap};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

/// Allocates `bytes` and frees them; returns what the plugin's own account has counted.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_work(bytes: usize) -> usize {
    drop(black_box(vec![1_u8; bytes]));
    heap().totals().bytes_allocated
}

/// Returns the address of the plugin's account.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_account() -> usize {
    std::ptr::from_ref(heap()).addr()
}
