//! The counted malloc family: the C library's functions, charged to a counter.
//!
//! | | |
//! | --- | --- |
//! | no memory | null is returned, nothing is counted, and a block that was to be resized is as it was |
//! | a size of 0 | a block of its own, not null, of 0 bytes: it counts as a block and has to be freed |
//! | a null block | freed: nothing happens; resized: a new block |
//! | resizing to 0 | a block of 0 bytes; only `free` frees |
//! | resizing | one reallocation: growing adds the difference, shrinking takes it off |
//! | sizes | what was asked for, given again when the block is resized or freed; the `_usable` functions count what the block has room for (`malloc_usable_size`) and need to be told nothing |
//!
//! The two kinds do not mix: what a `_usable` function returned goes back through one, or the
//! figures drift. The blocks themselves are the C library's, so `free` frees any of them; it is then
//! still counted as live.

#![allow(unsafe_code, reason = "calls the C library's allocator")]

use std::ffi::c_void;
use std::ptr;

use tally_alloc::{Counter, Mode};

/// Allocates `size` bytes.
#[inline]
#[must_use]
pub fn malloc<M: Mode>(counter: &Counter<M>, size: usize) -> *mut c_void {
    let block = plain::malloc(size);
    added(counter, block, || size)
}

/// Allocates an array of `count` elements of `size` bytes each, all zero; null if that is more
/// bytes than a size can say.
#[inline]
#[must_use]
pub fn calloc<M: Mode>(counter: &Counter<M>, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        return plain::refuse();
    };
    added(counter, plain::calloc(bytes), || bytes)
}

/// Makes a block of `old` bytes one of `new`, moving it if need be; null, with the block and the
/// count as they were, if there is no memory. A moved block has the alignment of `malloc`.
///
/// # Safety
///
/// `block` is null (then `old` is ignored) or was returned by a function of this module for
/// `counter`, is of `old` bytes, and was not freed. Unless null is returned it is used no more.
#[inline]
#[must_use]
pub unsafe fn realloc<M: Mode>(
    counter: &Counter<M>,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    if block.is_null() {
        return malloc(counter, new);
    }
    // SAFETY: the caller's block is the C library's and not freed.
    let moved = unsafe { plain::realloc(block, new) };
    if !moved.is_null() {
        counter.resize(old, new);
    }
    moved
}

/// Frees a block of `size` bytes.
///
/// # Safety
///
/// `block` is null (then nothing happens) or was returned by a function of this module for
/// `counter`, is of `size` bytes, and was not freed. It is used no more.
#[inline]
pub unsafe fn free<M: Mode>(counter: &Counter<M>, block: *mut c_void, size: usize) {
    if !block.is_null() {
        counter.sub(size);
        // SAFETY: the caller's block is the C library's and not freed.
        unsafe { libc::free(block) };
    }
}

/// Allocates `size` bytes at a multiple of `alignment`, which must be a power of two; null if it is
/// not. [`free`] frees it.
#[inline]
#[must_use]
pub fn aligned_malloc<M: Mode>(counter: &Counter<M>, alignment: usize, size: usize) -> *mut c_void {
    added(counter, plain::aligned_malloc(alignment, size), || size)
}

/// Returns the bytes that a block has room for, at least what was asked for; 0 for null.
///
/// # Safety
///
/// `block` is null or was returned by a function of this module and was not freed.
#[inline]
#[must_use]
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's block is the C library's, or null, which that takes too.
    unsafe { plain::usable_size(block) }
}

/// As [`malloc`], counting the bytes that the block has room for.
#[inline]
#[must_use]
pub fn malloc_usable<M: Mode>(counter: &Counter<M>, size: usize) -> *mut c_void {
    added_usable(counter, plain::malloc(size))
}

/// As [`calloc`], counting the bytes that the block has room for.
#[inline]
#[must_use]
pub fn calloc_usable<M: Mode>(counter: &Counter<M>, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        return plain::refuse();
    };
    added_usable(counter, plain::calloc(bytes))
}

/// As [`aligned_malloc`], counting the bytes that the block has room for.
#[inline]
#[must_use]
pub fn aligned_malloc_usable<M: Mode>(
    counter: &Counter<M>,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    added_usable(counter, plain::aligned_malloc(alignment, size))
}

/// As [`realloc`], counting the bytes that the block has room for.
///
/// # Safety
///
/// `block` is null or was returned by a `_usable` function of this module for `counter`, and was not
/// freed. Unless null is returned it is used no more.
#[inline]
#[must_use]
pub unsafe fn realloc_usable<M: Mode>(
    counter: &Counter<M>,
    block: *mut c_void,
    new: usize,
) -> *mut c_void {
    if block.is_null() {
        return malloc_usable(counter, new);
    }
    // SAFETY: the caller's block is the C library's and not freed.
    let old = unsafe { plain::usable_size(block) };
    // SAFETY: as above.
    let moved = unsafe { plain::realloc(block, new) };
    if !moved.is_null() {
        // SAFETY: just returned by `realloc`.
        counter.resize(old, unsafe { plain::usable_size(moved) });
    }
    moved
}

/// As [`free`], taking off the bytes that the block has room for.
///
/// # Safety
///
/// `block` is null (then nothing happens) or was returned by a `_usable` function of this module for
/// `counter`, and was not freed. It is used no more.
#[inline]
pub unsafe fn free_usable<M: Mode>(counter: &Counter<M>, block: *mut c_void) {
    // SAFETY: the caller's block is the C library's and not freed, or null.
    let size = unsafe { plain::usable_size(block) };
    // SAFETY: as above, and that is the size it was counted with.
    unsafe { free(counter, block, size) };
}

#[inline(always)]
fn added<M: Mode>(
    counter: &Counter<M>,
    block: *mut c_void,
    size: impl FnOnce() -> usize,
) -> *mut c_void {
    if !block.is_null() {
        counter.add(size());
    }
    block
}

#[inline(always)]
fn added_usable<M: Mode>(counter: &Counter<M>, block: *mut c_void) -> *mut c_void {
    // SAFETY: every caller has the block from the C library, and `added` has ruled out null.
    added(counter, block, || unsafe { plain::usable_size(block) })
}

/// The C library's functions, with sizes of zero settled.
mod plain {
    use super::*;

    /// What is asked of the C library for a block of 0 bytes, for which it may else return null.
    const LEAST: usize = 1;

    #[inline]
    pub(super) fn malloc(size: usize) -> *mut c_void {
        // SAFETY: takes any size.
        unsafe { libc::malloc(size.max(LEAST)) }
    }

    #[inline]
    pub(super) fn calloc(bytes: usize) -> *mut c_void {
        // SAFETY: takes any sizes.
        unsafe { libc::calloc(bytes.max(LEAST), 1) }
    }

    /// # Safety
    ///
    /// `block` is the C library's and not freed.
    #[inline]
    pub(super) unsafe fn realloc(block: *mut c_void, new: usize) -> *mut c_void {
        // SAFETY: as above.
        unsafe { libc::realloc(block, new.max(LEAST)) }
    }

    #[inline]
    pub(super) fn aligned_malloc(alignment: usize, size: usize) -> *mut c_void {
        if !alignment.is_power_of_two() {
            return fail(libc::EINVAL);
        }
        let mut block = ptr::null_mut();
        // SAFETY: `block` is valid for the write; the alignment is a power of two, and a multiple of
        // a pointer's size.
        let failure = unsafe {
            libc::posix_memalign(
                &raw mut block,
                alignment.max(size_of::<*mut c_void>()),
                size.max(LEAST),
            )
        };
        if failure == 0 { block } else { fail(failure) }
    }

    /// # Safety
    ///
    /// `block` is null or the C library's and not freed.
    #[inline]
    pub(super) unsafe fn usable_size(block: *mut c_void) -> usize {
        #[cfg(target_vendor = "apple")]
        // SAFETY: as above.
        unsafe {
            libc::malloc_size(block)
        }
        #[cfg(not(target_vendor = "apple"))]
        // SAFETY: as above.
        unsafe {
            libc::malloc_usable_size(block)
        }
    }

    #[cold]
    pub(super) fn refuse() -> *mut c_void {
        fail(libc::ENOMEM)
    }

    /// Says why in `errno`, where we know how to reach it, as the C library does.
    #[cold]
    fn fail(_why: i32) -> *mut c_void {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: takes nothing.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: the calling thread's own `errno`.
            unsafe { errno.write(_why) };
        }
        ptr::null_mut()
    }
}
