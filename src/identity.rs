//! What the operating system calls a thread.
//!
//! On Linux and Android a thread's id is what `gettid` gives: the number that `top`, `perf` and `/proc` know it by. To ask
//! for it is one system call that cannot fail and touches no memory. Its name is the one that it was given when it was
//! started, cut to 15 bytes by the system, and whoever wants to know it reads it from `/proc`.
//!
//! Elsewhere threads are numbered from 1 in the order in which they first allocate, and have no name here.

#![allow(unsafe_code, reason = "asks the operating system who we are")]

/// Returns the calling thread's id; not 0. Neither allocates nor locks.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(loom)))]
pub(crate) fn own() -> usize {
    // The call by number: the function is not in every C library that we may meet.
    // SAFETY: takes no argument and changes nothing.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    id.cast_unsigned() as usize
}

/// Returns the calling thread's id; not 0. Neither allocates nor locks.
#[cfg(not(any(target_os = "linux", target_os = "android", loom)))]
pub(crate) fn own() -> usize {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    static LAST: AtomicUsize = AtomicUsize::new(0);
    LAST.fetch_add(1, Relaxed).wrapping_add(1)
}

/// Models give their threads ids by hand.
#[cfg(loom)]
pub(crate) fn own() -> usize {
    0
}

/// Returns a thread's name; `None` when it has ended, or the system does not tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn name(id: usize) -> Option<String> {
    let mut name = std::fs::read(format!("/proc/self/task/{id}/comm")).ok()?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Some(String::from_utf8_lossy(&name).into_owned())
}

/// Returns a thread's name; `None` when it has ended, or the system does not tell.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn name(_id: usize) -> Option<String> {
    None
}
