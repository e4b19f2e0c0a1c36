//! A shard: the counters of one thread.
//!
//! # Who writes, who reads
//!
//! One thread at a time owns a shard; only the owner writes, and it writes with plain loads and
//! stores, never with a read-modify-write instruction. Anyone may read. Ownership passes through
//! [`Registry`](crate::registry::Registry), whose release and claim order the old owner's writes
//! before the new owner's.
//!
//! # Why the counters are never reset
//!
//! A reader that adds a shared total to buffers which are emptied into it can see the same bytes in
//! both, or in neither, while one is being emptied. Counters that only grow have no such moment: the
//! account's total is the plain sum of all shards, whenever it is taken. What a shard has published is
//! remembered beside the counters instead of being subtracted from them, and a thread that takes over
//! a shard goes on from the figures it finds.
//!
//! # Arithmetic
//!
//! Counters wrap on purpose, at the width of a pointer; pending is a difference and right across the wrap.
//!
//! # Memory orderings
//!
//! * Every operation is counted `Release`, and readers load with `Acquire`: whoever sees an operation's
//!   count is ordered after all that came before the operation, whichever threads did it.
//!   * On the deallocated side: a block is freed after it was allocated, however the pointer travelled, so
//!     a reader that sees the free sees the allocation as well (model:
//!     `a_sum_never_shows_a_free_without_its_allocation`).
//!   * On the allocated side: what was freed before an allocation, to make place for it, is seen by a
//!     reader that sees the allocation and looks at the deallocated side after it (model:
//!     `the_lower_figure_of_a_sum_is_never_above_what_was_live`).
//! * What an owner found is written `Release` and read `Acquire`: whoever sees it is ordered after the owner
//!   before left ([`seat`](crate::seat)).
//! * The rest is the owner's own, or is read as a figure that may be old: `Relaxed`.

use crate::operation::{Net, Operation};
use crate::registry::Slot;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicUsize, const_fn};
use crate::totals::Totals;

/// One thread's counters. All zero is the state of a shard that was never claimed.
///
/// `repr(C)` keeps the five words of the fast path on one cache line.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Shard {
    /// Written by the owner on every operation; read by whoever sums.
    bytes_allocated: AtomicUsize,
    bytes_deallocated: AtomicUsize,
    allocations: AtomicUsize,
    deallocations: AtomicUsize,
    reallocations: AtomicUsize,

    /// Bytes and blocks of this shard that are in the shared totals. Owner only.
    published_bytes: AtomicUsize,
    published_blocks: AtomicUsize,
    /// The threshold that the room keeps to; 0 while nobody owns the shard. Written
    /// by the owner.
    threshold: AtomicUsize,
    /// How often the owner wrote to the shared line; read by whoever sums.
    publishes: AtomicUsize,

    /// The counters as the present owner found them. Written at the claim; read by the owner, and by listings.
    found: Found,
}

#[derive(Debug)]
struct Found {
    bytes_allocated: AtomicUsize,
    bytes_deallocated: AtomicUsize,
    allocations: AtomicUsize,
    deallocations: AtomicUsize,
    reallocations: AtomicUsize,
}

// SAFETY: a shard is made of atomic integers, and a fresh one has zero in each.
#[allow(unsafe_code, reason = "promises that zero is a fresh shard")]
unsafe impl Slot for Shard {
    #[cfg(not(loom))]
    const FRESH: Self = Self::new();

    #[cfg(loom)]
    fn fresh() -> Self {
        Self::new()
    }
}

impl Shard {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                bytes_allocated: AtomicUsize::new(0),
                bytes_deallocated: AtomicUsize::new(0),
                allocations: AtomicUsize::new(0),
                deallocations: AtomicUsize::new(0),
                reallocations: AtomicUsize::new(0),
                published_bytes: AtomicUsize::new(0),
                published_blocks: AtomicUsize::new(0),
                threshold: AtomicUsize::new(0),
                publishes: AtomicUsize::new(0),
                found: Found {
                    bytes_allocated: AtomicUsize::new(0),
                    bytes_deallocated: AtomicUsize::new(0),
                    allocations: AtomicUsize::new(0),
                    deallocations: AtomicUsize::new(0),
                    reallocations: AtomicUsize::new(0),
                },
            }
        }
    }

    /// Counts an operation. Owner only.
    #[inline(always)]
    pub(crate) fn count(&self, operation: Operation, bytes: usize) {
        let add = |counter: &AtomicUsize, by: usize| {
            counter.store(counter.load(Relaxed).wrapping_add(by), Release);
        };
        add(self.bytes(operation), bytes);
        add(self.tally(operation), 1);
    }

    /// Counts an operation on a shard that several threads write to.
    pub(crate) fn count_shared(&self, operation: Operation, bytes: usize) {
        self.bytes(operation).fetch_add(bytes, Release);
        self.tally(operation).fetch_add(1, Release);
        self.publishes.fetch_add(1, Relaxed);
    }

    #[inline(always)]
    fn bytes(&self, operation: Operation) -> &AtomicUsize {
        if operation.takes_back() {
            &self.bytes_deallocated
        } else {
            &self.bytes_allocated
        }
    }

    #[inline(always)]
    fn tally(&self, operation: Operation) -> &AtomicUsize {
        match operation {
            Operation::Allocate => &self.allocations,
            Operation::Deallocate => &self.deallocations,
            Operation::Grow | Operation::Shrink => &self.reallocations,
        }
    }

    /// Returns what the shard has counted, allocated less deallocated. Owner only.
    #[inline(always)]
    pub(crate) fn net(&self) -> Net {
        let net = |allocated: &AtomicUsize, deallocated: &AtomicUsize| {
            allocated
                .load(Relaxed)
                .wrapping_sub(deallocated.load(Relaxed))
                .cast_signed()
        };
        Net {
            bytes: net(&self.bytes_allocated, &self.bytes_deallocated),
            blocks: net(&self.allocations, &self.deallocations),
        }
    }

    /// Returns what of it is in the shared totals. Owner only.
    #[inline(always)]
    pub(crate) fn published(&self) -> Net {
        Net {
            bytes: self.published_bytes.load(Relaxed).cast_signed(),
            blocks: self.published_blocks.load(Relaxed).cast_signed(),
        }
    }

    /// Notes what of it is in the shared totals from now on. Owner only.
    #[inline(always)]
    pub(crate) fn note_published(&self, net: Net) {
        self.published_bytes
            .store(net.bytes.cast_unsigned(), Relaxed);
        self.published_blocks
            .store(net.blocks.cast_unsigned(), Relaxed);
    }

    /// Counts one write to the shared line. Owner only.
    #[inline(always)]
    pub(crate) fn note_publish(&self) {
        self.publishes
            .store(self.publishes.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Returns the threshold that the owner is under; 0 without an owner.
    pub(crate) fn threshold(&self) -> usize {
        self.threshold.load(Relaxed)
    }

    /// Puts the shard under a threshold; under none, 0, when its owner leaves. Owner only.
    pub(crate) fn set_threshold(&self, threshold: usize) {
        self.threshold.store(threshold, Relaxed);
    }

    /// Remembers the counters as the new owner finds them.
    pub(crate) fn note_found(&self) {
        let now = self.totals();
        let found = &self.found;
        found.bytes_allocated.store(now.bytes_allocated, Release);
        found
            .bytes_deallocated
            .store(now.bytes_deallocated, Release);
        found.allocations.store(now.allocations, Release);
        found.deallocations.store(now.deallocations, Release);
        found.reallocations.store(now.reallocations, Release);
    }

    /// Returns what has been counted since the present owner came. To whoever is not the owner it means something
    /// only if the owner stays the same meanwhile.
    pub(crate) fn owner_totals(&self) -> Totals {
        let found = &self.found;
        self.totals()
            - Totals {
                bytes_allocated: found.bytes_allocated.load(Acquire),
                bytes_deallocated: found.bytes_deallocated.load(Acquire),
                allocations: found.allocations.load(Acquire),
                deallocations: found.deallocations.load(Acquire),
                reallocations: found.reallocations.load(Acquire),
            }
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.add_deallocated(&mut totals);
        self.add_allocated(&mut totals);
        totals
    }

    /// Adds the deallocated side of this shard to `totals`. A sum calls this for all
    /// shards before it calls [`add_allocated`](Self::add_allocated) for the first.
    #[inline]
    pub(crate) fn add_deallocated(&self, totals: &mut Totals) {
        let add = |total: &mut usize, counter: &AtomicUsize| {
            *total = total.wrapping_add(counter.load(Acquire));
        };
        add(&mut totals.bytes_deallocated, &self.bytes_deallocated);
        add(&mut totals.deallocations, &self.deallocations);
    }

    /// Adds the allocated side of this shard, and its reallocations, to `totals`.
    #[inline]
    pub(crate) fn add_allocated(&self, totals: &mut Totals) {
        let add = |total: &mut usize, counter: &AtomicUsize| {
            *total = total.wrapping_add(counter.load(Acquire));
        };
        add(&mut totals.bytes_allocated, &self.bytes_allocated);
        add(&mut totals.allocations, &self.allocations);
        add(&mut totals.reallocations, &self.reallocations);
    }

    /// Returns how often the shard's owners wrote to the shared line.
    pub(crate) fn publishes(&self) -> usize {
        self.publishes.load(Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
