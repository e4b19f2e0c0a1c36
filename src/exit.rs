//! How we learn that a thread ends.
//!
//! # Why a pthread key and not a thread-local with a destructor
//!
//! `std` registers a thread-local's destructor through the C library's
//! `__cxa_thread_atexit_impl`, which allocates, takes the dynamic loader's lock and aborts the
//! process when it finds no memory (glibc 2.36, `stdlib/cxa_thread_atexit_impl.c`). None of that
//! may happen inside an allocator: a constructor that runs under the loader's lock and waits for
//! a thread would hang at that thread's first allocation, and so would a thread started in a
//! child that was forked while another thread held the lock. `pthread_setspecific` stores into
//! an array that is part of the thread (glibc: the first 32 keys; musl: all), and a key is made
//! by one compare-and-swap.
//!
//! Keys also run after all thread-local destructors, so their frees are still the thread's own.
//!
//! # Unloading
//!
//! A key outlives the object that made it, and would have a thread that ends after a plugin was unloaded jump
//! into code that is gone. So the key is deleted by the object's own terminator, which runs when it is unloaded
//! (and at the end of the process, where it does no harm: what a thread has counted stays in its shard).
//!
//! # When there is no key
//!
//! All keys of the process may be taken (1,024 in glibc, 128 in musl). Then no thread can be
//! told to hand its shard back, so none gets one, and everything is counted as an operation
//! outside any thread's shard: as right as ever, and as slow as a shared counter.

#![allow(unsafe_code, reason = "calls into the C library's threads")]

#[cfg(unix)]
pub(crate) use unix::arm;

#[cfg(not(unix))]
pub(crate) use portable::arm;

#[cfg(unix)]
mod unix {
    use std::ffi::c_void;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::{AcqRel, Acquire};

    /// The key plus one; 0 before there is a key.
    static KEY: AtomicUsize = AtomicUsize::new(0);

    /// Makes the calling thread run `leave` when it ends; `false` when that cannot be had.
    pub(crate) fn arm(leave: extern "C" fn()) -> bool {
        let Some(key) = key() else { return false };
        let value = leave as *const c_void;
        // SAFETY: the key was made by `pthread_key_create` and is deleted only when this
        // object is unloaded.
        unsafe { libc::pthread_setspecific(key, value) == 0 }
    }

    extern "C" fn ended(leave: *mut c_void) {
        // SAFETY: `arm` stored it, and a destructor is called with the value stored. (A reference to a place
        // that holds it would be tested for null in builds with assertions, and could panic.)
        let leave = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(leave) };
        leave();
    }

    // A module of WebAssembly cannot be unloaded, nor name an address in a section of its own; on AIX the linker
    // goes by function names. There the key stays.
    #[cfg(not(any(target_family = "wasm", target_os = "aix")))]
    #[used]
    #[cfg_attr(
        target_vendor = "apple",
        unsafe(link_section = "__DATA,__mod_term_func,mod_term_funcs")
    )]
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".fini_array"))]
    static UNLOAD: extern "C" fn() = disarm;

    /// Deletes the key: threads no longer call [`ended`] when they end.
    #[cfg(not(any(target_family = "wasm", target_os = "aix")))]
    extern "C" fn disarm() {
        let made = KEY.swap(0, AcqRel).checked_sub(1);
        if let Some(key) = made.and_then(|key| libc::pthread_key_t::try_from(key).ok()) {
            // SAFETY: made by `pthread_key_create`, and taken out of `KEY` by us alone.
            unsafe { libc::pthread_key_delete(key) };
        }
    }

    fn key() -> Option<libc::pthread_key_t> {
        match KEY.load(Acquire) {
            0 => make_key(),
            known => libc::pthread_key_t::try_from(known - 1).ok(),
        }
    }

    #[cold]
    fn make_key() -> Option<libc::pthread_key_t> {
        let mut key: libc::pthread_key_t = 0;
        // SAFETY: `key` is valid for the write, and `ended` has the signature asked for.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } != 0 {
            return None;
        }
        let mine = usize::try_from(key).ok()?.checked_add(1)?;
        match KEY.compare_exchange(0, mine, AcqRel, Acquire) {
            Ok(_) => Some(key),
            Err(first) => {
                // SAFETY: made above and shown to nobody.
                unsafe { libc::pthread_key_delete(key) };
                libc::pthread_key_t::try_from(first - 1).ok()
            }
        }
    }
}

#[cfg(not(unix))]
mod portable {
    use std::cell::Cell;

    struct Guard(Cell<Option<extern "C" fn()>>);

    impl Drop for Guard {
        fn drop(&mut self) {
            if let Some(leave) = self.0.get() {
                leave();
            }
        }
    }

    thread_local! {
        static GUARD: Guard = const { Guard(Cell::new(None)) };
    }

    /// Makes the calling thread run `leave` when it ends; `false` when it is past that.
    pub(crate) fn arm(leave: extern "C" fn()) -> bool {
        GUARD.try_with(|guard| guard.0.set(Some(leave))).is_ok()
    }
}
