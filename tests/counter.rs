//! What a counter promises about threads that come, go and hand blocks to each other.
#![allow(missing_docs, reason = "an integration test")]
#![allow(unsafe_code, reason = "starts threads through the C library")]

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Barrier, mpsc};
use std::thread;

use tally_alloc::{Batched, Counter, Exact, Mode};

const THRESHOLD: usize = 16 * 1024;

fn counter<M: Mode>() -> Counter<M> {
    Counter::with_mode()
}

#[test]
fn a_static_counter_in_either_mode_needs_no_code_to_make() {
    static DEFAULT: Counter = Counter::new();
    static IN_BATCHES: Counter<Batched> = Counter::with_mode();
    static EXACT: Counter<Exact> = Counter::with_mode();
    DEFAULT.add(1);
    IN_BATCHES.add(2);
    EXACT.add(3);
    assert_eq!(DEFAULT.totals().live_bytes(), 1);
    assert_eq!(IN_BATCHES.totals().live_bytes(), 2);
    assert_eq!(EXACT.live_bytes(), 3);
}

#[test]
fn operations_of_no_bytes_are_counted_as_blocks() {
    fn check<M: Mode>() {
        let counter = counter::<M>();
        counter.add(0);
        counter.resize(0, 0);
        counter.add(0);
        counter.sub(0);
        let totals = counter.totals();
        assert_eq!(
            (
                totals.allocations,
                totals.deallocations,
                totals.reallocations
            ),
            (2, 1, 1)
        );
        assert_eq!(totals.live_bytes(), 0);
    }
    check::<Batched>();
    check::<Exact>();
}

#[test]
fn exact_counting_shows_every_operation_at_once_and_needs_no_bound() {
    let counter = counter::<Exact>();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for bytes in 0..10_000 {
                    counter.add(bytes % 100);
                }
            });
        }
    });
    let live = 4 * 100 * (99 * 100 / 2);
    assert_eq!(counter.live_bytes(), live);
    assert_eq!(counter.error_bound(), 0);
    assert_eq!(counter.totals().live_bytes(), live);
    assert_eq!(counter.peak_bytes(), live);
    counter.resize(1_000, 10);
    assert_eq!(counter.live_bytes(), live - 990);
    assert_eq!(counter.shared_writes(), 40_001);
}

#[test]
fn a_block_too_large_for_any_room_is_published_at_once_whatever_is_pending() {
    let counter = counter::<Batched>();
    counter.add(THRESHOLD);
    assert_eq!(counter.live_bytes(), THRESHOLD, "nothing was pending");
    counter.sub(100);
    counter.add(2 * THRESHOLD);
    assert_eq!(counter.live_bytes(), 3 * THRESHOLD - 100);
    assert_eq!(counter.peak_bytes(), 3 * THRESHOLD - 100);
}

#[test]
fn a_balanced_loop_hardly_writes_to_the_shared_line() {
    let counter = counter::<Batched>();
    for _ in 0..100_000 {
        counter.add(black_box(64));
        counter.sub(black_box(64));
    }
    let writes = counter.shared_writes();
    assert!(writes <= 1, "{writes} writes in 100,000 balanced pairs");
}

#[test]
fn threads_that_only_add_only_take_off_or_only_resize_lose_nothing_when_they_end() {
    let counter = counter::<Batched>();
    for _ in 0..200 {
        thread::scope(|scope| {
            scope.spawn(|| counter.add(7_000));
        });
        thread::scope(|scope| {
            scope.spawn(|| counter.resize(7_000, 9_000));
        });
        let totals = counter.totals();
        assert_eq!((totals.live_bytes(), totals.live_blocks()), (9_000, 1));
        thread::scope(|scope| {
            scope.spawn(|| counter.sub(9_000));
        });
        assert_eq!(counter.totals().live_bytes(), 0);
        let (live, bound) = (counter.live_bytes(), counter.error_bound());
        assert!(
            live <= bound,
            "{live} published with nothing live, bound {bound}"
        );
    }
    let totals = counter.totals();
    assert_eq!(totals.allocations, 200);
    assert_eq!(totals.deallocations, 200);
    assert_eq!(totals.reallocations, 200);
}

#[test]
fn ten_thousand_threads_one_after_another_need_no_more_places_than_one() {
    let counter = counter::<Batched>();
    for _ in 0..10_000 {
        let counter = &counter;
        thread::scope(|scope| {
            let _ = scope.spawn(move || counter.add(3)).join();
        });
    }
    assert_eq!(counter.totals().live_bytes(), 30_000);
    // Other tests of this file run at the same time and take numbers too, hence not exactly one.
    let places = counter.error_bound() / (THRESHOLD - 1);
    assert!(places <= 64, "{places} places for one thread at a time");
}

#[test]
fn parked_threads_are_inside_the_bound_and_a_flush_in_each_closes_the_gap() {
    const THREADS: usize = 64;
    const PENDING: usize = THRESHOLD - 1;
    let counter = counter::<Batched>();
    let barrier = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                counter.add(PENDING);
                barrier.wait();
                barrier.wait();
                counter.flush();
            });
        }
        barrier.wait();
        let truth = THREADS * PENDING;
        let (live, bound) = (counter.live_bytes(), counter.error_bound());
        assert_eq!(live, 0, "a byte below the threshold is not published");
        assert_eq!(bound, THREADS * (THRESHOLD - 1));
        assert!(
            live.abs_diff(truth) <= bound,
            "{live} published, {truth} true, bound {bound}"
        );
        assert_eq!(counter.totals().live_bytes(), truth);
        barrier.wait();
    });
    assert_eq!(counter.live_bytes(), THREADS * PENDING);
}

#[test]
fn blocks_that_another_thread_takes_off_are_exact_and_never_seen_before_they_were_added() {
    fn check<M: Mode>() {
        let counter = counter::<M>();
        let done = AtomicBool::new(false);
        let (sender, receiver) = mpsc::sync_channel::<usize>(64);
        let mut sums = 0;
        thread::scope(|scope| {
            let (counter, done) = (&counter, &done);
            scope.spawn(move || {
                for i in 0..200_000 {
                    counter.add(i % 500);
                    sender.send(i % 500).expect("the receiver waits");
                }
            });
            scope.spawn(move || {
                for bytes in receiver {
                    counter.sub(bytes);
                }
                done.store(true, Relaxed);
            });
            let mut before = counter.totals();
            while !done.load(Relaxed) {
                let now = counter.totals();
                assert!(now.net_bytes() >= 0, "{now:?}");
                assert!(now.net_blocks() >= 0, "{now:?}");
                assert!(
                    now.bytes_allocated >= before.bytes_allocated
                        && now.bytes_deallocated >= before.bytes_deallocated,
                    "{now:?} after {before:?}"
                );
                before = now;
                sums += 1;
            }
        });
        let totals = counter.totals();
        assert_eq!(
            (totals.live_bytes(), totals.live_blocks()),
            (0, 0),
            "{sums} sums taken"
        );
        assert_eq!(totals.allocations, 200_000);
    }
    check::<Batched>();
    check::<Exact>();
}

#[test]
fn thousands_of_counters_keep_their_figures_apart() {
    let counters: Vec<Counter> = (0..2_000).map(|_| Counter::new()).collect();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 1..=10 {
                    for (i, counter) in counters.iter().enumerate() {
                        counter.add(i * round);
                    }
                }
            });
        }
    });
    for (i, counter) in counters.iter().enumerate() {
        assert_eq!(counter.totals().live_bytes(), 2 * 55 * i, "counter {i}");
    }
}

#[test]
fn taking_off_more_than_was_added_shows_as_nothing_live_and_not_as_a_huge_figure() {
    let counter = counter::<Exact>();
    counter.sub(1_000);
    assert_eq!(counter.live_bytes(), 0);
    assert_eq!(counter.peak_bytes(), 0);
    assert_eq!(counter.totals().net_bytes(), -1_000);
    counter.add(1_500);
    assert_eq!(counter.live_bytes(), 500);
}

#[test]
fn sizes_no_block_can_have_do_not_break_the_bound() {
    let counter = counter::<Batched>();
    for _ in 0..1_000 {
        // −1000, modulo the width: unseen, it would use up the other direction's room.
        counter.add(0_usize.wrapping_sub(1_000));
        assert_eq!(counter.shared_writes(), counter.totals().allocations);
    }
    assert_eq!(counter.totals().net_bytes(), -1_000_000);
}

#[test]
fn a_reset_peak_goes_on_from_what_is_live() {
    let counter = counter::<Exact>();
    counter.add(500);
    counter.sub(400);
    assert_eq!(counter.peak_bytes(), 500);
    counter.reset_peak();
    assert_eq!(counter.peak_bytes(), 100);
}

#[cfg(unix)]
mod ending_threads {
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::ptr;
    use std::sync::OnceLock;

    use thread_local::ThreadLocal;

    use super::*;

    static COUNTER: Counter<Batched> = Counter::with_mode();
    static ANOTHER: Counter<Batched> = Counter::with_mode();
    static EXACT: Counter<Exact> = Counter::with_mode();

    /// Counts in its destructor what it was given.
    struct Dying(Cell<usize>);

    impl Drop for Dying {
        fn drop(&mut self) {
            let bytes = self.0.get();
            COUNTER.sub(bytes);
            // This one the thread had not used before.
            ANOTHER.sub(bytes);
            ANOTHER.resize(bytes, 2 * bytes);
            EXACT.sub(bytes);
            assert_eq!(ANOTHER.thread_totals(), Default::default());
            ANOTHER.flush();
        }
    }

    thread_local! {
        static DYING: Dying = const { Dying(Cell::new(0)) };
    }

    fn key() -> libc::pthread_key_t {
        extern "C" fn destroy(_value: *mut c_void) {
            // Runs after every thread-local destructor.
            COUNTER.add(5);
            COUNTER.sub(2);
            EXACT.add(3);
        }
        static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
        *KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: `key` is valid for the write and `destroy` has the signature asked for.
            let made = unsafe { libc::pthread_key_create(&raw mut key, Some(destroy)) };
            assert_eq!(made, 0, "pthread_key_create");
            key
        })
    }

    fn arm_key() {
        // SAFETY: the key was made by `pthread_key_create` and is never deleted.
        let set = unsafe { libc::pthread_setspecific(key(), ptr::dangling()) };
        assert_eq!(set, 0, "pthread_setspecific");
    }

    fn run(body: extern "C" fn(*mut c_void) -> *mut c_void) {
        let mut thread = 0;
        // SAFETY: `thread` is valid for the write, no attributes are asked for, and `body` ignores
        // the null it is given.
        let made =
            unsafe { libc::pthread_create(&raw mut thread, ptr::null(), body, ptr::null_mut()) };
        assert_eq!(made, 0, "pthread_create");
        // SAFETY: made above, joined once.
        let joined = unsafe { libc::pthread_join(thread, ptr::null_mut()) };
        assert_eq!(joined, 0, "pthread_join");
    }

    extern "C" fn counts_and_dies(_: *mut c_void) -> *mut c_void {
        // Registered before anything a counter may register, so destroyed after it.
        DYING.with(|dying| dying.0.set(10));
        arm_key();
        COUNTER.add(10);
        ptr::null_mut()
    }

    extern "C" fn counts_only_when_it_dies(_: *mut c_void) -> *mut c_void {
        static OF_SOMEBODY_ELSE: ThreadLocal<()> = ThreadLocal::new();
        DYING.with(|dying| dying.0.set(10));
        OF_SOMEBODY_ELSE.get_or(|| ());
        ptr::null_mut()
    }

    #[test]
    fn what_foreign_threads_count_in_their_last_destructors_is_exact_and_published() {
        for round in 1..=200 {
            run(counts_and_dies);
            assert_eq!(COUNTER.totals().net_bytes(), 3 * round);
            assert_eq!(COUNTER.totals().net_blocks(), 0);
            assert_eq!(ANOTHER.totals().net_bytes(), 0);
            assert_eq!(EXACT.totals().net_bytes(), -7 * round);
        }
        assert_eq!(ANOTHER.error_bound(), 0, "nobody had a place in it");
        let (live, bound) = (COUNTER.live_bytes(), COUNTER.error_bound());
        assert!(
            live.abs_diff(600) <= bound,
            "{live} published, 600 true, bound {bound}"
        );

        for _ in 0..3 {
            run(counts_only_when_it_dies);
        }
        assert_eq!(COUNTER.totals().net_bytes(), 600 - 30);
        assert_eq!(EXACT.totals().net_bytes(), -1_400 - 30);
    }
}
