//! One thread asleep, and how a publishing thread wakes it without a lock or a wait.
//!
//! The sleeper leaves a handle to itself in the slot before it parks, and takes it out afterwards. Whoever
//! wakes it borrows the handle in between. One word says whose the handle is: whether it is there, and how
//! many wakers have borrowed it.
//!
//! | word | the handle is | changed by |
//! | --- | --- | --- |
//! | `EMPTY` | not there | [`enter`](Sleeper::enter), to `ASLEEP` |
//! | `ASLEEP` | the sleeper's, and may be borrowed | [`wake`](Sleeper::wake), which adds `BORROWED`; [`leave`](Sleeper::leave), to `EMPTY` |
//! | `ASLEEP` + n × `BORROWED` | borrowed by n wakers | `wake`, which adds or takes off `BORROWED` |
//!
//! A sleeper that leaves while its handle is borrowed waits for it to come back: for as long as other
//! threads take over an `unpark`. That is the only wait, and it is the sleeper's.
//!
//! Every waker unparks for itself. Were the second of two to rely on the first, the first could have
//! unparked already and be held up before it says so: the sleeper has seen that its crossing was taken by
//! another thread and parked again, and nobody wakes it for the second (model:
//! `a_sleeper_wakes_though_an_earlier_waker_is_held_up`).
//!
//! # No wake-up is lost
//!
//! What the sleeper waits for is a state of its own that the waker changes *before* it calls `wake`, with a
//! read-modify-write; the sleeper looks at that state *after* `enter`, with a read-modify-write too. One of
//! the two comes first on that state. If the waker's, the sleeper sees the change and does not sleep. If the
//! sleeper's, the waker is ordered after `enter` and finds the handle (model: `a_sleeper_always_wakes`). For
//! this every other change of that state in between must be a read-modify-write as well: a plain store would
//! cut the waker off from the sleeper (model: `a_sleeper_wakes_across_an_arming`).

#![allow(unsafe_code, reason = "shares a thread handle between two threads")]

use std::mem::MaybeUninit;

use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicUsize, Handle, HandleCell, const_fn, yield_now};

const EMPTY: usize = 0;
const ASLEEP: usize = 1;
const BORROWED: usize = 2;

/// See the module. All bytes zero is a sleeper that nobody has entered.
#[derive(Debug)]
pub(crate) struct Sleeper {
    word: AtomicUsize,
    handle: HandleCell,
}

// SAFETY: the handle is written and dropped by the one thread that entered, and read by others only
// while it is borrowed, which excludes both; the word orders them.
unsafe impl Sync for Sleeper {}

impl Sleeper {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                word: AtomicUsize::new(EMPTY),
                handle: HandleCell::new(MaybeUninit::uninit()),
            }
        }
    }

    /// Leaves a handle to the calling thread. One thread at a time may be in here, and it must
    /// [`leave`](Self::leave).
    pub(crate) fn enter(&self, me: Handle) {
        self.handle.with_mut(|handle| {
            // SAFETY: valid for writes, and while the word is `EMPTY` nobody else touches the handle.
            unsafe { handle.cast::<Handle>().write(me) };
        });
        self.word.store(ASLEEP, Release);
    }

    /// Takes the handle out again, once nobody has borrowed it.
    pub(crate) fn leave(&self) {
        while self
            .word
            .compare_exchange_weak(ASLEEP, EMPTY, Acquire, Relaxed)
            .is_err()
        {
            yield_now();
        }
        self.handle.with_mut(|handle| {
            // SAFETY: `enter` wrote it, and while the word is `EMPTY` nobody else touches it.
            unsafe { handle.cast::<Handle>().drop_in_place() };
        });
    }

    /// Wakes the sleeper, if there is one. Does not lock, allocate or wait.
    pub(crate) fn wake(&self) {
        let mut word = self.word.load(Relaxed);
        while word & ASLEEP != 0 {
            match self.word.compare_exchange_weak(
                word,
                word.wrapping_add(BORROWED),
                Acquire,
                Relaxed,
            ) {
                Ok(_) => return self.unpark(),
                Err(now) => word = now,
            }
        }
    }

    /// Unparks the sleeper and gives its handle back, which the caller has borrowed.
    fn unpark(&self) {
        self.handle.with(|handle| {
            // SAFETY: written by `enter`, whose `Release` the borrower's `Acquire` pairs with, and not
            // dropped while it is borrowed.
            unsafe { &*handle.cast::<Handle>() }.unpark();
        });
        self.word.fetch_sub(BORROWED, Release);
    }
}
