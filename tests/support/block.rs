//! A block of memory asked of the program's allocator by one method that we choose.

use std::alloc::{self, Layout};
use std::hint::black_box;
use std::ptr::NonNull;

/// Owns a block. What it asks for cannot be optimised away: its pointer and its layout go through
/// `black_box`.
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block is owned and reached through nothing else.
unsafe impl Send for Block {}

impl Block {
    /// Asks by `alloc`.
    pub(crate) fn new(size: usize) -> Self {
        Self::aligned(size, 1).expect("memory")
    }

    /// Asks by `alloc_zeroed`.
    pub(crate) fn zeroed(size: usize) -> Self {
        Self::try_zeroed(size).expect("memory")
    }

    /// Asks by `alloc`; `None` if refused.
    pub(crate) fn aligned(size: usize, align: usize) -> Option<Self> {
        let layout = layout(size, align);
        // SAFETY: the size is not zero.
        let start = black_box(unsafe { alloc::alloc(layout) });
        Some(Self {
            start: NonNull::new(start)?,
            layout,
        })
    }

    /// Asks by `alloc_zeroed`; `None` if refused.
    pub(crate) fn try_zeroed(size: usize) -> Option<Self> {
        let layout = layout(size, 1);
        // SAFETY: the size is not zero.
        let start = black_box(unsafe { alloc::alloc_zeroed(layout) });
        Some(Self {
            start: NonNull::new(start)?,
            layout,
        })
    }

    /// Asks by `realloc`; when refused, the block is what it was and the answer `false`.
    #[must_use]
    pub(crate) fn resize(&mut self, size: usize) -> bool {
        let new = layout(size, self.layout.align());
        // SAFETY:
        // * the block came from this allocator with this layout;
        // * the new size is not zero and, `layout` saw to that, not beyond `isize::MAX`.
        let moved =
            unsafe { alloc::realloc(black_box(self.start.as_ptr()), self.layout, new.size()) };
        let Some(start) = NonNull::new(black_box(moved)) else {
            return false;
        };
        self.start = start;
        self.layout = new;
        true
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let size = self.layout.size();
        // SAFETY: the block is `size` bytes long, was written or zeroed by `fill` or `try_zeroed`
        // before anyone reads it, and is borrowed as we are.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), size) }
    }

    pub(crate) fn fill(&mut self, with: u8) {
        // SAFETY: the block is `size` bytes long, and owned.
        unsafe { self.start.as_ptr().write_bytes(with, self.layout.size()) };
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block came from this allocator with this layout and is not used again.
        unsafe { alloc::dealloc(black_box(self.start.as_ptr()), self.layout) };
    }
}

fn layout(size: usize, align: usize) -> Layout {
    assert_ne!(size, 0, "no allocator method may be asked for 0 bytes");
    black_box(Layout::from_size_align(size, align).expect("a valid layout"))
}
