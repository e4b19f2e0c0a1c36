//! Child processes made by `fork`: copies of this process with one thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seconds after which a forked child is held to hang.
const WATCHDOG: u32 = 60;

/// Runs `act` in a forked child and returns the child's wait status: 0 when `act` returned, 256 when it
/// panicked, 14 when it hung.
pub(crate) fn in_a_fork(act: impl FnOnce()) -> i32 {
    // SAFETY: the child does what `act` does and then leaves by `_exit`; that it may do so in a process
    // whose other threads are gone is what the callers test.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        // SAFETY: alarms are not inherited, so the child sets its own.
        unsafe { libc::alarm(WATCHDOG) };
        let code = i32::from(catch_unwind(AssertUnwindSafe(act)).is_err());
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the child is ours and nobody else waits for it.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "waitpid");
    status
}
