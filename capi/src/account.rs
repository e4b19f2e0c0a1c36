//! Accounts, as C sees them: made, read and given back.

#![allow(unsafe_code, reason = "takes pointers from C")]

use std::alloc::{self, Layout};
use std::ptr;

use tally_alloc::{Batched, Counter, Exact, Totals};

use crate::status::TallyStatus;

/// Threads publish what they have counted in batches: live bytes are within the error bound, exact
/// totals are a sum over the threads.
pub const TALLY_BATCHED: u32 = 0;

/// Every operation is published at once: live bytes are exact, and threads that count at the same
/// time wait for each other.
pub const TALLY_EXACT: u32 = 1;

/// An account: of a VM instance, an isolate, a cache. Any thread may use it at any time, except
/// that it must not be in use while it is destroyed.
#[derive(Debug)]
pub enum Account {
    #[doc(hidden)]
    Batched(Counter<Batched>),
    #[doc(hidden)]
    Exact(Counter<Exact>),
}

/// Does the same with an account's counter in either mode; `$null` for a null account.
macro_rules! with {
    ($account:expr, $null:expr, |$counter:ident| $body:expr) => {{
        // SAFETY: by the caller's word null or made by `tally_account_create` and not destroyed.
        match unsafe { $account.as_ref() } {
            None => $null,
            Some($crate::account::Account::Batched($counter)) => $body,
            Some($crate::account::Account::Exact($counter)) => $body,
        }
    }};
}
pub(crate) use with;

/// What an account has seen since it began. All but the live figures only grow, modulo the width of a
/// size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CTotals {
    /// Bytes of blocks allocated and of growth.
    pub bytes_allocated: usize,
    /// Bytes of blocks freed and of shrinking.
    pub bytes_deallocated: usize,
    /// Blocks allocated.
    pub allocations: usize,
    /// Blocks freed.
    pub deallocations: usize,
    /// Blocks resized.
    pub reallocations: usize,
    /// Bytes allocated and not freed: the difference of the first two.
    pub live_bytes: usize,
    /// Blocks allocated and not freed.
    pub live_blocks: usize,
}

impl From<Totals> for CTotals {
    fn from(totals: Totals) -> Self {
        Self {
            bytes_allocated: totals.bytes_allocated,
            bytes_deallocated: totals.bytes_deallocated,
            allocations: totals.allocations,
            deallocations: totals.deallocations,
            reallocations: totals.reallocations,
            live_bytes: totals.live_bytes(),
            live_blocks: totals.live_blocks(),
        }
    }
}

/// Makes an account with nothing counted, in the mode `TALLY_BATCHED` or `TALLY_EXACT`, and stores
/// it in `*account`.
///
/// Fails with `TALLY_NULL_POINTER` for a null `account`, else with `TALLY_UNKNOWN_MODE` or
/// `TALLY_NO_MEMORY` and null in `*account`.
///
/// # Safety
///
/// `account` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_create(
    mode: u32,
    account: *mut *mut Account,
) -> TallyStatus {
    if account.is_null() {
        return TallyStatus::TALLY_NULL_POINTER;
    }
    // SAFETY: not null, so the caller vouches for it.
    unsafe { account.write(ptr::null_mut()) };
    let made = match mode {
        TALLY_BATCHED => Account::Batched(Counter::with_mode()),
        TALLY_EXACT => Account::Exact(Counter::with_mode()),
        _ => return TallyStatus::TALLY_UNKNOWN_MODE,
    };
    // Not `Box::new`, which stops the program when there is no memory.
    // SAFETY: an account is not of size zero.
    let memory = unsafe { alloc::alloc(Layout::new::<Account>()) }.cast::<Account>();
    if memory.is_null() {
        return TallyStatus::TALLY_NO_MEMORY;
    }
    // SAFETY: just allocated, for an account.
    unsafe { memory.write(made) };
    // SAFETY: as above.
    unsafe { account.write(memory) };
    TallyStatus::TALLY_OK
}

/// Destroys an account and gives back all its memory; null is ignored. Blocks that were allocated
/// through it stay, and can be freed with the C library's `free`.
///
/// # Safety
///
/// `account` is null or was made by `tally_account_create`, is destroyed once, and nobody uses it
/// any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_destroy(account: *mut Account) {
    if !account.is_null() {
        // SAFETY: made by `tally_account_create`, from the allocator and with the layout of a box,
        // and by the caller's word this is its last use.
        drop(unsafe { Box::from_raw(account) });
    }
}

/// Returns the published live bytes: one read, whatever the number of threads. Off by at most
/// `tally_account_error_bound`, never negative. 0 for null.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_live_bytes(account: *const Account) -> usize {
    with!(account, 0, |counter| counter.live_bytes())
}

/// Returns the bytes by which `tally_account_live_bytes` may be off right now; 0 in exact mode. 0
/// for null.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_error_bound(account: *const Account) -> usize {
    with!(account, 0, |counter| counter.error_bound())
}

/// Stores the exact totals in `*totals`: a sum over all threads that have counted, without stopping
/// any. While threads run, its live figures are at least what was live throughout the call, and
/// above it by at most what was freed during the call.
///
/// Fails with `TALLY_NULL_POINTER` if either is null.
///
/// # Safety
///
/// `account` is null or an account; `totals` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_totals(
    account: *const Account,
    totals: *mut CTotals,
) -> TallyStatus {
    with!(account, TallyStatus::TALLY_NULL_POINTER, |counter| {
        // SAFETY: by the caller's word.
        unsafe { store(totals, counter.totals()) }
    })
}

/// Stores in `*totals` what the calling thread has done since it started. The live figures wrap
/// below zero for a thread that has freed what others allocated.
///
/// Fails with `TALLY_NULL_POINTER` if either is null.
///
/// # Safety
///
/// `account` is null or an account; `totals` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_thread_totals(
    account: *const Account,
    totals: *mut CTotals,
) -> TallyStatus {
    with!(account, TallyStatus::TALLY_NULL_POINTER, |counter| {
        // SAFETY: by the caller's word.
        unsafe { store(totals, counter.thread_totals()) }
    })
}

/// # Safety
///
/// `to` is null or valid for a write.
unsafe fn store(to: *mut CTotals, totals: Totals) -> TallyStatus {
    if to.is_null() {
        return TallyStatus::TALLY_NULL_POINTER;
    }
    // SAFETY: not null, so the caller vouches for it.
    unsafe { to.write(totals.into()) };
    TallyStatus::TALLY_OK
}

/// Returns the highest published live bytes since the account was made or its peak was last reset.
/// 0 for null.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_peak_bytes(account: *const Account) -> usize {
    with!(account, 0, |counter| counter.peak_bytes())
}

/// Starts the peak anew from the published live bytes of now. Null is ignored.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_reset_peak(account: *const Account) {
    with!(account, (), |counter| counter.reset_peak());
}

/// Publishes what the calling thread has pending. A thread should do so before it ends: what it
/// leaves is in the totals all the same, but in the live bytes only when another thread has taken
/// its place. Null is ignored.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_flush(account: *const Account) {
    with!(account, (), |counter| counter.flush());
}

/// Returns the pending bytes at which a thread publishes: 16 KiB unless it was set. 0 for null.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_threshold(account: *const Account) -> usize {
    with!(account, 0, |counter| counter.threshold())
}

/// Sets the threshold, in bytes; 0 means the same as 1. A thread comes under it when it next runs
/// out of room, or flushes. Without effect in exact mode.
///
/// Fails with `TALLY_NULL_POINTER` or `TALLY_THRESHOLD_TOO_LARGE`.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_set_threshold(
    account: *const Account,
    bytes: usize,
) -> TallyStatus {
    with!(account, TallyStatus::TALLY_NULL_POINTER, |counter| counter
        .set_threshold(bytes)
        .into())
}

/// Counts a block of so many bytes that came from an allocator of the caller's own. Null is ignored.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_add(account: *const Account, bytes: usize) {
    with!(account, (), |counter| counter.add(bytes));
}

/// Takes off a block of so many bytes that was counted with `tally_account_add`. Null is ignored.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_sub(account: *const Account, bytes: usize) {
    with!(account, (), |counter| counter.sub(bytes));
}

/// Counts that a block of `old_size` bytes, counted with `tally_account_add`, is now of `new_size`. Null is
/// ignored.
///
/// # Safety
///
/// `account` is null or an account.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_account_resize(
    account: *const Account,
    old_size: usize,
    new_size: usize,
) {
    with!(account, (), |counter| counter.resize(old_size, new_size));
}
