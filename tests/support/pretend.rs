//! An inner allocator that has no memory.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::ptr;

/// Serves any size with the same address and refuses when told to: nobody looks into the blocks, so
/// they may be larger than memory.
pub(crate) struct Pretend;

/// What is asked for with this alignment is refused.
pub(crate) const REFUSED_ALIGN: usize = 2;

fn pretend(layout: Layout) -> *mut u8 {
    if layout.align() == REFUSED_ALIGN {
        return ptr::null_mut();
    }
    black_box(ptr::without_provenance_mut(4096))
}

// SAFETY: this breaks the contract, no block is real; its callers touch none.
unsafe impl GlobalAlloc for Pretend {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        pretend(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        pretend(layout)
    }

    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}

    unsafe fn realloc(&self, _block: *mut u8, layout: Layout, _new_size: usize) -> *mut u8 {
        pretend(layout)
    }
}
