//! Threads that wait for one trigger: one sleeps where publishing threads can wake it, the others
//! wait for its place.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::lock;
use crate::watermark::Watermark;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Whether a thread is asleep for all that wait: the leader, the one thread inside the sleeper.
    leading: Mutex<bool>,
    /// Told when the leader leaves.
    left: Condvar,
}

impl Waiters {
    /// Sleeps until `take` wins a crossing of `mark` or the deadline has passed; returns what it won.
    pub(super) fn wait<T>(
        &self,
        mark: &Watermark,
        take: impl Fn() -> Option<T>,
        deadline: Option<Instant>,
    ) -> Option<T> {
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Before we lead: it panics in a thread that is past its thread-local destructors.
        let me = thread::current();
        let mut leading = lock(&self.leading);
        while *leading {
            let taken = take();
            if taken.is_some() {
                return taken;
            }
            leading = match left() {
                Some(Duration::ZERO) => return None,
                Some(left) => {
                    let waited = self.left.wait_timeout(leading, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.left.wait(leading);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        *leading = true;
        drop(leading);

        let mut due = mark.enter(me);
        let taken = loop {
            let taken = if due { take() } else { None };
            if taken.is_some() {
                break taken;
            }
            match left() {
                Some(Duration::ZERO) => break None,
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
            due = mark.is_due();
        };
        mark.leave();
        *lock(&self.leading) = false;
        self.left.notify_all();
        taken
    }
}
