//! A gate that brings every thread to a stop between two of its steps, so that no operation is under way.
//!
//! Whoever may operate holds a *place*. A thread gets one from whoever starts it, before it is started, lays it down
//! while it rests at the closed gate, and leaves it behind when it ends: then it belongs to whoever joins it. So a
//! thread that is being born or is dying counts as running, to its very last destructor.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Result, bail};

pub(crate) struct Gate {
    places: Mutex<usize>,
    closed: AtomicBool,
    changed: Condvar,
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Self {
            places: Mutex::new(0),
            closed: AtomicBool::new(false),
            changed: Condvar::new(),
        }
    }

    fn places(&self) -> MutexGuard<'_, usize> {
        self.places.lock().expect("a panic ends the process")
    }

    /// Gives a place to a thread that is about to be started.
    pub(crate) fn come(&self) {
        *self.places() += 1;
    }

    /// Lays down a place: before a join, after which the ended thread's place is the caller's.
    pub(crate) fn leave(&self) {
        *self.places() -= 1;
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Waits, without a place, while the gate is closed.
    pub(crate) fn rest(&self) {
        let mut places = self.places();
        *places -= 1;
        self.changed.notify_all();
        while self.is_closed() {
            places = self.changed.wait(places).expect("a panic ends the process");
        }
        *places += 1;
    }

    /// Closes the gate and waits until nobody operates any more.
    pub(crate) fn close(&self, patience: Duration) -> Result<()> {
        self.closed.store(true, SeqCst);
        let (places, waited) = self
            .changed
            .wait_timeout_while(self.places(), patience, |places| *places > 0)
            .expect("a panic ends the process");
        if waited.timed_out() {
            bail!(
                "{} threads have not come to a stop in {patience:?}",
                *places
            );
        }
        Ok(())
    }

    pub(crate) fn open(&self) {
        let _places = self.places();
        self.closed.store(false, SeqCst);
        self.changed.notify_all();
    }
}
