//! One thread asleep, and how a publishing thread wakes it without a lock or a wait.
//!
//! The sleeper leaves a handle to itself in the slot before it parks, and takes it out afterwards. Who
//! wakes it borrows the handle in between. The phase says whose the handle is:
//!
//! | phase | the handle is | left by |
//! | --- | --- | --- |
//! | `EMPTY` | not there | [`enter`](Sleeper::enter) |
//! | `ASLEEP` | the sleeper's, and may be borrowed | [`wake`](Sleeper::wake) to `WAKING`, [`leave`](Sleeper::leave) to `EMPTY` |
//! | `WAKING` | borrowed | `wake`, back to `ASLEEP` |
//!
//! A sleeper that leaves while its handle is borrowed waits for it to come back: for as long as another
//! thread takes over one `unpark`. That is the only wait, and it is the sleeper's.
//!
//! # No wake-up is lost
//!
//! What the sleeper waits for is a state of its own that the waker changes *before* it calls `wake`, with a
//! read-modify-write; the sleeper looks at that state *after* `enter`, with a read-modify-write too. One of
//! the two comes first on that state. If the waker's, the sleeper sees the change and does not sleep. If the
//! sleeper's, the waker is ordered after `enter` and finds the handle (model: `a_sleeper_always_wakes`).

#![allow(unsafe_code, reason = "shares a thread handle between two threads")]

use std::mem::MaybeUninit;

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicUsize, Handle, HandleCell, const_fn, yield_now};

const EMPTY: usize = 0;
const ASLEEP: usize = 1;
const WAKING: usize = 2;

/// See the module. All bytes zero is a sleeper that nobody has entered.
#[derive(Debug)]
pub(crate) struct Sleeper {
    phase: AtomicUsize,
    handle: HandleCell,
}

// SAFETY: the handle is written and dropped by the one thread that entered, and read by another only in
// the phase `WAKING`, which excludes both; the phase orders them.
unsafe impl Sync for Sleeper {}

impl Sleeper {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                phase: AtomicUsize::new(EMPTY),
                handle: HandleCell::new(MaybeUninit::uninit()),
            }
        }
    }

    /// Leaves a handle to the calling thread. One thread at a time may be in here, and it must
    /// [`leave`](Self::leave).
    pub(crate) fn enter(&self, me: Handle) {
        self.handle.with_mut(|handle| {
            // SAFETY: valid for writes, and in the phase `EMPTY` nobody else touches the handle.
            unsafe { handle.cast::<Handle>().write(me) };
        });
        self.phase.store(ASLEEP, Release);
    }

    /// Takes the handle out again.
    pub(crate) fn leave(&self) {
        while self
            .phase
            .compare_exchange_weak(ASLEEP, EMPTY, Acquire, Relaxed)
            .is_err()
        {
            yield_now();
        }
        self.handle.with_mut(|handle| {
            // SAFETY: `enter` wrote it, and in the phase `EMPTY` nobody else touches it.
            unsafe { handle.cast::<Handle>().drop_in_place() };
        });
    }

    /// Wakes the sleeper, if there is one. Does not lock, allocate or wait.
    pub(crate) fn wake(&self) {
        if self
            .phase
            .compare_exchange(ASLEEP, WAKING, AcqRel, Relaxed)
            .is_ok()
        {
            self.handle.with(|handle| {
                // SAFETY: written by `enter`, whose `Release` our `Acquire` pairs with, and not dropped
                // while the phase is `WAKING`.
                unsafe { &*handle.cast::<Handle>() }.unpark();
            });
            self.phase.store(ASLEEP, Release);
        }
    }
}
