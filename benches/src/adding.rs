//! `Adding`: the two least ways of counting, which everything here is compared with.
//!
//! Both add the size of each operation to one word and know nothing else: no blocks, no peak, no limit.
//!
//! * [`SharedAtomic`]: the live bytes of the process, as most counting allocators have them.
//! * [`OwnWord`]: those of the calling thread in a word that no other can read. Of no use to anybody, and
//!   the floor: whoever counts at all adds the size somewhere, and there is no nearer place.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_utils::CachePadded;

/// Where live bytes are added up.
pub trait Word {
    /// Adds to them, modulo the width of a pointer.
    fn add(bytes: usize);

    /// Takes off from them.
    fn sub(bytes: usize);
}

/// One atomic for all threads, on a cache line of its own, as anybody would do who has thought about it once.
#[derive(Debug)]
pub struct SharedAtomic;

static LIVE: CachePadded<AtomicUsize> = CachePadded::new(AtomicUsize::new(0));

impl Word for SharedAtomic {
    #[inline(always)]
    fn add(bytes: usize) {
        LIVE.fetch_add(bytes, Relaxed);
    }

    #[inline(always)]
    fn sub(bytes: usize) {
        LIVE.fetch_sub(bytes, Relaxed);
    }
}

impl SharedAtomic {
    /// Returns the live bytes that were added up.
    #[must_use]
    pub fn live_bytes() -> usize {
        LIVE.load(Relaxed)
    }
}

/// A word of the calling thread's own.
#[derive(Debug)]
pub struct OwnWord;

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(0) };
}

impl Word for OwnWord {
    #[inline(always)]
    fn add(bytes: usize) {
        OWN.with(|own| own.set(own.get().wrapping_add(bytes)));
    }

    #[inline(always)]
    fn sub(bytes: usize) {
        OWN.with(|own| own.set(own.get().wrapping_sub(bytes)));
    }
}

/// Forwards to `A` and adds the size of each operation to `W`.
#[derive(Debug)]
pub struct Adding<A, W> {
    inner: A,
    word: PhantomData<fn(W)>,
}

impl<A, W> Adding<A, W> {
    /// Returns an allocator over `inner`.
    #[must_use]
    pub const fn over(inner: A) -> Self {
        Self {
            inner,
            word: PhantomData,
        }
    }
}

// SAFETY: each method calls the same method of `A`, once, with the same arguments, and returns what it
// returned; an addition neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc, W: Word> GlobalAlloc for Adding<A, W> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc(layout) };
        if !block.is_null() {
            W::add(layout.size());
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        if !block.is_null() {
            W::add(layout.size());
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        W::sub(layout.size());
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.inner.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are the inner method's.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            W::add(new_size.wrapping_sub(layout.size()));
        }
        moved
    }
}
