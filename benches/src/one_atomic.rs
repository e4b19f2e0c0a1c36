//! `OneAtomic`: live bytes in one shared atomic, the way of counting that everything here is compared
//! with.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_utils::CachePadded;

/// On a cache line of its own, as anybody would do who has thought about it once.
static LIVE: CachePadded<AtomicUsize> = CachePadded::new(AtomicUsize::new(0));

/// Returns the live bytes that [`OneAtomic`] has counted.
#[must_use]
pub fn live_bytes() -> usize {
    LIVE.load(Relaxed)
}

/// Forwards to `A` and keeps the live bytes in one atomic, with one read-modify-write an operation.
#[derive(Debug, Default)]
pub struct OneAtomic<A>(
    /// The inner allocator.
    pub A,
);

// SAFETY: each method calls the same method of `A`, once, with the same arguments, and returns what it
// returned; an atomic addition neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for OneAtomic<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.0.alloc(layout) };
        if !block.is_null() {
            LIVE.fetch_add(layout.size(), Relaxed);
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if !block.is_null() {
            LIVE.fetch_add(layout.size(), Relaxed);
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.0.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are the inner method's.
        let moved = unsafe { self.0.realloc(block, layout, new_size) };
        if !moved.is_null() {
            LIVE.fetch_add(new_size.wrapping_sub(layout.size()), Relaxed);
        }
        moved
    }
}
