//! `TallyAlloc`: the `GlobalAlloc` shim.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use crate::hard_limit::Admission;
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

/// Returns whether a layout asks for no more alignment than a `malloc` gives any block of its size. Only such
/// requests have the fast path, and it sees that the inner allocator need not ask again: what that does for
/// other alignments would otherwise stand, with its stack frame, in the middle of the fast path.
#[inline(always)]
const fn is_plain(layout: Layout) -> bool {
    layout.align() <= 16 && layout.align() <= layout.size()
}

impl<A: GlobalAlloc, M: Mode> TallyAlloc<A, M> {
    /// Takes room for an operation, before the inner call: what has to be decided is decided while nothing has
    /// to be kept across that call, and a refused request leaves no trace but less room. `false` means that the
    /// slow path must run.
    #[inline(always)]
    fn has_room(operation: Operation, bytes: usize) -> bool {
        if M::PUBLISHES_EVERY_OPERATION {
            !local::is_limited()
        } else {
            local::take(operation, bytes)
        }
    }

    /// Counts an operation that had room, if the inner call gave a block.
    #[inline(always)]
    fn count(block: *mut u8, operation: Operation, bytes: usize) -> *mut u8 {
        if !block.is_null() {
            if M::PUBLISHES_EVERY_OPERATION {
                local::count_exact(operation, bytes);
            } else {
                local::count(operation, bytes);
            }
        }
        block
    }

    /// A request that there may be a hard limit for: asks for leave, calls the inner method, and counts.
    #[inline(always)]
    fn ask_and_call(
        operation: Operation,
        bytes: usize,
        inner: impl FnOnce() -> *mut u8,
    ) -> *mut u8 {
        let exact = M::PUBLISHES_EVERY_OPERATION;
        let admission = local::admit(exact, operation, bytes);
        if admission == Admission::Refused {
            local::close_room();
            return ptr::null_mut();
        }
        let block = inner();
        match (admission, block.is_null()) {
            (Admission::Reserved(reserved), true) => local::cancel(exact, reserved),
            (Admission::Reserved(reserved), false) => {
                local::count_reserved(exact, operation, bytes, reserved);
            }
            _ => return Self::look(block, operation, bytes),
        }
        block
    }

    /// Counts an operation that had no room, if the inner call gave a block.
    #[inline(always)]
    fn look(block: *mut u8, operation: Operation, bytes: usize) -> *mut u8 {
        if block.is_null() {
            local::close_room();
        } else if M::PUBLISHES_EVERY_OPERATION {
            local::count_exact(operation, bytes);
        } else {
            local::look(operation, bytes);
        }
        block
    }

    /// The slow path of a plain allocation: there is no room.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::alloc`.
    #[cold]
    #[inline(never)]
    unsafe fn look_and_alloc(&self, layout: Layout) -> *mut u8 {
        if local::is_limited() {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.alloc_slowly(layout, false) };
        }
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc(layout) };
        Self::look(block, Operation::Allocate, layout.size())
    }

    /// The slow path of a plain zeroed allocation.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::alloc_zeroed`.
    #[cold]
    #[inline(never)]
    unsafe fn look_and_alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if local::is_limited() {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.alloc_slowly(layout, true) };
        }
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        Self::look(block, Operation::Allocate, layout.size())
    }

    /// Both kinds of allocation, where they are not plain or there is a hard limit.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::alloc`.
    #[cold]
    #[inline(never)]
    unsafe fn alloc_slowly(&self, layout: Layout, zeroed: bool) -> *mut u8 {
        let (operation, bytes) = (Operation::Allocate, layout.size());
        let inner = || {
            if zeroed {
                // SAFETY: the caller's obligations are the inner method's.
                unsafe { self.inner.alloc_zeroed(layout) }
            } else {
                // SAFETY: the same.
                unsafe { self.inner.alloc(layout) }
            }
        };
        // A plain one has asked already.
        if !is_plain(layout) && Self::has_room(operation, bytes) {
            return Self::count(inner(), operation, bytes);
        }
        Self::ask_and_call(operation, bytes, inner)
    }

    /// The slow path of a reallocation: there is no room.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::realloc`.
    #[cold]
    #[inline(never)]
    unsafe fn look_and_realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if local::is_limited() {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.realloc_slowly(block, layout, new_size) };
        }
        let (operation, bytes) = Operation::resize(layout.size(), new_size);
        // SAFETY: the same.
        let moved = unsafe { self.inner_realloc(block, layout, new_size) };
        Self::look(moved, operation, bytes)
    }

    /// A reallocation under a hard limit.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::realloc`.
    #[cold]
    #[inline(never)]
    unsafe fn realloc_slowly(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (operation, bytes) = Operation::resize(layout.size(), new_size);
        Self::ask_and_call(operation, bytes, || {
            // SAFETY: the caller's obligations are the same.
            unsafe { self.inner_realloc(block, layout, new_size) }
        })
    }

    /// The fast path of a reallocation in one direction.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::realloc`.
    #[inline(always)]
    unsafe fn resize(
        &self,
        block: *mut u8,
        layout: Layout,
        new_size: usize,
        (operation, bytes): (Operation, usize),
    ) -> *mut u8 {
        if !Self::has_room(operation, bytes) {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.look_and_realloc(block, layout, new_size) };
        }
        // SAFETY: the same.
        let moved = unsafe { self.inner_realloc(block, layout, new_size) };
        Self::count(moved, operation, bytes)
    }

    /// Calls the inner `realloc`, out of line: what it does for large alignments would take up every register
    /// that the counting around it has to save.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::realloc`.
    #[inline(never)]
    unsafe fn inner_realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
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

// The methods are not inlined: at the thousands of places where a program allocates, they would cost 7 % of its
// code (ripgrep) and save two or three instructions of a hundred and fifty.
//
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
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size();
        if !is_plain(layout) {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.alloc_slowly(layout, false) };
        }
        if !Self::has_room(Operation::Allocate, bytes) {
            // SAFETY: the same.
            return unsafe { self.look_and_alloc(layout) };
        }
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc(layout) };
        Self::count(block, Operation::Allocate, bytes)
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size();
        if !is_plain(layout) {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.alloc_slowly(layout, true) };
        }
        if !Self::has_room(Operation::Allocate, bytes) {
            // SAFETY: the same.
            return unsafe { self.look_and_alloc_zeroed(layout) };
        }
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        Self::count(block, Operation::Allocate, bytes)
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Counted before the block goes, so that the inner call is the last thing done here: a jump
        // instead of a call.
        let bytes = layout.size();
        if M::PUBLISHES_EVERY_OPERATION {
            local::count_exact(Operation::Deallocate, bytes);
        } else if local::take(Operation::Deallocate, bytes) {
            local::count(Operation::Deallocate, bytes);
        } else {
            // SAFETY: the caller's obligations are the same.
            return unsafe { self.look_and_dealloc(block, layout) };
        }
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.inner.dealloc(block, layout) };
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Either way with the operation known, so that neither has to work out which counters are meant.
        match Operation::resize(layout.size(), new_size) {
            // SAFETY: the caller's obligations are the same.
            (Operation::Grow, by) => unsafe {
                self.resize(block, layout, new_size, (Operation::Grow, by))
            },
            // SAFETY: the same.
            (_, by) => unsafe { self.resize(block, layout, new_size, (Operation::Shrink, by)) },
        }
    }
}
