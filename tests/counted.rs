//! Collections that charge a counter of their own.
#![cfg(feature = "allocator-api2")]
#![allow(missing_docs, reason = "an integration test")]
#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::boxed::Box as CountedBox;
use allocator_api2::vec::Vec as CountedVec;
use bumpalo::Bump;
use hashbrown::{DefaultHashBuilder, HashMap};
use tally_alloc::{Batched, Counted, Counter, Exact, Mode};

#[test]
fn a_hashbrown_map_counts_against_its_own_budget() {
    fn check<M: Mode>() {
        let (a, b) = (Counter::<M>::with_mode(), Counter::<M>::with_mode());
        let mut first = HashMap::with_hasher_in(DefaultHashBuilder::default(), Counted::new(&a));
        let mut second = HashMap::with_hasher_in(DefaultHashBuilder::default(), Counted::new(&b));
        for i in 0..10_000_u64 {
            first.insert(i, i);
            if i % 10 == 0 {
                second.insert(i, i);
            }
        }
        assert_eq!(a.totals().live_bytes(), first.allocation_size());
        assert_eq!(b.totals().live_bytes(), second.allocation_size());
        assert_eq!(a.totals().live_blocks(), 1);
        first.retain(|i, _| i % 100 == 0);
        first.shrink_to_fit();
        assert_eq!(a.totals().live_bytes(), first.allocation_size());
        let copy = first.clone();
        assert_eq!(a.totals().live_bytes(), 2 * copy.allocation_size());
        drop((first, copy));
        assert_eq!(a.totals().live_bytes(), 0);
        assert_eq!(a.totals().live_blocks(), 0);
        assert_eq!(b.totals().live_bytes(), second.allocation_size());
    }
    check::<Batched>();
    check::<Exact>();
}

#[test]
fn a_vector_counts_its_capacity_and_its_growth_as_reallocations() {
    let counter = Counter::<Exact>::with_mode();
    let mut vec = CountedVec::new_in(Counted::new(&counter));
    for i in 0..1_000_u32 {
        vec.push(i);
        assert_eq!(counter.live_bytes(), 4 * vec.capacity());
    }
    assert_eq!(counter.totals().allocations, 1);
    let grown = counter.totals().reallocations;
    assert!(
        grown >= 7,
        "{grown} reallocations from 4 to 1,000 elements by doubling"
    );
    vec.truncate(3);
    vec.shrink_to_fit();
    assert_eq!(counter.live_bytes(), 12);
    drop(vec);
    assert_eq!(counter.live_bytes(), 0);
    assert_eq!(counter.totals().live_blocks(), 0);
    let boxed = CountedBox::new_in([0_u8; 100], Counted::new(&counter));
    assert_eq!(counter.live_bytes(), 100);
    drop(boxed);
    assert_eq!(counter.live_bytes(), 0);
}

#[test]
fn what_a_vector_takes_from_an_arena_is_charged_by_what_it_asked_for() {
    let (counter, arena) = (Counter::<Exact>::with_mode(), Bump::new());
    let mut vec = CountedVec::new_in(Counted::new_in(&counter, &arena));
    vec.extend(0..500_u64);
    assert_eq!(counter.live_bytes(), 8 * vec.capacity());
    drop(vec);
    assert_eq!(counter.live_bytes(), 0);
    assert!(
        arena.allocated_bytes() > 0,
        "the arena keeps what was given back"
    );
}

/// Hands out more than was asked for, refuses above a limit, and writes down what was called.
struct Odd {
    calls: RefCell<Vec<&'static str>>,
}

const EXCESS: usize = 48;
const MOST: usize = 10_000;

impl Odd {
    fn note(&self, call: &'static str) {
        self.calls.borrow_mut().push(call);
    }

    fn larger(layout: Layout) -> Result<Layout, AllocError> {
        if layout.size() > MOST {
            return Err(AllocError);
        }
        Layout::from_size_align(layout.size() + EXCESS, layout.align()).map_err(|_| AllocError)
    }
}

// SAFETY: `Global`, with every layout made larger by the same amount on both sides. A size that fits
// a block is from the one asked for to `EXCESS` more, of which the test passes only the former.
unsafe impl Allocator for &Odd {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.note("allocate");
        Global.allocate(Odd::larger(layout)?)
    }
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.note("allocate_zeroed");
        Global.allocate_zeroed(Odd::larger(layout)?)
    }
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.note("deallocate");
        let layout = Odd::larger(layout).expect("it was granted");
        // SAFETY: the layout under which it was allocated, if the size asked for comes back.
        unsafe { Global.deallocate(block, layout) };
    }
    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        self.note("grow");
        let old = Odd::larger(old).expect("it was granted");
        // SAFETY: as for `deallocate`; the new layout is larger as well.
        unsafe { Global.grow(block, old, Odd::larger(new)?) }
    }
    unsafe fn grow_zeroed(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        self.note("grow_zeroed");
        let old = Odd::larger(old).expect("it was granted");
        // SAFETY: as for `grow`.
        unsafe { Global.grow_zeroed(block, old, Odd::larger(new)?) }
    }
    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        self.note("shrink");
        let old = Odd::larger(old).expect("it was granted");
        // SAFETY: as for `grow`; the new layout is smaller as well.
        unsafe { Global.shrink(block, old, Odd::larger(new)?) }
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a small power of two")
}

#[test]
#[allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one block lives through all of them, under one argument"
)]
fn the_inner_allocator_sees_the_same_calls_and_refusals_are_not_counted() {
    let (counter, odd) = (
        Counter::<Exact>::with_mode(),
        Odd {
            calls: RefCell::default(),
        },
    );
    let counted = Counted::new_in(&counter, &odd);

    let block = counted.allocate(layout(100)).expect("granted");
    assert_eq!(block.len(), 100, "the excess is not passed on");
    assert_eq!(counter.live_bytes(), 100);
    assert!(counted.allocate(layout(MOST + 1)).is_err());
    assert!(counted.allocate_zeroed(layout(MOST + 1)).is_err());
    assert_eq!(counter.totals().allocations, 1, "a refusal is not counted");

    // SAFETY: the block has the layout named at each call, and is not used after it is given back.
    unsafe {
        assert!(
            counted
                .grow(block.cast(), layout(100), layout(MOST + 1))
                .is_err()
        );
        assert!(
            counted
                .grow_zeroed(block.cast(), layout(100), layout(MOST + 1))
                .is_err()
        );
        assert_eq!(
            counter.live_bytes(),
            100,
            "a failed growth leaves the count"
        );
        assert_eq!(counter.totals().reallocations, 0);

        let block = counted
            .grow(block.cast(), layout(100), layout(300))
            .expect("granted");
        assert_eq!((block.len(), counter.live_bytes()), (300, 300));
        let block = counted
            .grow_zeroed(block.cast(), layout(300), layout(500))
            .expect("granted");
        assert_eq!((block.len(), counter.live_bytes()), (500, 500));
        let block = counted
            .shrink(block.cast(), layout(500), layout(20))
            .expect("granted");
        assert_eq!((block.len(), counter.live_bytes()), (20, 20));
        assert_eq!(counter.totals().reallocations, 3);
        counted.deallocate(block.cast(), layout(20));
        let zeroed = counted.allocate_zeroed(layout(64)).expect("granted");
        assert_eq!((zeroed.len(), counter.live_bytes()), (64, 64));
        assert!(zeroed.as_ref().iter().all(|&byte| byte == 0));
        counted.deallocate(zeroed.cast(), layout(64));
    }
    assert_eq!(counter.live_bytes(), 0);
    assert_eq!(counter.totals().live_blocks(), 0);
    assert_eq!(
        *odd.calls.borrow(),
        [
            "allocate",
            "allocate",
            "allocate_zeroed",
            "grow",
            "grow_zeroed",
            "grow",
            "grow_zeroed",
            "shrink",
            "deallocate",
            "allocate_zeroed",
            "deallocate",
        ]
    );
}
