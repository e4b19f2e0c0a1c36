//! The truth: an inner allocator that counts what reaches it.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use tally_alloc::Totals;

/// Forwards to another allocator and counts with plain atomics, the slow and obvious way. It can be
/// told to refuse.
pub(crate) struct Oracle<A> {
    inner: A,
    calls: [AtomicUsize; 4],
    bytes_allocated: AtomicUsize,
    bytes_deallocated: AtomicUsize,
    allocations: AtomicUsize,
    deallocations: AtomicUsize,
    reallocations: AtomicUsize,
    /// Live bytes as one figure, for the peak: the highest there was after any one operation.
    live: AtomicUsize,
    peak: AtomicUsize,
    /// Requests of this size or a larger one are refused.
    refuse_from: AtomicUsize,
}

/// How often each method was called, refused calls included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) alloc: usize,
    pub(crate) alloc_zeroed: usize,
    pub(crate) realloc: usize,
    pub(crate) dealloc: usize,
}

const ALLOC: usize = 0;
const ALLOC_ZEROED: usize = 1;
const REALLOC: usize = 2;
const DEALLOC: usize = 3;

impl<A> Oracle<A> {
    pub(crate) const fn over(inner: A) -> Self {
        Self {
            inner,
            calls: [const { AtomicUsize::new(0) }; 4],
            bytes_allocated: AtomicUsize::new(0),
            bytes_deallocated: AtomicUsize::new(0),
            allocations: AtomicUsize::new(0),
            deallocations: AtomicUsize::new(0),
            reallocations: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            refuse_from: AtomicUsize::new(usize::MAX),
        }
    }

    /// Returns what the account should say: the truth once no operation is under way.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        totals.bytes_deallocated = self.bytes_deallocated.load(SeqCst);
        totals.deallocations = self.deallocations.load(SeqCst);
        totals.bytes_allocated = self.bytes_allocated.load(SeqCst);
        totals.allocations = self.allocations.load(SeqCst);
        totals.reallocations = self.reallocations.load(SeqCst);
        totals
    }

    pub(crate) fn calls(&self) -> Calls {
        let calls = |method: usize| self.calls[method].load(SeqCst);
        Calls {
            alloc: calls(ALLOC),
            alloc_zeroed: calls(ALLOC_ZEROED),
            realloc: calls(REALLOC),
            dealloc: calls(DEALLOC),
        }
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak.load(SeqCst)
    }

    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.live.load(SeqCst), SeqCst);
    }

    /// From now on refuses requests of `bytes` or more; `usize::MAX` refuses none.
    pub(crate) fn refuse_from(&self, bytes: usize) {
        self.refuse_from.store(bytes, SeqCst);
    }

    fn refuses(&self, bytes: usize) -> bool {
        bytes >= self.refuse_from.load(SeqCst)
    }

    fn note_call(&self, method: usize) {
        self.calls[method].fetch_add(1, SeqCst);
    }

    fn note_allocated(&self, bytes: usize, tally: &AtomicUsize) {
        self.bytes_allocated.fetch_add(bytes, SeqCst);
        tally.fetch_add(1, SeqCst);
        let live = self.live.fetch_add(bytes, SeqCst).wrapping_add(bytes);
        self.peak.fetch_max(live, SeqCst);
    }

    fn note_deallocated(&self, bytes: usize, tally: &AtomicUsize) {
        self.bytes_deallocated.fetch_add(bytes, SeqCst);
        self.live.fetch_sub(bytes, SeqCst);
        tally.fetch_add(1, SeqCst);
    }
}

// SAFETY: each method hands its arguments to the same method of `A` and returns what that returned, or
// refuses with null without having touched anything; counting is arithmetic on atomics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Oracle<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.note_call(ALLOC);
        if self.refuses(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc(layout) };
        if !block.is_null() {
            self.note_allocated(layout.size(), &self.allocations);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.note_call(ALLOC_ZEROED);
        if self.refuses(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        if !block.is_null() {
            self.note_allocated(layout.size(), &self.allocations);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.note_call(DEALLOC);
        self.note_deallocated(layout.size(), &self.deallocations);
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.inner.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.note_call(REALLOC);
        if self.refuses(new_size) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's obligations are the inner method's.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            if new_size >= layout.size() {
                self.note_allocated(new_size - layout.size(), &self.reallocations);
            } else {
                self.note_deallocated(layout.size() - new_size, &self.reallocations);
            }
        }
        moved
    }
}
