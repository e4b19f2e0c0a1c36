//! A counter that is charged from inside the global allocator, which it allocates from itself.
#![allow(missing_docs, reason = "an integration test")]
#![allow(unsafe_code, reason = "a global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use tally_alloc::{Batched, Counter};

static COUNTER: Counter<Batched> = Counter::with_mode();
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

struct Charging;

// SAFETY: forwards to `System`; counting neither unwinds nor touches a block.
unsafe impl GlobalAlloc for Charging {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), SeqCst);
        COUNTER.add(layout.size());
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        FREED.fetch_add(layout.size(), SeqCst);
        COUNTER.sub(layout.size());
        // SAFETY: the caller's obligations are the inner method's.
        unsafe { System.dealloc(block, layout) };
    }
}

#[global_allocator]
static GLOBAL: Charging = Charging;

// One test, and so one program: exact figures need every other thread to be still.
fn main() {
    for _ in 0..100 {
        let threads: Vec<_> = (0..8)
            .map(|i| thread::spawn(move || drop(black_box(vec![0_u8; 1_000 * i + 1]))))
            .collect();
        for thread in threads {
            thread.join().expect("the thread ends well");
        }
        let totals = COUNTER.totals();
        let truth = (ALLOCATED.load(SeqCst), FREED.load(SeqCst));
        assert_eq!((totals.bytes_allocated, totals.bytes_deallocated), truth);
    }
}
