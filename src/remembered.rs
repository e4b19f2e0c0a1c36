//! The places that a thread counted into last, so that it need not look them up again.
//!
//! `thread_local` finds a thread's place in 14 instructions, more than it takes to count there. So each thread remembers
//! a few places, each with the number of the counter that it is in, and recalls one in seven.
//!
//! # Which counter
//!
//! A [`Tag`] is a counter's number: given when a thread first remembers a place of it, and never to another
//! counter. (An address would be another's once the counter is dropped.) What a thread remembers of a counter that is gone
//! is never recalled, since nobody has that number to ask with.
//!
//! # The end of a thread
//!
//! A place belongs to whoever has the thread's number in `thread_local`, which takes the number back in the destructor of a
//! thread-local; from then on another thread may own the place. So what is remembered must be forgotten
//! before. A destructor of our own does it, and from then on nothing is remembered any more. It is registered
//! after that of `thread_local`, and runs before it: the standard library, and glibc where that keeps the list, run
//! destructors in the reverse of the order in which they were registered. No document promises it, so nothing is
//! remembered on systems where it has not been tried (test: `a_place_that_another_thread_has_taken_over_is_left_alone`).
//!
//! # Signals
//!
//! A handler may read [`Counter::thread_totals`](crate::Counter::thread_totals), which recalls and never remembers. So that it
//! recalls no half of what the thread is about to remember, a slot belongs to nobody while its place is changed.

#![allow(unsafe_code, reason = "a remembered place is a pointer")]

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicUsize, compiler_fence};

use crate::place::Place;

/// How many places a thread remembers at most: enough for a virtual machine with an account for each kind of
/// memory. A counter has its slot by its number, so those made one after another do not get in each other's way.
const SLOTS: usize = 4;

/// Whether destructors are known to run in the reverse of their order.
const IS_ORDER_KNOWN: bool = cfg!(target_os = "linux");

/// The number of a counter that no thread has remembered yet.
const NOT_GIVEN: usize = 0;

/// The number that a thread remembers which remembers none.
const NO_COUNTER: usize = usize::MAX;

/// See the module. `Relaxed` throughout: a thread only compares it with what it has read there itself.
#[derive(Debug)]
pub(crate) struct Tag(AtomicUsize);

struct Memory {
    /// The destructor is registered and has not run.
    is_kept: Cell<bool>,
    slots: [Slot; SLOTS],
}

struct Slot {
    tag: Cell<usize>,
    place: Cell<NonNull<Place>>,
}

impl Slot {
    const fn empty() -> Self {
        Self {
            tag: Cell::new(NO_COUNTER),
            place: Cell::new(NonNull::dangling()),
        }
    }
}

impl Memory {
    #[inline(always)]
    fn slot(&self, number: usize) -> &Slot {
        &self.slots[number % SLOTS]
    }
}

thread_local! {
    // Without a destructor, so it can be read as long as the thread runs any code at all.
    static MEMORY: Memory = const {
        Memory {
            is_kept: Cell::new(false),
            slots: [const { Slot::empty() }; SLOTS],
        }
    };

    static FORGETTING: Forgetting = const { Forgetting };
}

struct Forgetting;

impl Drop for Forgetting {
    fn drop(&mut self) {
        MEMORY.with(|memory| {
            memory.is_kept.set(false);
            for slot in &memory.slots {
                slot.tag.set(NO_COUNTER);
            }
        });
    }
}

/// Lets the calling thread remember places until it ends. To be called once it has its number in
/// `thread_local`.
pub(crate) fn keep() {
    if IS_ORDER_KNOWN && FORGETTING.try_with(|_| ()).is_ok() {
        MEMORY.with(|memory| memory.is_kept.set(true));
    }
}

impl Tag {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(NOT_GIVEN))
    }

    /// Returns the calling thread's place in this tag's counter, if it is the one that it remembers.
    #[inline(always)]
    pub(crate) fn recall(&self) -> Option<&Place> {
        MEMORY.with(|memory| {
            let number = self.0.load(Relaxed);
            let slot = memory.slot(number);
            // SAFETY: remembered under this tag, since no other has its number; so it is there as long as
            // the tag is.
            (slot.tag.get() == number).then(|| unsafe { slot.place.get().as_ref() })
        })
    }

    /// Has the calling thread remember `place`, its own in this tag's counter.
    ///
    /// # Safety
    ///
    /// The place must stay where it is as long as the tag exists.
    pub(crate) unsafe fn remember(&self, place: &Place) {
        MEMORY.with(|memory| {
            if !memory.is_kept.get() {
                return;
            }
            if let Some(number) = self.number() {
                let slot = memory.slot(number);
                slot.tag.set(NO_COUNTER);
                compiler_fence(SeqCst);
                slot.place.set(NonNull::from_ref(place));
                compiler_fence(SeqCst);
                slot.tag.set(number);
            }
        });
    }

    fn number(&self) -> Option<usize> {
        match self.0.load(Relaxed) {
            NOT_GIVEN => self.give_number(),
            number => Some(number),
        }
    }

    /// `None` when they have run out, after four thousand million counters on a 32-bit target. It must not start
    /// again: two counters would have the same.
    #[cold]
    fn give_number(&self) -> Option<usize> {
        static LAST: AtomicUsize = AtomicUsize::new(NOT_GIVEN);
        let next = |last| Some(last + 1).filter(|&number| number != NO_COUNTER);
        let number = next(LAST.fetch_update(Relaxed, Relaxed, next).ok()?)?;
        match self.0.compare_exchange(NOT_GIVEN, number, Relaxed, Relaxed) {
            Ok(_) => Some(number),
            Err(given) => Some(given),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{IS_ORDER_KNOWN, SLOTS, Tag, keep};
    use crate::place::Place;
    use std::thread;

    /// A counter's part in this: its number, and where the thread counts into it.
    fn counters(count: usize) -> Vec<(Tag, Place)> {
        (0..count).map(|_| (Tag::new(), Place::new())).collect()
    }

    #[track_caller]
    fn remember((tag, place): &(Tag, Place)) {
        // SAFETY: both are dropped together, and neither has moved since.
        unsafe { tag.remember(place) };
    }

    #[track_caller]
    fn assert_recalled((tag, place): &(Tag, Place), is_recalled: bool) {
        let recalled = tag.recall().map(std::ptr::from_ref);
        assert_eq!(recalled, is_recalled.then_some(std::ptr::from_ref(place)));
    }

    fn on_a_thread(work: impl FnOnce() + Send) {
        thread::scope(|scope| {
            scope.spawn(work);
        });
    }

    #[test]
    fn a_thread_remembers_its_last_places_each_under_its_own_number() {
        on_a_thread(|| {
            keep();
            let counters = counters(3 * SLOTS);
            for counter in &counters {
                assert_recalled(counter, false);
                for _ in 0..2 {
                    remember(counter);
                    assert_recalled(counter, IS_ORDER_KNOWN);
                }
                for (tag, place) in &counters {
                    assert!(tag.recall().is_none_or(|own| std::ptr::eq(own, place)));
                }
            }
        });
    }

    #[test]
    fn a_thread_that_may_not_keep_its_places_remembers_none() {
        on_a_thread(|| {
            let counters = counters(2);
            counters.iter().for_each(remember);
            assert_recalled(&counters[0], false);
            assert_recalled(&counters[1], false);
        });
    }

    #[test]
    fn a_place_is_remembered_by_its_thread_only() {
        on_a_thread(|| {
            keep();
            let counters = counters(1);
            remember(&counters[0]);
            on_a_thread(|| {
                keep();
                assert_recalled(&counters[0], false);
            });
            assert_recalled(&counters[0], IS_ORDER_KNOWN);
        });
    }
}
