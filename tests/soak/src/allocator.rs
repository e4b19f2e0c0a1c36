//! The program's allocator: ours in either mode, over an inner one that counts every call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tally_alloc::{Batched, Exact, TallyAlloc};

use crate::oracle::Oracle;

/// The truth.
pub(crate) static TRUTH: Oracle<System> = Oracle::over(System);

struct Counting;

// SAFETY: each method is that of an allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        unsafe { TRUTH.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { TRUTH.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { TRUTH.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { TRUTH.realloc(block, layout, new_size) }
    }
}

/// Counts in batches until it is told to count exactly.
pub(crate) struct Switch {
    batched: TallyAlloc<Counting, Batched>,
    exact: TallyAlloc<Counting, Exact>,
    exactly: AtomicBool,
}

impl Switch {
    pub(crate) const fn new() -> Self {
        Self {
            batched: TallyAlloc::new(Counting),
            exact: TallyAlloc::new(Counting),
            exactly: AtomicBool::new(false),
        }
    }

    pub(crate) fn count_exactly(&self) {
        self.exactly.store(true, Relaxed);
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.exactly.load(Relaxed)
    }
}

// SAFETY: both allocators end in the same one, and both forward unchanged.
unsafe impl GlobalAlloc for Switch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.is_exact() {
            // SAFETY: the caller's obligations are the same.
            unsafe { self.exact.alloc(layout) }
        } else {
            // SAFETY: as above.
            unsafe { self.batched.alloc(layout) }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if self.is_exact() {
            // SAFETY: as above.
            unsafe { self.exact.alloc_zeroed(layout) }
        } else {
            // SAFETY: as above.
            unsafe { self.batched.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.is_exact() {
            // SAFETY: as above.
            unsafe { self.exact.dealloc(block, layout) };
        } else {
            // SAFETY: as above.
            unsafe { self.batched.dealloc(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if self.is_exact() {
            // SAFETY: as above.
            unsafe { self.exact.realloc(block, layout, new_size) }
        } else {
            // SAFETY: as above.
            unsafe { self.batched.realloc(block, layout, new_size) }
        }
    }
}
