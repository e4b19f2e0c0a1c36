//! `Counted`: an `allocator_api2` allocator that charges a counter.

#![allow(unsafe_code, reason = "Allocator is an unsafe trait")]

use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator, Global};

use crate::counter::Counter;
use crate::mode::{DefaultMode, Mode};

/// An allocator that forwards to another and charges a [`Counter`]: what gives a `hashbrown` map, a
/// `bumpalo` arena's vector or an `allocator_api2` collection an account of its own.
///
/// `A` is the inner allocator and `M` the counter's mode.
///
/// # Accuracy
///
/// Counts what was asked for, `Layout::size`, on both sides, after the inner allocator has
/// succeeded: a refused request counts nothing. Growing and shrinking a block is one reallocation.
/// Where the inner allocator returns more than was asked for the rest is not passed on, because a
/// collection could then give the block back under the larger size.
///
/// # Examples
///
/// ```
/// use hashbrown::{DefaultHashBuilder, HashMap};
/// use tally_alloc::{Counted, Counter};
///
/// let budget = Counter::new();
/// let mut sessions = HashMap::with_hasher_in(DefaultHashBuilder::default(), Counted::new(&budget));
/// sessions.insert("ann", 1);
/// assert!(budget.totals().live_bytes() > 0);
///
/// drop(sessions);
/// assert_eq!(budget.totals().live_bytes(), 0);
/// ```
pub struct Counted<'a, A = Global, M = DefaultMode> {
    counter: &'a Counter<M>,
    inner: A,
}

impl<'a, M> Counted<'a, Global, M> {
    /// Returns the global allocator, charged to `counter`.
    #[must_use]
    pub const fn new(counter: &'a Counter<M>) -> Self {
        Self::new_in(counter, Global)
    }
}

impl<'a, A, M> Counted<'a, A, M> {
    /// Returns `inner`, charged to `counter`.
    #[must_use]
    pub const fn new_in(counter: &'a Counter<M>, inner: A) -> Self {
        Self { counter, inner }
    }

    /// Returns the counter that is charged.
    #[must_use]
    pub const fn counter(&self) -> &'a Counter<M> {
        self.counter
    }

    /// Returns the inner allocator. What is asked of it directly is not counted, and must be
    /// given back to it directly.
    #[must_use]
    pub const fn inner(&self) -> &A {
        &self.inner
    }
}

impl<A: Clone, M> Clone for Counted<'_, A, M> {
    fn clone(&self) -> Self {
        Self {
            counter: self.counter,
            inner: self.inner.clone(),
        }
    }
}

impl<A: Copy, M> Copy for Counted<'_, A, M> {}

impl<A: fmt::Debug, M: Mode> fmt::Debug for Counted<'_, A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted")
            .field("counter", &self.counter)
            .field("inner", &self.inner)
            .finish()
    }
}

/// Returns the start of a block as one of just the size that was asked for.
fn as_requested(block: NonNull<[u8]>, layout: Layout) -> NonNull<[u8]> {
    NonNull::slice_from_raw_parts(block.cast(), layout.size())
}

// SAFETY:
// * each method calls the same method of `A`, once, with the same arguments, and returns the block
//   it returned, so blocks are as valid as `A`'s and a clone, which holds a clone of `A`, may be given
//   them;
// * the length returned is the least that fits the block, so the sizes that callers may later pass
//   are among those that `A` must take;
// * counting touches no block and does not unwind.
unsafe impl<A: Allocator, M: Mode> Allocator for Counted<'_, A, M> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = self.inner.allocate(layout)?;
        self.counter.add(layout.size());
        Ok(as_requested(block, layout))
    }

    #[inline]
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = self.inner.allocate_zeroed(layout)?;
        self.counter.add(layout.size());
        Ok(as_requested(block, layout))
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.counter.sub(layout.size());
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { self.inner.deallocate(block, layout) };
    }

    #[inline]
    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.grow(block, old, new) }?;
        self.counter.resize(old.size(), new.size());
        Ok(as_requested(block, new))
    }

    #[inline]
    unsafe fn grow_zeroed(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.grow_zeroed(block, old, new) }?;
        self.counter.resize(old.size(), new.size());
        Ok(as_requested(block, new))
    }

    #[inline]
    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's obligations are the inner method's.
        let block = unsafe { self.inner.shrink(block, old, new) }?;
        self.counter.resize(old.size(), new.size());
        Ok(as_requested(block, new))
    }
}
