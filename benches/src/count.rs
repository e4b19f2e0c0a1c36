//! Loops whose instructions are counted: an operation repeated and nothing else.
//!
//! The same loop is compiled twice for each allocator: *inlined*, where the compiler sees the allocator's
//! methods, as it does in a program that is built with link-time optimisation; and *called*, where each
//! operation is a call that is not inlined, as in one that is built without. `Layout`s and pointers go through
//! `black_box`, so nothing is known about them.

#![allow(
    unsafe_code,
    reason = "calls the allocator without a container around it"
)]

use std::alloc::{self, GlobalAlloc, Layout};
use std::hint::black_box;

/// The global allocator, through calls that are not inlined.
#[derive(Debug)]
pub struct Called;

// SAFETY: each method passes everything on to the global allocator, unchanged.
unsafe impl GlobalAlloc for Called {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the function's.
        unsafe { alloc::alloc(layout) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the function's.
        unsafe { alloc::dealloc(block, layout) };
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are the function's.
        unsafe { alloc::realloc(block, layout, new_size) }
    }
}

const SMALL: Layout = Layout::new::<[u8; 64]>();
/// As large as `SMALL` once an allocator has rounded both up, so that nothing but the call is counted.
const LARGER: Layout = Layout::new::<[u8; 72]>();

/// Allocates and frees 64 bytes, `count` times.
#[inline(always)]
pub fn pairs(allocator: &impl GlobalAlloc, count: usize) {
    for _ in 0..count {
        // SAFETY: the size is not zero.
        let block = black_box(unsafe { allocator.alloc(black_box(SMALL)) });
        // SAFETY: from this allocator with the same layout; 64 bytes are not refused.
        unsafe { allocator.dealloc(block, black_box(SMALL)) };
    }
}

/// Reallocates a block `count` times, up and down in turn.
#[inline(always)]
pub fn reallocations(allocator: &impl GlobalAlloc, count: usize) {
    // SAFETY: the size is not zero.
    let mut block = unsafe { allocator.alloc(SMALL) };
    for _ in 0..count / 2 {
        // SAFETY: from this allocator with this layout; the size is not zero and not refused.
        block = black_box(unsafe { allocator.realloc(block, black_box(SMALL), LARGER.size()) });
        // SAFETY: as above.
        block = black_box(unsafe { allocator.realloc(block, black_box(LARGER), SMALL.size()) });
    }
    // SAFETY: from this allocator, and last of this layout.
    unsafe { allocator.dealloc(block, SMALL) };
}

/// Reads a figure `count` times.
#[inline(always)]
pub fn reads(read: impl Fn() -> usize, count: usize) {
    for _ in 0..count {
        black_box(read());
    }
}
