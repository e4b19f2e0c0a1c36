//! Null for whatever may be null.

use std::ffi::CStr;
use std::ptr;

use tally_alloc_capi::*;

/// A null account allocates nothing.
fn allocating(size: usize) {
    let none = ptr::null();
    // SAFETY: of all here, null is permitted.
    assert!(unsafe { tally_malloc(none, size) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { tally_calloc(none, size, size) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { tally_aligned_malloc(none, size, size) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { tally_realloc(none, ptr::null_mut(), size, size) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { tally_malloc_usable(none, size) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { tally_calloc_usable(none, size, size) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { tally_aligned_malloc_usable(none, size, size) }.is_null());
    // SAFETY: as above.
    assert!(unsafe { tally_realloc_usable(none, ptr::null_mut(), size) }.is_null());
    // SAFETY: as above.
    unsafe { tally_free(none, ptr::null_mut(), size) };
    // SAFETY: as above.
    unsafe { tally_free_usable(none, ptr::null_mut()) };
    // SAFETY: as above.
    assert_eq!(unsafe { tally_usable_size(ptr::null_mut()) }, 0);
}

/// A null account says nothing.
fn reading(size: usize) {
    let none = ptr::null();
    // SAFETY: of all here, null is permitted.
    assert_eq!(unsafe { tally_account_live_bytes(none) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { tally_account_error_bound(none) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { tally_account_peak_bytes(none) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { tally_account_threshold(none) }, 0);
    let mut totals = CTotals::default();
    for to in [ptr::null_mut(), &raw mut totals] {
        // SAFETY: as above, or valid for a write.
        let status = unsafe { tally_account_totals(none, to) };
        assert_eq!(status, TallyStatus::TALLY_NULL_POINTER);
        // SAFETY: as above.
        let status = unsafe { tally_account_thread_totals(none, to) };
        assert_eq!(status, TallyStatus::TALLY_NULL_POINTER);
    }
    assert_eq!(totals, CTotals::default(), "totals of no account");
    // SAFETY: as above.
    let status = unsafe { tally_account_set_threshold(none, size) };
    assert_eq!(status, TallyStatus::TALLY_NULL_POINTER);
    // SAFETY: as above.
    let status = unsafe { tally_account_create(TALLY_EXACT, ptr::null_mut()) };
    assert_eq!(status, TallyStatus::TALLY_NULL_POINTER);
}

/// A null account or trigger does nothing.
fn doing(size: usize, fraction: f64) {
    let none = ptr::null();
    // SAFETY: of all here, null is permitted.
    unsafe { tally_account_add(none, size) };
    // SAFETY: as above.
    unsafe { tally_account_sub(none, size) };
    // SAFETY: as above.
    unsafe { tally_account_resize(none, size, size) };
    // SAFETY: as above.
    unsafe { tally_account_flush(none) };
    // SAFETY: as above.
    unsafe { tally_account_reset_peak(none) };
    // SAFETY: as above.
    unsafe { tally_account_destroy(ptr::null_mut()) };
    // SAFETY: as above.
    let status = unsafe {
        tally_trigger_create_proportional(none, 0, fraction, size, size, ptr::null_mut())
    };
    assert_eq!(status, TallyStatus::TALLY_NULL_POINTER);
    // SAFETY: as above.
    unsafe { tally_trigger_destroy(ptr::null_mut()) };
    let none = ptr::null();
    // SAFETY: as above.
    assert!(!unsafe { tally_trigger_poll(none) });
    // SAFETY: as above.
    assert!(!unsafe { tally_trigger_wait(none, u64::MAX) });
    // SAFETY: as above.
    let answer = unsafe { tally_trigger_announce(none, size) };
    assert_eq!(answer, TallyAnnouncement::TALLY_FITS);
    // SAFETY: as above.
    unsafe { tally_trigger_collected(none, u64::MAX) };
    // SAFETY: as above.
    assert_eq!(unsafe { tally_trigger_limit(none) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { tally_trigger_headroom(none) }, 0);
    let mut report = CReport::default();
    // SAFETY: as above, and valid for a write.
    let status = unsafe { tally_trigger_report(none, &raw mut report) };
    assert_eq!(status, TallyStatus::TALLY_NULL_POINTER);
}

pub(super) fn call(size: usize, fraction: f64, status: i32) {
    allocating(size);
    reading(size);
    doing(size, fraction);
    // SAFETY: a string that lives as long as the program.
    let message = unsafe { CStr::from_ptr(tally_status_message(status)) };
    assert!(!message.is_empty(), "no message for {status}");
}
