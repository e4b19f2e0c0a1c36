//! Scopes: what this thread did, what all did, and the peak, in a stretch of the program.

use std::hint::black_box;
use std::mem;
use std::sync::Barrier;
use std::thread;

use tally_alloc::{Batched, Counter, Exact, Scope, Totals, assert_allocates, heap};

use super::{Noise, block};

/// A quarter of it is far above anything that the other tests of this program have live together, the symbols of
/// a backtrace included. Nobody writes to it.
const HUGE: usize = 1 << 30;

#[test]
fn a_scope_has_what_its_thread_did_and_nothing_else() {
    let _noise = [Noise::new(), Noise::new()];
    for _ in 0..100 {
        let scope = heap().scope();
        assert_eq!(scope.thread_totals(), Totals::default(), "nothing yet");
        let mut held = block(1_000);
        held.reserve_exact(1_500);
        let own = scope.thread_totals();
        assert_eq!((own.allocations, own.reallocations), (1, 1), "{own:?}");
        assert_eq!((own.bytes_allocated, own.net_bytes()), (1_500, 1_500));
        drop(held);
        assert_eq!(scope.thread_totals().net_bytes(), 0);
        assert_eq!(scope.thread_totals().deallocations, 1);
    }
}

#[test]
fn what_is_freed_in_a_scope_and_came_from_outside_is_below_zero() {
    let held = block(5_000);
    let ((), measured) = heap().measure(|| drop(held));
    let own = measured.thread_totals;
    assert_eq!((own.net_bytes(), own.net_blocks()), (-5_000, -1), "{own:?}");
}

#[test]
fn a_scope_of_the_process_has_what_other_threads_did() {
    const THREADS: usize = 4;
    let scope = heap().scope();
    let threads = [(); THREADS].map(|()| thread::spawn(|| drop(block(100_000))));
    for thread in threads {
        thread.join().expect("no panic");
    }
    let (own, all) = (scope.thread_totals(), scope.totals());
    assert!(all.bytes_allocated >= THREADS * 100_000, "{all:?}");
    assert!(all.bytes_deallocated >= THREADS * 100_000, "{all:?}");
    assert!(own.bytes_allocated < 100_000, "{own:?} of this thread");
}

#[test]
fn scopes_and_measuring_cost_the_scopes_around_them_nothing() {
    // More than the places of the first slab, so that memory for others is had on the way.
    assert_allocates!(nothing, {
        let scopes = [(); 40].map(|()| heap().scope());
        for scope in &scopes {
            assert_eq!(scope.measured().thread_totals, Totals::default());
        }
        let (seven, measured) = heap().measure(|| 7);
        assert_eq!(measured.thread_totals, Totals::default());
        assert_eq!(seven, 7);
    });
}

#[test]
fn a_peak_is_that_of_its_own_scope() {
    let outer = heap().scope();
    let before = heap().scope();
    drop(block(HUGE));
    let after = heap().scope();
    drop(block(HUGE / 4));
    let (within, last) = (heap().scope(), heap().peak_bytes());
    for (name, peak) in [
        ("outer", outer.peak_bytes()),
        ("opened before", before.peak_bytes()),
        ("the account's", last),
    ] {
        assert!(peak >= HUGE, "{name}: {peak}");
    }
    // Published is within the error bound, a few threads' thresholds, and other tests hold little.
    let (after, within) = (after.peak_bytes(), within.peak_bytes());
    assert!(after < HUGE, "opened after the block was freed: {after}");
    assert!(after >= HUGE / 4, "the smaller block: {after}");
    assert!(within < HUGE / 4, "opened last: {within}");
    heap().reset_peak();
    assert!(heap().peak_bytes() < HUGE, "the account's, reset");
    assert!(
        outer.peak_bytes() >= HUGE,
        "a reset is of the account's alone"
    );
}

#[test]
fn a_peak_is_never_below_a_live_figure_read_in_its_scope() {
    let _noise = [Noise::new(), Noise::new()];
    let barrier = Barrier::new(4);
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                barrier.wait();
                let whole = heap().scope();
                let mut most = 0;
                for _ in 0..2_000 {
                    let scope = heap().scope();
                    let held = block(20_000);
                    let live = heap().live_bytes();
                    most = most.max(live);
                    let (peak, all) = (scope.peak_bytes(), whole.peak_bytes());
                    drop(held);
                    assert!(peak >= live, "peak {peak} after {live} live");
                    assert!(all >= most, "peak {all} after {most} live");
                    assert!(whole.peak_bytes() >= all, "it went back from {all}");
                }
            });
        }
    });
}

#[test]
fn a_scope_that_is_forgotten_does_no_harm() {
    for _ in 0..100 {
        mem::forget(heap().scope());
    }
    let ((), measured) = heap().measure(|| drop(block(100_000)));
    assert_eq!(measured.thread_totals.bytes_allocated, 100_000);
}

#[test]
fn a_measured_panic_closes_its_scope_and_goes_on() {
    let unwound =
        std::panic::catch_unwind(|| heap().measure(|| black_box(None::<u8>).expect("panics")));
    assert!(unwound.is_err());
    let ((), measured) = heap().measure(|| drop(block(300)));
    assert_eq!(measured.thread_totals.bytes_allocated, 300);
}

#[test]
fn a_scope_in_a_thread_local_destructor_opens_and_closes() {
    struct Last(Option<Scope<'static>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let ((), measured) = heap().measure(|| drop(block(123)));
            assert_eq!(measured.thread_totals.bytes_allocated, 123);
            let since = self.0.take().expect("opened").thread_totals();
            assert!(since.bytes_allocated >= 1_123, "{since:?}");
        }
    }
    thread_local!(static LAST: std::cell::RefCell<Last> = const { std::cell::RefCell::new(Last(None)) });
    let thread = thread::spawn(|| {
        LAST.with_borrow_mut(|last| last.0 = Some(heap().scope()));
        drop(block(1_000));
    });
    // A panic in such a destructor ends the process.
    thread.join().expect("no panic");
}

#[test]
fn a_counter_has_scopes_of_its_own() {
    let _noise = Noise::new();
    let counter = Counter::<Exact>::with_mode();
    counter.add(1_000);
    let outer = counter.scope();
    counter.add(500);
    counter.sub(500);
    let ((), inner) = counter.measure(|| {
        counter.add(100);
        thread::scope(|threads| {
            threads
                .spawn(|| counter.sub(1_000))
                .join()
                .expect("no panic");
        });
    });
    assert_eq!(inner.thread_totals.net_bytes(), 100);
    assert_eq!(
        (inner.totals.net_bytes(), inner.totals.allocations),
        (-900, 1)
    );
    assert_eq!(inner.peak_bytes, 1_100, "in the inner scope");
    assert_eq!(outer.peak_bytes(), 1_500, "in the outer scope");
    counter.reset_peak();
    assert_eq!(counter.peak_bytes(), 100, "since the reset");
    assert_eq!(outer.peak_bytes(), 1_500, "the scope keeps its own");
}

#[test]
fn a_peak_is_within_the_error_bound_of_the_highest_live_bytes() {
    for threshold in [1, 100, 1_000, 100_000] {
        let counter = Counter::<Batched>::with_mode();
        counter.set_threshold(threshold).expect("below the maximum");
        counter.add(10_000);
        let scope = counter.scope();
        for _ in 0..50 {
            counter.add(60);
        }
        for _ in 0..100 {
            counter.sub(60);
        }
        let (peak, bound) = (scope.peak_bytes(), counter.error_bound());
        assert_eq!(bound, threshold - 1, "one thread");
        let off = peak.abs_diff(13_000);
        assert!(off <= bound, "peak {peak}, {off} off, under {threshold}");
    }
}
