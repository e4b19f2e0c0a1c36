//! `Switch`: a global allocator that counts the way it is told to at run time.
//!
//! # Equal dispatch
//!
//! Every method reads one pointer and jumps through it to the method of the way in force; the uncounted
//! way goes the same road. The pointer is written between runs only, so its line stays in every cache and
//! the jump is predicted. What this costs (three instructions an operation, and what inlining the fast
//! path would have saved) is in both halves of each ratio. It moves a ratio towards 1 by its share of the
//! time of an operation; the one-process-per-allocator harness has no dispatch and shows by how much.
//!
//! # Blocks that outlive a way
//!
//! All ways end in the same inner allocator, so a block may be freed under another way than the one it was
//! allocated under. The account is then off by that block, which no ratio looks at: what is read from it
//! are differences over one run, of counters that only grow.

#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use mimalloc::MiMalloc;
use tally_alloc::{Batched, Exact, TallyAlloc, heap};

use crate::adding::{Adding, OwnWord, SharedAtomic, Word};
use crate::pool;

/// How a run is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Not at all.
    Uncounted,
    /// Not at all, once more: what no difference looks like.
    Control,
    /// `TallyAlloc<_, Batched>` under a threshold, in bytes.
    Batched(usize),
    /// `TallyAlloc<_, Exact>`.
    Exact,
    /// One shared atomic.
    OneAtomic,
    /// A word of each thread's own.
    OwnWord,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncounted => f.write_str("uncounted"),
            Self::Control => f.write_str("control"),
            Self::Batched(bytes @ 0..1024) => write!(f, "batched {bytes} B"),
            Self::Batched(bytes) => write!(f, "batched {} KiB", bytes / 1024),
            Self::Exact => f.write_str("exact"),
            Self::OneAtomic => f.write_str("one atomic"),
            Self::OwnWord => f.write_str("own word"),
        }
    }
}

/// The four methods of an allocator without state.
struct Methods {
    alloc: unsafe fn(Layout) -> *mut u8,
    alloc_zeroed: unsafe fn(Layout) -> *mut u8,
    dealloc: unsafe fn(*mut u8, Layout),
    realloc: unsafe fn(*mut u8, Layout, usize) -> *mut u8,
}

/// An allocator whose values are all the same.
trait Stateless: GlobalAlloc + Sized {
    const IT: Self;
    const METHODS: &'static Methods = &Methods {
        // SAFETY: of each, the caller's obligations are those of the method called.
        alloc: |layout| unsafe { Self::IT.alloc(layout) },
        // SAFETY: as above.
        alloc_zeroed: |layout| unsafe { Self::IT.alloc_zeroed(layout) },
        // SAFETY: as above.
        dealloc: |block, layout| unsafe { Self::IT.dealloc(block, layout) },
        // SAFETY: as above.
        realloc: |block, layout, new_size| unsafe { Self::IT.realloc(block, layout, new_size) },
    };
}

impl Stateless for System {
    const IT: Self = Self;
}

impl Stateless for MiMalloc {
    const IT: Self = Self;
}

impl<A: Stateless, M> Stateless for TallyAlloc<A, M>
where
    Self: GlobalAlloc,
{
    const IT: Self = Self::new(A::IT);
}

impl<A: Stateless, W: Word> Stateless for Adding<A, W> {
    const IT: Self = Self::over(A::IT);
}

/// The ways over one inner allocator.
#[allow(private_bounds, reason = "sealed: the inner allocators there are")]
pub trait Inner: Stateless {}

impl Inner for System {}
impl Inner for MiMalloc {}

/// A global allocator over `A` that counts the way it was last told to; uncounted at first.
pub struct Switch<A> {
    methods: AtomicPtr<Methods>,
    inner: PhantomData<A>,
}

impl<A: Inner> Switch<A> {
    /// Returns the allocator, uncounted.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "made once, in a static")]
    pub const fn new() -> Self {
        Self {
            methods: AtomicPtr::new(ptr::from_ref(<A as Stateless>::METHODS).cast_mut()),
            inner: PhantomData,
        }
    }

    #[inline(always)]
    fn methods(&self) -> &'static Methods {
        // SAFETY: only ever set to one of the constants, which live for ever.
        unsafe { &*self.methods.load(Relaxed) }
    }
}

/// What the harness does with a [`Switch`], whatever is inside.
pub trait Switching: Sync {
    /// Counts `way` from now on. Called while no workload runs; the threads that are kept between runs
    /// are brought under the new threshold.
    fn count(&self, way: Way);
}

impl<A: Inner + Sync> Switching for Switch<A> {
    fn count(&self, way: Way) {
        let methods = match way {
            Way::Uncounted | Way::Control => <A as Stateless>::METHODS,
            Way::Batched(threshold) => {
                heap()
                    .set_threshold(threshold)
                    .expect("thresholds here are small");
                <TallyAlloc<A, Batched> as Stateless>::METHODS
            }
            Way::Exact => <TallyAlloc<A, Exact> as Stateless>::METHODS,
            Way::OneAtomic => <Adding<A, SharedAtomic> as Stateless>::METHODS,
            Way::OwnWord => <Adding<A, OwnWord> as Stateless>::METHODS,
        };
        self.methods
            .store(ptr::from_ref(methods).cast_mut(), Relaxed);
        pool::on_every_thread(|| {
            // A thread that comes from exact counting changes over with its next operation.
            drop(std::hint::black_box(Box::new(0_u8)));
            heap().flush();
        });
    }
}

impl<A> fmt::Debug for Switch<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").finish_non_exhaustive()
    }
}

// SAFETY: each method calls the same method of one of the allocators above with the same arguments. All of
// them forward to the same `A`, so a block may go back by another way than it came.
unsafe impl<A: Inner> GlobalAlloc for Switch<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the method's.
        unsafe { (self.methods().alloc)(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the method's.
        unsafe { (self.methods().alloc_zeroed)(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the method's.
        unsafe { (self.methods().dealloc)(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are the method's.
        unsafe { (self.methods().realloc)(block, layout, new_size) }
    }
}
