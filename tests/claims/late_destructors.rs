//! What a thread does while it is being torn down is counted: in destructors of thread-locals and of
//! pthread keys, before and after ours, on Rust threads and on others.

use std::alloc::{Layout, alloc};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use tally_alloc::heap;

use super::assert_exact;
use crate::support::block::Block;
use crate::support::claims;
use crate::support::pthread::{ROOMY, on_a_pthread, on_pthreads};

claims![
    a_block_freed_by_a_thread_local_that_was_touched_first_is_counted,
    the_late_frees_of_1000_foreign_threads_are_counted,
    the_late_frees_of_rust_threads_are_counted,
    a_destructor_that_allocates_resizes_and_frees_is_counted,
    destructors_that_set_each_other_off_are_counted,
    a_thread_whose_first_operation_is_in_a_destructor_is_counted,
    a_thread_whose_first_operation_is_in_a_key_destructor_is_counted,
    key_destructors_that_run_after_ours_are_counted,
    a_key_made_before_ours_that_comes_back_every_round_is_counted,
    reading_the_account_in_a_destructor_is_harmless,
    late_operations_leave_no_bound_behind,
    late_requests_that_are_refused_under_a_limit_lose_no_count,
];

/// Frees what it holds when the thread ends.
struct Holder(Cell<Option<Block>>);

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

thread_local! {
    static HOLDER: Holder = const { Holder(Cell::new(None)) };
}

fn touch_first_and_hold() {
    // Registers the destructor before the thread's first allocation.
    HOLDER.with(|_| ());
    HOLDER.with(|holder| holder.0.set(Some(Block::new(5000))));
}

fn a_block_freed_by_a_thread_local_that_was_touched_first_is_counted() {
    on_a_pthread(&|_| touch_first_and_hold());
    assert_exact();
}

fn the_late_frees_of_1000_foreign_threads_are_counted() {
    let start = heap().totals().live_bytes();
    for _ in 0..1000 {
        on_a_pthread(&|_| touch_first_and_hold());
    }
    assert_exact();
    assert_eq!(
        heap().totals().live_bytes(),
        start,
        "live is where it began"
    );
    for _ in 0..10 {
        on_pthreads(100, 64 * 1024, &|_| touch_first_and_hold());
    }
    assert_exact();
    assert_eq!(
        heap().totals().live_bytes(),
        start,
        "live is where it began"
    );
}

fn the_late_frees_of_rust_threads_are_counted() {
    for _ in 0..100 {
        thread::spawn(touch_first_and_hold).join().unwrap();
        assert_exact();
        thread::spawn(|| {
            let before = Block::new(20_000);
            touch_first_and_hold();
            drop(before);
        })
        .join()
        .unwrap();
        assert_exact();
    }
}

/// Works on when the thread ends.
struct Busy(Cell<usize>);

impl Drop for Busy {
    fn drop(&mut self) {
        for round in 1..=self.0.get() {
            let mut block = Block::zeroed(100 * round);
            assert!(block.resize(40_000));
            assert!(block.resize(10));
            let text = format!("{round} and {}", "more ".repeat(round));
            assert!(text.len() > round);
            if round % 3 == 0 {
                std::mem::forget(block);
            }
        }
    }
}

thread_local! {
    static BUSY: Busy = const { Busy(Cell::new(0)) };
    static BUSY_LATER: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

fn a_destructor_that_allocates_resizes_and_frees_is_counted() {
    for rounds in [1, 10, 100] {
        on_pthreads(20, ROOMY, &|_| BUSY.with(|busy| busy.0.set(rounds)));
        assert_exact();
        thread::spawn(move || BUSY.with(|busy| busy.0.set(rounds)))
            .join()
            .unwrap();
        assert_exact();
    }
}

/// Touches thread-locals whose destructors then run after its own.
struct SetsOff;

impl Drop for SetsOff {
    fn drop(&mut self) {
        BUSY.with(|busy| busy.0.set(5));
        BUSY_LATER.with(|later| later.borrow_mut().push(Block::new(700)));
        touch_first_and_hold();
    }
}

thread_local! {
    static SETS_OFF: SetsOff = const { SetsOff };
}

fn destructors_that_set_each_other_off_are_counted() {
    on_pthreads(20, ROOMY, &|_| SETS_OFF.with(|_| ()));
    assert_exact();
    thread::spawn(|| SETS_OFF.with(|_| ())).join().unwrap();
    assert_exact();
}

fn a_thread_whose_first_operation_is_in_a_destructor_is_counted() {
    let start = heap().error_bound();
    // `SetsOff` owns nothing: until its destructor runs the thread has asked for nothing.
    on_pthreads(100, ROOMY, &|_| SETS_OFF.with(|_| ()));
    assert_exact();
    assert_eq!(
        heap().error_bound(),
        start,
        "such threads leave no bound behind"
    );
}

/// Makes a key whose destructor is `ended`.
fn key(ended: unsafe extern "C" fn(*mut c_void)) -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: valid for the write; the destructor has the signature asked for.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) };
    assert_eq!(made, 0, "pthread_key_create");
    key
}

/// Sets the calling thread's value of `key` to a number that the destructor is given.
fn set(key: libc::pthread_key_t, value: usize) {
    // SAFETY: `key` made it; the value is only a number.
    let set = unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(value)) };
    assert_eq!(set, 0, "pthread_setspecific");
}

static KEY: AtomicUsize = AtomicUsize::new(0);
static KEY_ROUNDS: AtomicUsize = AtomicUsize::new(0);

/// Allocates, frees and keeps, and comes back until its number is 1: at most four rounds, says POSIX.
unsafe extern "C" fn work_and_come_back(left: *mut c_void) {
    KEY_ROUNDS.fetch_add(1, SeqCst);
    let mut block = Block::new(2000);
    assert!(block.resize(30_000));
    drop(block);
    std::mem::forget(Block::new(11));
    if left.addr() > 1 {
        set(KEY.load(SeqCst) as libc::pthread_key_t, left.addr() - 1);
    }
}

fn work_in_key_destructors(threads: usize, rounds: usize, first: impl Fn() + Sync) {
    KEY_ROUNDS.store(0, SeqCst);
    on_pthreads(threads, ROOMY, &|_| {
        first();
        set(KEY.load(SeqCst) as libc::pthread_key_t, rounds);
    });
    assert_eq!(
        KEY_ROUNDS.load(SeqCst),
        threads * rounds,
        "destructors that ran"
    );
    assert_exact();
}

fn a_thread_whose_first_operation_is_in_a_key_destructor_is_counted() {
    KEY.store(key(work_and_come_back) as usize, SeqCst);
    for rounds in 1..=4 {
        work_in_key_destructors(50, rounds, || ());
    }
}

fn key_destructors_that_run_after_ours_are_counted() {
    // The allocator has made its key already, since this program has allocated, and keys are seen to in
    // the order of their numbers; of ours one that is used in the first round comes after it.
    std::hint::black_box(Box::new(0));
    KEY.store(key(work_and_come_back) as usize, SeqCst);
    for rounds in 1..=4 {
        work_in_key_destructors(50, rounds, || drop(Block::new(100)));
    }
}

fn a_key_made_before_ours_that_comes_back_every_round_is_counted() {
    // Ours took some number before `main`. Of a thousand keys some are above it whatever it was; those
    // beyond the first 32 are kept elsewhere by glibc, which allocates for them.
    let keys: Vec<libc::pthread_key_t> = (0..200).map(|_| key(work_and_come_back)).collect();
    for key in keys.iter().step_by(19) {
        KEY.store(*key as usize, SeqCst);
        work_in_key_destructors(10, 4, || drop(Block::new(100)));
        work_in_key_destructors(10, 4, || ());
    }
}

struct Reads;

impl Drop for Reads {
    fn drop(&mut self) {
        let own = heap().thread_totals();
        assert!(own.allocations <= heap().totals().allocations);
        // Other threads reset the peak at the same time, so neither need be above the other.
        black_box((heap().live_bytes(), heap().peak_bytes()));
        heap().flush();
        heap().reset_peak();
        assert!(format!("{:?}", heap()).len() > 10);
    }
}

thread_local! {
    static READS: Reads = const { Reads };
}

unsafe extern "C" fn read_at_the_end(_: *mut c_void) {
    drop(Reads);
}

fn reading_the_account_in_a_destructor_is_harmless() {
    let key = key(read_at_the_end);
    on_pthreads(20, ROOMY, &|_| {
        READS.with(|_| ());
        set(key, 1);
    });
    on_pthreads(20, ROOMY, &|_| {
        drop(Block::new(10));
        READS.with(|_| ());
        set(key, 1);
    });
    assert_exact();
}

fn late_operations_leave_no_bound_behind() {
    let start = heap().error_bound();
    KEY.store(key(work_and_come_back) as usize, SeqCst);
    for _ in 0..20 {
        work_in_key_destructors(20, 4, touch_first_and_hold);
        assert_eq!(heap().error_bound(), start, "the bound after the joins");
    }
}

unsafe extern "C" fn ask_in_vain(_: *mut c_void) {
    let huge = Layout::from_size_align(isize::MAX as usize - 64, 8).expect("within the range");
    for _ in 0..8 {
        // SAFETY: the size is not zero.
        let block = black_box(unsafe { alloc(huge) });
        assert!(block.is_null(), "more than there is");
        // The numbers by which a request did not fit must not add up to room.
        drop(Block::new(100));
    }
}

fn late_requests_that_are_refused_under_a_limit_lose_no_count() {
    drop(Block::new(1));
    heap()
        .set_hard_limit(usize::MAX - 1)
        .expect("above what is live");
    let key = key(ask_in_vain);
    on_pthreads(4, ROOMY, &|_| {
        drop(Block::new(100));
        set(key, 1);
    });
    heap().clear_hard_limit();
    assert_exact();
}
