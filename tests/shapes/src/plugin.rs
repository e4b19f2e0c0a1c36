//! The library that `shapes load` loads: with an allocator of its own, or, with the feature `bare`, with none.

#![allow(
    unsafe_code,
    reason = "exports a function by name, calls the allocator, pthreads and fork"
)]

use std::ffi::{c_int, c_void};

use tally_alloc::heap;

/// Works, and returns 0 if this library's account is right. `host` is the address of the program's account.
#[unsafe(no_mangle)]
pub extern "C" fn shapes_run(host: *const c_void) -> c_int {
    if host.addr() == std::ptr::from_ref(heap()).addr() {
        return 1;
    }
    run()
}

#[cfg(feature = "bare")]
fn run() -> c_int {
    let text: String = (0..1000).map(|number| number.to_string()).collect();
    let counter = tally_alloc::Counter::new();
    counter.add(text.len());
    let counted = counter.totals().live_bytes() == text.len();
    let nothing = heap().totals() == tally_alloc::Totals::default() && !heap().is_installed();
    if counted && nothing { 0 } else { 2 }
}

#[cfg(not(feature = "bare"))]
use installed::run;

#[cfg(not(feature = "bare"))]
mod installed {
    use std::alloc::System;
    use std::cell::RefCell;
    use std::ffi::c_int;
    use std::thread;

    use tally_alloc::{TallyAlloc, heap};

    #[global_allocator]
    static GLOBAL: TallyAlloc = TallyAlloc::new(System);

    thread_local! {
        static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn run() -> c_int {
        let before = heap().thread_totals();
        drop(std::hint::black_box(vec![1_u8; 20_000]));
        let mine = heap().thread_totals() - before;
        for _ in 0..4 {
            let worker = thread::spawn(|| {
                for size in 1..1000 {
                    KEPT.with_borrow_mut(|kept| kept.push(vec![1_u8; size]));
                }
            });
            if worker.join().is_err() {
                return 3;
            }
        }
        let counted = mine.bytes_allocated == 20_000 && mine.net_bytes() == 0;
        let within =
            heap().live_bytes().abs_diff(heap().totals().live_bytes()) <= heap().error_bound();
        if counted && within && heap().is_installed() {
            0
        } else {
            2
        }
    }
}
