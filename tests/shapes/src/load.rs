//! Loads a library that has a copy of the crate of its own.

use std::ffi::{CString, c_int, c_void};

use tally_alloc::heap;

use crate::work;

/// Has the library at `path` do its work on this thread and on one that the library knows nothing of, and works
/// before, meanwhile and afterwards.
pub(crate) fn run(path: &str) {
    work::all();
    let path = CString::new(path).expect("no path has a zero in it");
    // SAFETY: loads a library whose initialisers are the standard library's and ours.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "{path:?} can not be loaded");
    // SAFETY: the handle is open, the name ends with a zero.
    let found = unsafe { libc::dlsym(handle, c"shapes_run".as_ptr()) };
    assert!(!found.is_null(), "no shapes_run in {path:?}");
    // SAFETY: the function of that name has this signature.
    let shapes_run =
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*const c_void) -> c_int>(found) };
    let mine = std::ptr::from_ref(heap()).cast::<c_void>().addr();

    let before = heap().totals();
    assert_eq!(
        shapes_run(std::ptr::without_provenance(mine)),
        0,
        "on this thread"
    );
    assert_eq!(heap().totals(), before, "nothing of it is counted here");
    crate::pthread::on_pthreads(4, 1 << 20, &|_| {
        drop(vec![1_u8; 1000]);
        assert_eq!(
            shapes_run(std::ptr::without_provenance(mine)),
            0,
            "elsewhere"
        );
        drop(vec![1_u8; 1000]);
    });
    work::assert_exact("the library's work");
    // SAFETY: the handle is open and closed once, and no thread runs the library's code.
    let closed = unsafe { libc::dlclose(handle) };
    assert_eq!(closed, 0, "dlclose");
    work::all();
}
