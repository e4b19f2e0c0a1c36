//! Threads that the standard library knows nothing of.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

/// What a thread is given: borrowed from the caller, so that starting it allocates nothing and its
/// first act is the caller's choice.
struct Start<'a> {
    act: &'a (dyn Fn(usize) + Sync),
    index: usize,
}

/// The stack of a thread that is not meant to have a small one.
pub(crate) const ROOMY: usize = 1 << 20;

/// Runs `act(0)` to `act(threads - 1)`, each on a pthread with a stack of `stack` bytes, all at the same
/// time, and returns once all have been joined.
pub(crate) fn on_pthreads(threads: usize, stack: usize, act: &(dyn Fn(usize) + Sync)) {
    let starts: Vec<Start<'_>> = (0..threads).map(|index| Start { act, index }).collect();
    let ids: Vec<libc::pthread_t> = starts.iter().map(|start| spawn(start, stack)).collect();
    for id in ids {
        // SAFETY: started above, joinable, and joined once.
        let joined = unsafe { libc::pthread_join(id, ptr::null_mut()) };
        assert_eq!(joined, 0, "pthread_join");
    }
}

/// Runs `act` on one pthread and allocates nothing itself.
pub(crate) fn on_a_pthread(act: &(dyn Fn(usize) + Sync)) {
    let start = Start { act, index: 0 };
    let id = spawn(&start, ROOMY);
    // SAFETY: started above, joinable, and joined once.
    let joined = unsafe { libc::pthread_join(id, ptr::null_mut()) };
    assert_eq!(joined, 0, "pthread_join");
}

fn spawn(start: &Start<'_>, stack: usize) -> libc::pthread_t {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: valid for the write.
    let made = unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    assert_eq!(made, 0, "pthread_attr_init");
    // SAFETY: initialised above.
    let sized = unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack) };
    assert_eq!(sized, 0, "pthread_attr_setstacksize({stack})");
    let mut id = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY:
    // * id and attributes are valid, the latter initialised;
    // * `start` outlives the thread: whoever called us joins it before `start` goes.
    let started = unsafe {
        libc::pthread_create(
            id.as_mut_ptr(),
            attributes.as_ptr(),
            main,
            ptr::from_ref(start).cast_mut().cast(),
        )
    };
    assert_eq!(started, 0, "pthread_create");
    // SAFETY: initialised above, used no more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // SAFETY: pthread_create has succeeded, so it has written the id.
    unsafe { id.assume_init() }
}

/// A panic in here ends the process, as it would have to leave an `extern "C"` function.
extern "C" fn main(start: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` was given a reference that outlives this thread.
    let start = unsafe { &*start.cast::<Start<'_>>() };
    (start.act)(start.index);
    ptr::null_mut()
}
