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

use tally_alloc::{Counter, Mode};

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

const SMALL_BYTES: usize = 64;
const SMALL: Layout = Layout::new::<[u8; SMALL_BYTES]>();
/// As large as `SMALL` once an allocator has rounded both up, so that nothing but the call is counted.
const LARGER: Layout = Layout::new::<[u8; 72]>();

/// Allocates and frees 64 bytes, `count` times.
#[inline(always)]
pub fn pairs(allocator: &impl GlobalAlloc, count: usize) {
    pairs_of::<SMALL_BYTES>(allocator, count);
}

/// Allocates and frees `BYTES`, `count` times.
#[inline(always)]
pub fn pairs_of<const BYTES: usize>(allocator: &impl GlobalAlloc, count: usize) {
    let layout = Layout::new::<[u8; BYTES]>();
    for _ in 0..count {
        // SAFETY: no size here is zero.
        let block = black_box(unsafe { allocator.alloc(black_box(layout)) });
        // SAFETY: from this allocator with the same layout; so little is not refused.
        unsafe { allocator.dealloc(block, black_box(layout)) };
    }
}

/// Allocates 64 bytes, doubles the block ten times, to 64 KiB, and frees it; all that `count` times.
#[inline(always)]
pub fn growths(allocator: &impl GlobalAlloc, count: usize) {
    for _ in 0..count {
        let mut layout = SMALL;
        // SAFETY: the size is not zero.
        let mut block = black_box(unsafe { allocator.alloc(black_box(layout)) });
        while layout.size() < 64 * 1024 {
            let larger = 2 * layout.size();
            // SAFETY: from this allocator with this layout; the size is not zero and not refused.
            block = black_box(unsafe { allocator.realloc(block, black_box(layout), larger) });
            // SAFETY: larger than a size that was valid with this alignment, and far below `isize::MAX`.
            layout = unsafe { Layout::from_size_align_unchecked(larger, layout.align()) };
        }
        // SAFETY: from this allocator, and last of this layout.
        unsafe { allocator.dealloc(block, black_box(layout)) };
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

/// Charges a counter with 64 bytes and takes them off again, `count` times.
#[inline(always)]
pub fn charges<M: Mode>(counter: &Counter<M>, count: usize) {
    let (counter, bytes) = black_box((counter, SMALL_BYTES));
    for _ in 0..count {
        counter.add(bytes);
        counter.sub(bytes);
    }
}

/// Reads a figure `count` times.
#[inline(always)]
pub fn reads(read: impl Fn() -> usize, count: usize) {
    for _ in 0..count {
        black_box(read());
    }
}
