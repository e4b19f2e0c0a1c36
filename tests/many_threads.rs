//! Many threads alive at once: the error bound, the exact sum, the memory of their shards, a trigger, and the way back.
//!
//! A thousand, unless `TALLY_ALLOC_THREADS` says otherwise, and no more than the system lets us start. What it came to is
//! printed when the claim runs by itself, with what is measured and not asserted:
//!
//! ```sh
//! TALLY_ALLOC_CLAIM=many_threads::threads_at_once_are_counted_exactly_and_given_back TALLY_ALLOC_THREADS=10000 \
//!     cargo test --test many_threads
//! ```

#![allow(unsafe_code, reason = "starts threads by hand and asks for blocks")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::process::ExitCode;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use support::block::Block;
use support::claims;
use support::oracle::Oracle;
use tally_alloc::policy::FixedLimit;
use tally_alloc::{Batched, Measure, TallyAlloc, Totals, Trigger, heap};

#[global_allocator]
static GLOBAL: TallyAlloc<Oracle<System>, Batched> = TallyAlloc::new(Oracle::over(System));

claims![threads_at_once_are_counted_exactly_and_given_back];

fn main() -> ExitCode {
    support::run(CLAIMS, &[])
}

const THREADS: usize = 1000;

/// The least that a thread of a build without optimisation does with.
const STACK: usize = 64 * 1024;

/// What the docs promise of a shard at most, in bytes.
const SHARD: usize = 512;

/// The first block that a thread asks for. What the system's allocator keeps for it is there already.
const FIRST: usize = 24;

fn truth() -> Totals {
    GLOBAL.inner().totals()
}

/// The phases that all threads go through together.
struct Phases {
    /// The phase, and how many threads are done with it.
    state: Mutex<(usize, usize)>,
    /// Threads wait for the next phase, and the main thread for them.
    begun: Condvar,
    done: Condvar,
}

static PHASES: Phases = Phases {
    state: Mutex::new((0, 0)),
    begun: Condvar::new(),
    done: Condvar::new(),
};

impl Phases {
    /// Says that the calling thread is done with a phase, and waits for the next.
    fn done(&self) {
        let mut state = self.state.lock().expect("no panic");
        let phase = state.0;
        state.1 += 1;
        self.done.notify_one();
        while state.0 == phase {
            state = self.begun.wait(state).expect("no panic");
        }
    }

    /// Waits until `threads` are done with the present phase.
    fn wait_for(&self, threads: usize) {
        let mut state = self.state.lock().expect("no panic");
        while state.1 < threads {
            state = self.done.wait(state).expect("no panic");
        }
    }

    fn next(&self) {
        let mut state = self.state.lock().expect("no panic");
        *state = (state.0 + 1, 0);
        self.begun.notify_all();
    }
}

/// Bytes that each thread holds back: all that it may.
fn held_back() -> usize {
    heap().threshold() - 1
}

/// Where threads put a block for another to free.
static SEATS: [Mutex<Option<Block>>; 64] = [const { Mutex::new(None) }; 64];

static STARTED: AtomicUsize = AtomicUsize::new(0);

/// What one of the threads does. It asks the allocator for nothing but what stands here.
extern "C" fn work(_: *mut c_void) -> *mut c_void {
    let index = STARTED.fetch_add(1, SeqCst);
    prepare();
    PHASES.done();
    let first = Block::new(FIRST);
    PHASES.done();
    let rest = Block::new(held_back() - FIRST);
    PHASES.done();
    drop((first, rest));
    for round in 0..20 {
        let block = Block::new(100 * round + index % 100 + 1);
        let before = SEATS[(index + round) % SEATS.len()]
            .lock()
            .expect("no panic")
            .replace(block);
        drop(before);
    }
    PHASES.done();
    ptr::null_mut()
}

/// Has the pages of the thread's stack, and what the C library keeps for a thread, there before anything is counted.
fn prepare() {
    black_box([1_u8; 16 * 1024]);
    let layout = Layout::new::<[u8; FIRST]>();
    // SAFETY: the size is not zero.
    let block = black_box(unsafe { System.alloc(layout) });
    assert!(!block.is_null(), "memory");
    // SAFETY: from this allocator, with this layout.
    unsafe { System.dealloc(block, layout) };
}

/// Starts a thread; `None` when the system has none left.
fn start() -> Option<libc::pthread_t> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: valid for the write.
    let made = unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    assert_eq!(made, 0, "pthread_attr_init");
    // SAFETY: initialised above.
    let sized = unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK) };
    assert_eq!(sized, 0, "pthread_attr_setstacksize");
    let mut id = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: id and attributes are valid, the latter initialised; the thread is given nothing.
    let started = unsafe {
        libc::pthread_create(id.as_mut_ptr(), attributes.as_ptr(), work, ptr::null_mut())
    };
    // SAFETY: initialised above, used no more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // SAFETY: when it returned 0, pthread_create has written the id.
    (started == 0).then(|| unsafe { id.assume_init() })
}

/// The pages that the process has in memory, counted one by one, in bytes. 0 where the system does not tell.
fn resident() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let rss = rollup.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kilobytes = rss.and_then(|rss| rss.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// The least time that a sum took, of a number of them.
fn time_of_a_sum() -> Duration {
    let one = || {
        let begun = Instant::now();
        black_box(heap().totals());
        begun.elapsed()
    };
    (0..100).map(|_| one()).min().unwrap_or_default()
}

#[track_caller]
fn assert_exact() {
    assert_eq!(heap().totals(), truth(), "totals (left) and truth (right)");
}

fn threads_at_once_are_counted_exactly_and_given_back() {
    let wanted = std::env::var("TALLY_ALLOC_THREADS");
    let wanted = wanted.map_or(THREADS, |text| text.parse().expect("a number"));
    let mut ids = Vec::with_capacity(wanted);
    black_box(resident());
    let (bound_alone, live_alone) = (heap().error_bound(), heap().totals().live_bytes());
    let sum_alone = time_of_a_sum();
    ids.extend((0..wanted).map_while(|_| start()));
    let threads = ids.len();
    PHASES.wait_for(threads);
    assert_eq!(
        heap().error_bound(),
        bound_alone,
        "threads that have asked for nothing"
    );

    // Each takes a shard.
    let before = resident();
    PHASES.next();
    PHASES.wait_for(threads);
    let shards = resident().saturating_sub(before);
    assert_exact();
    assert!(
        shards <= threads * SHARD,
        "{shards} bytes more in memory for {threads} shards"
    );
    let bound = heap().error_bound();
    assert_eq!(bound, (threads + 1) * held_back(), "the error bound");

    // Each holds back as much as it may, above the limit of a trigger that nobody publishes to.
    let limit = truth().live_bytes() + (1 << 20);
    let policy = FixedLimit::new(limit).expect("above zero");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("there is memory");
    heap().flush();
    let published = heap().live_bytes();
    PHASES.next();
    PHASES.wait_for(threads);
    assert_exact();
    let live = truth().live_bytes();
    let off = live - heap().live_bytes();
    assert!(
        heap().live_bytes() <= published + held_back(),
        "nobody but this thread had anything to publish"
    );
    assert!(
        (threads * held_back()..=bound).contains(&off),
        "{off} bytes held back, the bound is {bound}"
    );
    // The next that publishes finds it due.
    let block = heap().threshold();
    let publishes = Block::new(block);
    assert!(trigger.poll(), "{live} bytes live, the limit is {limit}");
    let overshoot = truth().live_bytes() - limit;
    assert!(
        overshoot < 2 * bound + block,
        "{overshoot} bytes above the limit; the bound is {bound}, the block {block}"
    );
    drop(publishes);
    drop(trigger);
    let sum = time_of_a_sum();
    let listed = heap().threads().len();
    assert_eq!(listed, threads + 1, "a shard each, and one for this thread");

    // All work at the same time, and hand blocks over.
    let mut last = heap().totals();
    PHASES.next();
    for _ in 0..100 {
        let totals = heap().totals();
        let change = totals - last;
        assert!(totals.net_bytes() >= 0, "{totals:?}");
        assert!(
            change.bytes_allocated.cast_signed() >= 0 && change.deallocations.cast_signed() >= 0,
            "from {last:?} to {totals:?}"
        );
        last = totals;
    }
    PHASES.wait_for(threads);
    assert_exact();
    PHASES.next();
    for id in ids {
        // SAFETY: started above, joinable, and joined once.
        let joined = unsafe { libc::pthread_join(id, ptr::null_mut()) };
        assert_eq!(joined, 0, "pthread_join");
    }
    SEATS
        .iter()
        .for_each(|seat| drop(seat.lock().expect("no panic").take()));
    assert_exact();
    assert_eq!(
        heap().error_bound(),
        bound_alone,
        "the bound after the joins"
    );
    assert_eq!(heap().threads().len(), 1, "threads that are listed");
    let left = heap().totals().live_bytes();
    assert!(
        left <= live_alone,
        "{left} bytes live, {live_alone} at the start"
    );

    println!("{threads} threads of {wanted} at once, {listed} shards");
    println!(
        "their shards: {shards} bytes more in memory, {:.0} each",
        shards as f64 / threads as f64
    );
    println!("error bound: {bound} bytes; held back: {off}");
    println!("the trigger fired {overshoot} bytes above its limit");
    println!(
        "a sum, least of 100, as measured: {sum_alone:?} alone, {sum:?} with {listed} shards, {:.1} ns each",
        sum.as_nanos() as f64 / listed as f64
    );
}
