//! `TallyAlloc`: the `GlobalAlloc` shim.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::marker::PhantomData;

use crate::local;
use crate::mode::{DefaultMode, Mode};
use crate::operation::Operation;

/// A global allocator that forwards to another and counts what it did into
/// [`heap()`](fn@crate::heap).
///
/// `A` is the inner allocator, [`Batched`](crate::Batched) or [`Exact`](crate::Exact) the mode
/// `M`.
///
/// # Accuracy
///
/// Counts what was asked for, `Layout::size`, on both sides, after the inner allocator has
/// succeeded: a refused request counts nothing. A deallocation counts when it is asked for.
///
/// # Examples
///
/// ```
/// use tally_alloc::{TallyAlloc, heap};
///
/// #[global_allocator]
/// static GLOBAL: TallyAlloc = TallyAlloc::system();
///
/// fn main() {
///     let kept = vec![0_u8; 1 << 20];
///     assert!(heap().totals().live_bytes() >= kept.len());
/// }
/// ```
///
/// Over another allocator, in exact mode whatever the features say:
///
/// ```
/// use std::alloc::System;
/// use tally_alloc::{Exact, TallyAlloc};
///
/// #[global_allocator]
/// static GLOBAL: TallyAlloc<System, Exact> = TallyAlloc::new(System);
/// # fn main() {}
/// ```
pub struct TallyAlloc<A = System, M = DefaultMode> {
    inner: A,
    mode: PhantomData<fn() -> M>,
}

impl TallyAlloc {
    /// Returns the system allocator, counted in the default mode.
    #[must_use]
    pub const fn system() -> Self {
        Self::new(System)
    }
}

impl<A, M> TallyAlloc<A, M> {
    /// Returns `inner`, counted.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self {
            inner,
            mode: PhantomData,
        }
    }

    /// Returns the inner allocator. What is asked of it directly is not counted, and must be
    /// given back to it directly.
    #[must_use]
    pub const fn inner(&self) -> &A {
        &self.inner
    }
}

impl<A: Default, M> Default for TallyAlloc<A, M> {
    fn default() -> Self {
        Self::new(A::default())
    }
}

impl<A: fmt::Debug, M> fmt::Debug for TallyAlloc<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TallyAlloc")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

/// Runs one call of the inner allocator and counts it if it gave a block.
///
/// Room is taken before the call and the operation counted after it: what the fast path has to decide is
/// decided while nothing has to be kept across the call, and a refused request leaves no trace but less room.
#[inline(always)]
fn counted<M: Mode>(
    operation: Operation,
    bytes: usize,
    inner: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    if M::PUBLISHES_EVERY_OPERATION {
        let block = inner();
        if !block.is_null() {
            local::count_exact(operation, bytes);
        }
        return block;
    }
    if !local::take(operation, bytes) {
        return counted_slowly(operation, bytes, inner);
    }
    let block = inner();
    if !block.is_null() {
        local::count(operation, bytes);
    }
    block
}

#[cold]
#[inline(never)]
fn counted_slowly(operation: Operation, bytes: usize, inner: impl FnOnce() -> *mut u8) -> *mut u8 {
    let block = inner();
    if block.is_null() {
        local::close_room();
    } else {
        local::look(operation, bytes);
    }
    block
}

impl<A: GlobalAlloc, M> TallyAlloc<A, M> {
    /// The inner `realloc`, kept out of line: inlined, what it does for large alignments would take up every
    /// register that the counting around it has to save.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::realloc`.
    #[inline(never)]
    unsafe fn realloc_inner(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.inner.realloc(block, layout, new_size) }
    }

    /// The slow path of a deallocation. It ends with the inner call too, so that the fast path has
    /// nothing to keep across a call and needs no stack frame.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::dealloc`.
    #[cold]
    #[inline(never)]
    unsafe fn look_and_dealloc(&self, block: *mut u8, layout: Layout) {
        local::look(Operation::Deallocate, layout.size());
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.inner.dealloc(block, layout) };
    }
}

// SAFETY:
// * each method calls the same method of `A`, once, with the same arguments, and returns what it
//   returned, so the contract between the caller and `A` is untouched;
// * counting touches no block: it reads `layout.size()` and writes to memory of its own;
// * counting does not unwind: it is arithmetic that wraps, on atomics; it holds no lock, calls
//   nothing of the program's, and what it asks of the system (`pages`, `exit`) reports failure by
//   value;
// * counting does not allocate from this allocator, and were something in it to, the operation
//   would be counted without coming back here (`local`).
unsafe impl<A: GlobalAlloc, M: Mode> GlobalAlloc for TallyAlloc<A, M> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        counted::<M>(Operation::Allocate, layout.size(), move || {
            // SAFETY: the caller's obligations are the inner method's.
            unsafe { self.inner.alloc(layout) }
        })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        counted::<M>(Operation::Allocate, layout.size(), move || {
            // SAFETY: the caller's obligations are the inner method's.
            unsafe { self.inner.alloc_zeroed(layout) }
        })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Counted before the block goes, so that the inner call is the last thing done here: a jump
        // instead of a call.
        if M::PUBLISHES_EVERY_OPERATION {
            local::count_exact(Operation::Deallocate, layout.size());
        } else if local::take(Operation::Deallocate, layout.size()) {
            local::count(Operation::Deallocate, layout.size());
        } else {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.look_and_dealloc(block, layout) };
        }
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.inner.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let inner = move || {
            // SAFETY: the caller's obligations are the inner method's.
            unsafe { self.realloc_inner(block, layout, new_size) }
        };
        let old_size = layout.size();
        if new_size >= old_size {
            counted::<M>(Operation::Grow, new_size.wrapping_sub(old_size), inner)
        } else {
            counted::<M>(Operation::Shrink, old_size.wrapping_sub(new_size), inner)
        }
    }
}
