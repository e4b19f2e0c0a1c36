//! The four allocator methods in both modes, as symbols a linker can start from, over an inner allocator
//! that is nothing but undefined symbols. `tests/reachable.rs` links them and says why.

#![allow(unsafe_code, reason = "GlobalAlloc, and symbols with fixed names")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::Mutex;

use tally_alloc::{Batched, Exact, TallyAlloc};

unsafe extern "Rust" {
    fn inner_alloc(layout: Layout) -> *mut u8;
    fn inner_alloc_zeroed(layout: Layout) -> *mut u8;
    fn inner_dealloc(block: *mut u8, layout: Layout);
    fn inner_realloc(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8;
}

/// See the module.
pub struct Inner;

// SAFETY: never run, only linked.
unsafe impl GlobalAlloc for Inner {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: never run.
        unsafe { inner_alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: never run.
        unsafe { inner_alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: never run.
        unsafe { inner_dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: never run.
        unsafe { inner_realloc(block, layout, new_size) }
    }
}

macro_rules! roots {
    ($mode:ty: $alloc:ident, $alloc_zeroed:ident, $dealloc:ident, $realloc:ident) => {
        /// A root.
        ///
        /// # Safety
        ///
        /// Never run.
        #[unsafe(no_mangle)]
        pub unsafe fn $alloc(allocator: &TallyAlloc<Inner, $mode>, layout: Layout) -> *mut u8 {
            // SAFETY: never run.
            unsafe { allocator.alloc(layout) }
        }

        /// A root.
        ///
        /// # Safety
        ///
        /// Never run.
        #[unsafe(no_mangle)]
        pub unsafe fn $alloc_zeroed(
            allocator: &TallyAlloc<Inner, $mode>,
            layout: Layout,
        ) -> *mut u8 {
            // SAFETY: never run.
            unsafe { allocator.alloc_zeroed(layout) }
        }

        /// A root.
        ///
        /// # Safety
        ///
        /// Never run.
        #[unsafe(no_mangle)]
        pub unsafe fn $dealloc(
            allocator: &TallyAlloc<Inner, $mode>,
            block: *mut u8,
            layout: Layout,
        ) {
            // SAFETY: never run.
            unsafe { allocator.dealloc(block, layout) }
        }

        /// A root.
        ///
        /// # Safety
        ///
        /// Never run.
        #[unsafe(no_mangle)]
        pub unsafe fn $realloc(
            allocator: &TallyAlloc<Inner, $mode>,
            block: *mut u8,
            layout: Layout,
            new_size: usize,
        ) -> *mut u8 {
            // SAFETY: never run.
            unsafe { allocator.realloc(block, layout, new_size) }
        }
    };
}

roots!(Batched: batched_alloc, batched_alloc_zeroed, batched_dealloc, batched_realloc);
roots!(Exact: exact_alloc, exact_alloc_zeroed, exact_dealloc, exact_realloc);

/// A root from which a panic can be reached.
#[unsafe(no_mangle)]
pub fn control_panics(numbers: &[u8], index: usize) -> u8 {
    numbers[index]
}

/// A root from which a lock can be reached.
#[unsafe(no_mangle)]
pub fn control_locks(number: &Mutex<u8>) -> bool {
    number.lock().is_ok()
}

/// A root from which an allocation can be reached.
#[unsafe(no_mangle)]
pub fn control_allocates() -> Box<u64> {
    Box::new(std::hint::black_box(1))
}

struct Noted;

impl Drop for Noted {
    fn drop(&mut self) {
        std::hint::black_box(self);
    }
}

thread_local! {
    static NOTED: Noted = const { Noted };
}

/// A root from which the registration of a thread-local's destructor can be reached.
#[unsafe(no_mangle)]
pub fn control_registers() -> bool {
    NOTED.try_with(|_| ()).is_ok()
}
