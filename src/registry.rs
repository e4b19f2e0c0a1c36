//! The registry: slots that are handed out and taken back without a lock, and never go away.
//!
//! An account keeps its threads' shards in one, and what its triggers watch in another. Slots live in
//! slabs of at most one machine word's worth of them, and one bit per slot says
//! whether somebody owns it. The first slab is part of the registry, so most programs never
//! ask for another; further ones are chained to the last and stay for ever, so a reader may
//! walk the chain at any time.
//!
//! # No more slots than owners
//!
//! A claim takes the lowest free bit of the first slab that has one, and starts a new slab
//! only past slabs that it saw full. So the number of slots ever used is at most the largest
//! number of owners there were at one moment, counting those about to claim: each owner in a slab saw all slabs before
//! it full while it was alive itself, and, going through the slabs from the last to the first,
//! the latest of those observations is a moment at which all owners counted so far, and one
//! for every slot of that slab, were there together.
//!
//! A bit in a word has no ABA problem, which a linked list of free slots would have.
//!
//! # Memory orderings
//!
//! * Claim `Acquire`, release `Release`, on the word of the slab: a new owner sees the
//!   counters as the old one left them. Claims and releases of other bits in between are
//!   read-modify-writes and continue the release sequence (model:
//!   `a_shard_changes_hands_with_its_counters`).
//! * A slab is chained with `Release` and found with `Acquire`: who finds it sees its zeros.
//! * `used` is `Relaxed`: it is set by the owner before its first count, so whoever is ordered
//!   after a count finds the bit set.

#![allow(
    unsafe_code,
    reason = "slabs are reached through a chain of raw pointers"
)]

use std::ptr::{self, NonNull};

use crossbeam_utils::CachePadded;

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicPtr, AtomicUsize, const_fn};

/// What a registry holds.
///
/// # Safety
///
/// All bytes zero must be a valid value, the same as a fresh one: further slabs are mapped, not
/// written.
pub(crate) unsafe trait Slot: Sync {
    /// A slot as it is before its first owner.
    #[cfg(not(loom))]
    const FRESH: Self;

    /// A slot as it is before its first owner.
    #[cfg(loom)]
    fn fresh() -> Self;
}

const fn bit(slot: usize) -> usize {
    // No slot is beyond the word; a plain shift would test for it where overflow is checked.
    1_usize.wrapping_shl(slot as u32)
}

#[derive(Debug)]
struct Slab<T, const SLOTS: usize> {
    /// One bit per slot: owned. Written by claims and releases.
    owned: CachePadded<AtomicUsize>,
    /// One bit per slot: owned now or at some time. Written by claims, read by walks.
    used: AtomicUsize,
    /// The next slab, null at the end. Written once.
    next: AtomicPtr<Slab<T, SLOTS>>,
    slots: [CachePadded<T>; SLOTS],
}

impl<T: Slot, const SLOTS: usize> Slab<T, SLOTS> {
    /// The word of a slab without a free slot.
    const FULL: usize = usize::MAX >> (usize::BITS as usize - SLOTS);

    const_fn! {
        const fn new() -> Self {
            Self {
                owned: CachePadded::new(AtomicUsize::new(0)),
                used: AtomicUsize::new(0),
                next: AtomicPtr::new(ptr::null_mut()),
                slots: fresh_slots(),
            }
        }
    }

    fn claim(&self) -> Option<&T> {
        let mut owned = self.owned.load(Relaxed);
        loop {
            let free = !owned & Self::FULL;
            let slot = free.trailing_zeros() as usize;
            let content = self.slots.get(slot)?;
            let taken = owned | bit(slot);
            match self
                .owned
                .compare_exchange_weak(owned, taken, Acquire, Relaxed)
            {
                Ok(_) => {
                    self.used.fetch_or(bit(slot), Relaxed);
                    return Some(content);
                }
                Err(now) => owned = now,
            }
        }
    }

    /// Frees the slot that something at `address` lies in, once `last` has seen it, if it is one of this slab's.
    fn release(&self, address: usize, last: impl FnOnce(&T)) -> bool {
        let offset = address.wrapping_sub(self.slots.as_ptr().addr());
        let slot = offset / size_of::<CachePadded<T>>();
        let Some(content) = self.slots.get(slot) else {
            return false;
        };
        last(content);
        self.owned.fetch_and(!bit(slot), Release);
        true
    }

    fn next(&self) -> Option<&Self> {
        let next = self.next.load(Acquire);
        // SAFETY:
        // * non-null, it was chained by `extend`, which paired its `Release` with our
        //   `Acquire` after the slab had been filled with zeros, a valid slab (`Slot`);
        // * a chained slab lives as long as the registry, and `self` is part of it.
        unsafe { next.as_ref() }
    }

    /// Returns the slab after this one, the last, having made it if nobody else has.
    fn extend(&self) -> Option<&Self> {
        let fresh = new_slab()?;
        if self
            .next
            .compare_exchange(ptr::null_mut(), fresh.as_ptr(), AcqRel, Acquire)
            .is_err()
        {
            // SAFETY: the slab came from `new_slab` and was shown to nobody.
            unsafe { drop_slab(fresh) };
        }
        self.next()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Registry<T: Slot, const SLOTS: usize> {
    first: Slab<T, SLOTS>,
}

impl<T: Slot, const SLOTS: usize> Registry<T, SLOTS> {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self { first: Slab::new() }
        }
    }

    /// Hands out a slot that nobody else owns; `None` when there is no memory for another.
    pub(crate) fn claim(&self) -> Option<&T> {
        let mut slab = &self.first;
        loop {
            if let Some(slot) = slab.claim() {
                return Some(slot);
            }
            slab = match slab.next() {
                Some(next) => next,
                None => slab.extend()?,
            };
        }
    }

    /// Takes back a slot that [`claim`](Self::claim) handed out, as its owner leaves it.
    pub(crate) fn release(&self, slot: &T) {
        self.release_around(slot, |_| ());
    }

    /// Takes back the slot that `part` is a part of; `last` sees it while it is still owned.
    pub(crate) fn release_around<P>(&self, part: &P, last: impl Fn(&T)) {
        let address = ptr::from_ref(part).addr();
        self.slabs().any(|slab| slab.release(address, &last));
    }

    /// Walks the slots that were ever owned.
    pub(crate) fn used(&self) -> impl Iterator<Item = &T> {
        self.slabs().flat_map(|slab| {
            let mut left = slab.used.load(Relaxed);
            std::iter::from_fn(move || {
                let slot = slab.slots.get(left.trailing_zeros() as usize)?;
                left &= left.wrapping_sub(1);
                Some(&**slot)
            })
        })
    }

    /// Returns how many slots have an owner.
    #[cfg(loom)]
    pub(crate) fn owned(&self) -> usize {
        self.slabs()
            .map(|slab| slab.owned.load(Relaxed).count_ones() as usize)
            .sum()
    }

    fn slabs(&self) -> impl Iterator<Item = &Slab<T, SLOTS>> {
        std::iter::successors(Some(&self.first), |slab| slab.next())
    }
}

impl<T: Slot, const SLOTS: usize> Drop for Registry<T, SLOTS> {
    fn drop(&mut self) {
        let mut next = self.first.next.load(Relaxed);
        while let Some(slab) = NonNull::new(next) {
            // SAFETY: chained, and this was the last reference to the registry.
            next = unsafe { slab.as_ref() }.next.load(Relaxed);
            // SAFETY: as above, and we have moved on from it.
            unsafe { drop_slab(slab) };
        }
    }
}

#[cfg(not(loom))]
const fn fresh_slots<T: Slot, const SLOTS: usize>() -> [CachePadded<T>; SLOTS] {
    [const { CachePadded::new(T::FRESH) }; SLOTS]
}

#[cfg(loom)]
fn fresh_slots<T: Slot, const SLOTS: usize>() -> [CachePadded<T>; SLOTS] {
    std::array::from_fn(|_| CachePadded::new(T::fresh()))
}

#[cfg(not(loom))]
use crate::pages;

// SAFETY: a slab is made of atomic integers and pointers, for which zero is what `new` gives them,
// and of slots, for which `Slot` promises the same.
#[cfg(not(loom))]
unsafe impl<T: Slot, const SLOTS: usize> pages::ZeroIsValid for Slab<T, SLOTS> {}

#[cfg(not(loom))]
fn new_slab<T: Slot, const SLOTS: usize>() -> Option<NonNull<Slab<T, SLOTS>>> {
    pages::zeroed()
}

/// # Safety
///
/// `slab` came from [`new_slab`] and nobody uses it any more.
#[cfg(not(loom))]
unsafe fn drop_slab<T: Slot, const SLOTS: usize>(slab: NonNull<Slab<T, SLOTS>>) {
    // SAFETY: as above.
    unsafe { pages::release(slab) };
}

#[cfg(loom)]
fn new_slab<T: Slot, const SLOTS: usize>() -> Option<NonNull<Slab<T, SLOTS>>> {
    NonNull::new(Box::into_raw(Box::new(Slab::new())))
}

/// # Safety
///
/// `slab` came from [`new_slab`] and nobody uses it any more.
#[cfg(loom)]
unsafe fn drop_slab<T: Slot, const SLOTS: usize>(slab: NonNull<Slab<T, SLOTS>>) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(slab.as_ptr()) });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use crate::shard::Shard;
    use crate::sync::Ordering::SeqCst;

    const SLOTS: usize = usize::BITS as usize;
    type Registry = super::Registry<Shard, SLOTS>;

    #[test]
    fn owners_one_after_another_share_one_shard() {
        let registry = Registry::new();
        for _ in 0..100_000 {
            let shard = registry.claim().expect("memory");
            registry.release(shard);
        }
        assert_eq!(registry.used().count(), 1);
    }

    #[test]
    fn as_many_shards_as_owners_at_once_and_each_owner_has_its_own() {
        let registry = Registry::new();
        for owners in [1, SLOTS - 1, SLOTS, SLOTS + 1, 5 * SLOTS + 3] {
            let held: Vec<_> = (0..owners)
                .map(|_| registry.claim().expect("memory"))
                .collect();
            let distinct: HashSet<_> = held
                .iter()
                .map(|shard| std::ptr::from_ref(*shard))
                .collect();
            assert_eq!(distinct.len(), owners, "an owner each");
            assert_eq!(registry.used().count(), owners, "and no shard more");
            let slabs = registry.slabs().count();
            assert_eq!(slabs, owners.div_ceil(SLOTS), "and no slab more");
            held.into_iter().for_each(|shard| registry.release(shard));
        }
    }

    /// Not a byte of a slab is ever counted, so it shows only in what the process has resident.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn a_dropped_registry_gives_its_slabs_back() {
        const REGISTRIES: usize = 20_000;
        let resident = || -> usize {
            let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
            let resident = pages.split(' ').nth(1).expect("after the size");
            resident.parse().expect("a number of pages")
        };
        let before = resident();
        for _ in 0..REGISTRIES {
            let registry = Registry::new();
            for _ in 0..=SLOTS {
                registry.claim().expect("memory");
            }
        }
        // Each second slab was written to. Other tests take a few pages meanwhile.
        let grown = resident().saturating_sub(before);
        assert!(grown < REGISTRIES / 2, "{grown} pages more");
    }

    #[test]
    fn threads_that_come_and_go_need_no_more_shards_than_were_alive_at_once() {
        // The size of a slab less and more.
        for threads in [8, SLOTS + 6] {
            let registry = Registry::new();
            let (owners, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let held = Mutex::new(HashSet::new());
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for _ in 0..100_000 / threads {
                            // Counted for longer than it is true, so that `most` is not too low.
                            most.fetch_max(owners.fetch_add(1, SeqCst) + 1, SeqCst);
                            let shard = registry.claim().expect("memory");
                            let address = std::ptr::from_ref(shard).addr();
                            assert!(held.lock().unwrap().insert(address), "owned twice");
                            assert!(held.lock().unwrap().remove(&address));
                            registry.release(shard);
                            owners.fetch_sub(1, SeqCst);
                        }
                    });
                }
            });
            let (shards, most) = (registry.used().count(), most.into_inner());
            assert!(shards <= most, "{shards} shards for {most} at once");
        }
    }
}
