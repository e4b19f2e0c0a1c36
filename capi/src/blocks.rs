//! The counted malloc family, as C sees it.

#![allow(unsafe_code, reason = "takes pointers from C")]

use std::ffi::c_void;
use std::ptr;

use crate::account::{Account, with};
use crate::malloc;

/// Allocates `size` bytes, aligned for any ordinary object.
///
/// A size of 0 gives a block of its own, which counts as a block and has to be freed. Returns null,
/// with nothing counted, when there is no memory or the account is null.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_malloc(account: *const Account, size: usize) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| malloc::malloc(
        counter, size
    ))
}

/// Allocates an array of `count` elements of `size` bytes each, all zero. Null if their product is
/// more than a size can say; else as `tally_malloc`.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_calloc(
    account: *const Account,
    count: usize,
    size: usize,
) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| malloc::calloc(
        counter, count, size
    ))
}

/// Makes a block of `old_size` bytes one of `new_size`, moving it if need be. Growing adds the difference
/// to the count, shrinking takes it off.
///
/// Null is returned when there is no memory or the account is null; block and count are then as they
/// were. A null block gives a new one, and `old_size` is ignored. A new size of 0 gives a block of
/// 0 bytes; it is not freed. A block that moves keeps no more than the alignment of `tally_malloc`.
///
/// # Safety
///
/// `account` is null or an account; `block` is null or came from `tally_malloc`, `tally_calloc`,
/// `tally_aligned_malloc` or `tally_realloc` for this account, is of `old_size` bytes, and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_realloc(
    account: *const Account,
    block: *mut c_void,
    old_size: usize,
    new_size: usize,
) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| {
        // SAFETY: by the caller's word.
        unsafe { malloc::realloc(counter, block, old_size, new_size) }
    })
}

/// Frees a block of `size` bytes, the size that was last asked for. A null block is ignored; with a
/// null account nothing is done.
///
/// # Safety
///
/// `account` is null or an account; `block` is null or came from `tally_malloc`, `tally_calloc`,
/// `tally_aligned_malloc` or `tally_realloc` for this account, is of `size` bytes, and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_free(account: *const Account, block: *mut c_void, size: usize) {
    with!(account, (), |counter| {
        // SAFETY: by the caller's word.
        unsafe { malloc::free(counter, block, size) }
    });
}

/// Allocates `size` bytes at a multiple of `alignment`, which must be a power of two (null if it is
/// not); else as `tally_malloc`. `tally_free` frees it.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_aligned_malloc(
    account: *const Account,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| malloc::aligned_malloc(
        counter, alignment, size
    ))
}

/// Returns the bytes that a block has room for, at least the size asked for; 0 for null.
///
/// # Safety
///
/// `block` is null or came from a function of this header and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_usable_size(block: *mut c_void) -> usize {
    // SAFETY: by the caller's word.
    unsafe { malloc::usable_size(block) }
}

/// As `tally_malloc`, but counts the bytes that the block has room for, so that it can be freed
/// without its size, by `tally_free_usable`. The two kinds of block do not mix.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_malloc_usable(account: *const Account, size: usize) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| malloc::malloc_usable(
        counter, size
    ))
}

/// As `tally_calloc`, but counts the bytes that the block has room for.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_calloc_usable(
    account: *const Account,
    count: usize,
    size: usize,
) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| malloc::calloc_usable(
        counter, count, size
    ))
}

/// As `tally_aligned_malloc`, but counts the bytes that the block has room for.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_aligned_malloc_usable(
    account: *const Account,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| {
        malloc::aligned_malloc_usable(counter, alignment, size)
    })
}

/// As `tally_realloc`, but counts the bytes that the block has room for.
///
/// # Safety
///
/// `account` is null or an account; `block` is null or came from a function of this header whose name
/// ends in `_usable`, for this account, and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_realloc_usable(
    account: *const Account,
    block: *mut c_void,
    new_size: usize,
) -> *mut c_void {
    with!(account, ptr::null_mut(), |counter| {
        // SAFETY: by the caller's word.
        unsafe { malloc::realloc_usable(counter, block, new_size) }
    })
}

/// Frees a block that came from a function whose name ends in `_usable`. A null block is ignored;
/// with a null account nothing is done.
///
/// # Safety
///
/// `account` is null or an account; `block` is null or came from a function of this header whose name
/// ends in `_usable`, for this account, and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_free_usable(account: *const Account, block: *mut c_void) {
    with!(account, (), |counter| {
        // SAFETY: by the caller's word.
        unsafe { malloc::free_usable(counter, block) }
    });
}
