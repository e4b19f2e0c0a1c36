//! `Counter`: the same account for one object instead of the process.

use std::marker::PhantomData;

use crossbeam_utils::CachePadded;
use thread_local::ThreadLocal;

use crate::ledger::{Attention, Ledger};
use crate::mode::{DefaultMode, Mode};
use crate::operation::Operation;
use crate::place::Place;
use crate::readings::{Readings, reading_methods};
use crate::remembered::Tag;
use crate::shard::Shard;
use crate::sum::Sum;
use crate::thread;
use crate::totals::Totals;
use crate::watch::{Watch, Watched};

/// An account of one object: a VM instance, an isolate, a cache.
///
/// What is counted is what its owner says, with [`add`](Self::add), [`sub`](Self::sub) and
/// [`resize`](Self::resize); `Counted` (feature `allocator-api2`) says it for a
/// collection. It is counted as the process's account counts, per thread and published in
/// batches, and read by the same methods with the same guarantees. `M` is the mode, as for
/// [`TallyAlloc`](crate::TallyAlloc).
///
/// Any number of counters may exist; dropping one gives back all it holds. Blocks may be counted
/// by one thread and taken off by another.
///
/// # Ended threads
///
/// A counter is not told that a thread ends. What the thread left pending stays pending until a
/// new thread takes its place: [`totals`](Self::totals) has it all along, and
/// [`live_bytes`](Self::live_bytes) is off by it, within [`error_bound`](Self::error_bound), which
/// reckons with every thread's place, used or not. A thread that flushes before it ends leaves
/// nothing. Operations of a thread that is past its thread-local destructors are counted too, and
/// published at once.
///
/// In one case that takes a panic: when a thread has used the crate `thread_local` through somebody else, has already run that
/// crate's destructor, and only then uses a counter, the first one ever. Then `thread_local` panics.
/// The panic is caught, and what is counted is counted; but the panic hook is called, the number that was asked for in vain is never
/// given to another thread, so that every counter's memory grows with the number of such threads, and **a program built with
/// `panic = "abort"` ends there**. A thread that has used any counter before it ends is no such thread.
///
/// # Memory
///
/// On a 64-bit target with cache lines kept 128 bytes apart, a counter is 2,048 bytes, a quarter of it
/// the table of threads and most of the rest padding. Each thread that counts has a place of 256
/// bytes in it. Places are allocated in groups of 1, 2, 4, 8 and so on, a group when the first
/// thread of it counts, and reused by later threads, so they number less than twice the largest number of
/// threads that were alive at once (all threads of the process that use any counter, or the crate
/// `thread_local` in another way).
///
/// # Cost
///
/// 17 instructions for `add` and as many for `sub` (x86-64 Linux, counted by callgrind:
/// `cargo bench -p tally-alloc-bench --bench instructions`), without a write to memory that other threads
/// write to, until a thread has a threshold pending. That is so while a thread goes between four counters or fewer
/// that were made one after another: it remembers its places in them. With more, or where it is not known that a thread's
/// destructors run in the reverse of their order (elsewhere than on Linux), it looks its place up each time, in some
/// thirty more.
///
/// # Inside an allocator
///
/// A thread's first operation on a counter allocates, from the global allocator, its place.
/// If that allocator charges the same counter the operation is counted all the same, without
/// recursion, by the slower way of ended threads. But the first operation also registers a
/// thread-local destructor, takes a lock for a moment and aborts when there is no memory, none of
/// which an allocator for everything should do: what goes through the global allocator is for
/// [`TallyAlloc`](crate::TallyAlloc) to count. After `fork` in a process that runs other threads, a
/// thread of the child that had not used a counter before may find that lock taken for ever.
///
/// # Examples
///
/// ```
/// use tally_alloc::Counter;
///
/// static TEXTURES: Counter = Counter::new();
///
/// let pixels = vec![0_u8; 64 * 64 * 4];
/// TEXTURES.add(pixels.len());
/// assert_eq!(TEXTURES.totals().live_bytes(), 16_384);
///
/// TEXTURES.sub(pixels.len());
/// drop(pixels);
/// assert_eq!(TEXTURES.totals().live_bytes(), 0);
/// ```
///
/// Exact whatever the features say:
///
/// ```
/// use tally_alloc::{Counter, Exact};
///
/// let cache = Counter::<Exact>::with_mode();
/// cache.add(3);
/// assert_eq!(cache.live_bytes(), 3);
/// ```
///
/// With a trigger of its own:
///
/// ```
/// use std::time::Duration;
/// use tally_alloc::policy::FixedLimit;
/// use tally_alloc::{Counter, Measure, Trigger};
///
/// let cache = Counter::new();
/// let trigger = Trigger::new(&cache, Measure::LiveBytes, FixedLimit::new(1 << 20)?)?;
/// cache.add(1 << 20);
/// assert!(trigger.poll());
/// cache.sub(1 << 20);
/// trigger.collected(Duration::from_millis(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Counter<M = DefaultMode> {
    ledger: Ledger,
    places: ThreadLocal<CachePadded<Place>>,
    tag: Tag,
    /// Counted into by any thread, with atomic adds, and published at once.
    outside: CachePadded<Shard>,
    mode: PhantomData<fn() -> M>,
}

// What the docs say of memory; elsewhere padding differs.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(loom)))]
const _: () = assert!(size_of::<Counter>() == 2048);

impl Counter {
    /// Returns a counter in the default mode, with nothing counted.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_mode()
    }
}

impl<M: Mode> Counter<M> {
    /// Returns a counter in the mode `M`, with nothing counted.
    #[must_use]
    pub const fn with_mode() -> Self {
        Self {
            ledger: Ledger::new(),
            places: ThreadLocal::new(),
            tag: Tag::new(),
            outside: CachePadded::new(Shard::new()),
            mode: PhantomData,
        }
    }

    /// Counts a block of so many bytes that was allocated.
    ///
    /// Figures are as wide as a pointer and wrap: at no time may what is live exceed seven eighths of
    /// the range, which no real blocks do.
    #[inline]
    pub fn add(&self, bytes: usize) {
        self.count(Operation::Allocate, bytes);
    }

    /// Counts a block of so many bytes that was freed.
    ///
    /// It must have been counted by [`add`](Self::add), on any thread, before. Taking off more than
    /// was counted is harmless, up to an eighth of the range of a pointer, but shows: [`live_bytes`](Self::live_bytes) then
    /// says 0, and [`Totals::net_bytes`] is negative.
    #[inline]
    pub fn sub(&self, bytes: usize) {
        self.count(Operation::Deallocate, bytes);
    }

    /// Counts a block that was of `old` bytes and is now of `new`: one reallocation, and no change in
    /// blocks.
    #[inline]
    pub fn resize(&self, old: usize, new: usize) {
        let (operation, bytes) = Operation::resize(old, new);
        self.count(operation, bytes);
    }

    #[inline(always)]
    fn count(&self, operation: Operation, bytes: usize) {
        let place = self.tag.recall().or_else(|| self.find_and_remember());
        if M::PUBLISHES_EVERY_OPERATION {
            match place {
                Some(place) => self.attend(place.count_exact(&self.ledger, operation, bytes)),
                None => self.look(operation, bytes),
            }
        } else if !place.is_some_and(|place| place.count(operation, bytes)) {
            self.look(operation, bytes);
        }
    }

    /// Counts an operation of a thread that has no place, or no room in it.
    #[cold]
    #[inline(never)]
    fn look(&self, operation: Operation, bytes: usize) {
        let ledger = &self.ledger;
        self.attend(match self.own_place().or_else(|| self.enter()) {
            Some(place) if M::PUBLISHES_EVERY_OPERATION => {
                place.count_exact(ledger, operation, bytes)
            }
            Some(place) => place.count_and_look(ledger, operation, bytes),
            None => ledger.publish_shared(&self.outside, operation, bytes),
        });
    }

    /// Returns the calling thread's place, if it has one. Changes nothing, so a signal handler may ask.
    #[inline]
    fn own_place(&self) -> Option<&Place> {
        self.tag.recall().or_else(|| self.find())
    }

    fn find(&self) -> Option<&Place> {
        self.places
            .get()
            .map(|place| &**place)
            .filter(|place| place.is_owned_by(thread::name()))
    }

    #[allow(unsafe_code, reason = "promises that places stay where they are")]
    #[cold]
    #[inline(never)]
    fn find_and_remember(&self) -> Option<&Place> {
        let place = self.find()?;
        // SAFETY: a place is given back with the counter, and with it the tag, and does not move before.
        unsafe { self.tag.remember(place) };
        Some(place)
    }

    /// Gives the calling thread a place, if it can be given one.
    fn enter(&self) -> Option<&Place> {
        let (place, attention) = thread::enter(|name| {
            let place = self.places.get_or(|| CachePadded::new(Place::new()));
            let attention = if M::PUBLISHES_EVERY_OPERATION {
                place.take_over_exact(&self.ledger, name);
                Attention::None
            } else {
                place.take_over(&self.ledger, name)
            };
            (&**place, attention)
        })?;
        self.attend(attention);
        Some(place)
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.places
            .iter()
            .map(|place| place.shard())
            .chain([&*self.outside])
    }
}

reading_methods! {
    impl<M> for Counter<M>,
    example: "tally_alloc::Counter::new()",
    error_bound: "It is the sum, over the places of threads, those of ended threads included, of the threshold that each is under, less one. 0 in exact mode.",
    thread_totals: "on this counter since it started.",
    flush: "A thread that ends should do so, else what it left pending waits for a new thread to take \
            its place.",
}

impl<M: Mode> Watch for Counter<M> {}

impl<M: Mode> Watched for Counter<M> {
    #[inline(always)]
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn sum(&self) -> Sum {
        Sum::of(|| self.shards())
    }

    fn publishes(&self) -> usize {
        self.shards()
            .fold(0, |sum, shard| sum.wrapping_add(shard.publishes()))
    }
}

impl<M: Mode> Readings for Counter<M> {
    fn own_totals(&self) -> Totals {
        self.own_place()
            .map(Place::owner_totals)
            .unwrap_or_default()
    }

    fn flush_own(&self) {
        // Exact counting has nothing pending.
        if let Some(place) = self.own_place().filter(|_| !M::PUBLISHES_EVERY_OPERATION) {
            self.attend(place.flush(&self.ledger));
        }
    }
}

impl<M: Mode> Default for Counter<M> {
    fn default() -> Self {
        Self::with_mode()
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::Counter;

    #[test]
    fn a_thread_that_counts_remembers_its_place_and_one_that_reads_does_not() {
        let counter = Counter::new();
        assert!(counter.tag.recall().is_none());
        counter.add(1);
        assert_eq!(counter.thread_totals().allocations, 1);
        assert!(
            counter.tag.recall().is_none(),
            "its first operation finds it a place"
        );
        counter.add(1);
        assert!(counter.tag.recall().is_some());
    }
}
