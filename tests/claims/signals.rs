//! A signal handler may read: wherever in an operation it has interrupted its thread, each reading returns, allocates
//! nothing, and is as good as any other thread's. What the handler may not do, it does not do here.

use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, OnceLock};

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Counter, Measure, Totals, Trigger, heap};

use super::assert_exact;
use crate::support::block::Block;
use crate::support::pthread::{ROOMY, on_pthreads};
use crate::support::{Numbers, allow, claims};

claims![
    a_handler_that_interrupts_an_operation_reads_what_is_true,
    a_handler_that_interrupts_the_first_operation_of_a_thread_reads_what_is_true,
    a_handler_that_interrupts_a_counter_reads_what_is_true,
    a_timer_that_interrupts_whatever_runs_disturbs_nothing,
];

/// Bytes and blocks that are live as long as a claim runs.
const HELD: usize = 1 << 20;

/// What a thread has at most live at a time beside that, with what an operation may be about to add.
const AT_MOST: usize = 200_000;

/// How often a handler is called in a claim, at least, unless `TALLY_ALLOC_SIGNALS` says otherwise.
const CALLS: usize = 2000;

static HANDLED: AtomicUsize = AtomicUsize::new(0);

/// The number of the first thing that a handler found wrong, 0 if none.
static WRONG: AtomicUsize = AtomicUsize::new(0);

/// How many threads work, so that no more than so many times [`AT_MOST`] is live.
static THREADS: AtomicUsize = AtomicUsize::new(0);

static COUNTER: Counter = Counter::new();

/// One that is never due, for the handler to read.
static TRIGGER: OnceLock<Trigger<'static, FixedLimit>> = OnceLock::new();

fn calls() -> usize {
    let calls = std::env::var("TALLY_ALLOC_SIGNALS");
    let calls = calls.map_or(CALLS, |text| text.parse().expect("a number"));
    allow(u32::try_from(calls.div_ceil(CALLS)).expect("fewer calls"));
    calls
}

fn check(number: usize, holds: bool) {
    if !holds {
        let _first = WRONG.compare_exchange(0, number, SeqCst, SeqCst);
    }
}

fn none_goes_back(number: usize, earlier: &Totals, later: &Totals) {
    let goes_back = |earlier: usize, later: usize| later.wrapping_sub(earlier).cast_signed() < 0;
    check(
        number,
        !goes_back(earlier.bytes_allocated, later.bytes_allocated)
            && !goes_back(earlier.bytes_deallocated, later.bytes_deallocated)
            && !goes_back(earlier.allocations, later.allocations)
            && !goes_back(earlier.deallocations, later.deallocations)
            && !goes_back(earlier.reallocations, later.reallocations),
    );
}

/// Everything that the docs permit.
extern "C" fn read(_: c_int) {
    let own = heap().thread_totals();
    let first = heap().totals();
    let live = heap().live_bytes();
    let second = heap().totals();
    none_goes_back(1, &first, &second);
    let most = HELD + THREADS.load(SeqCst) * AT_MOST;
    for totals in [&first, &second] {
        // What others free meanwhile comes on top, however much that is.
        check(2, totals.net_bytes() >= HELD.cast_signed());
        check(3, totals.net_blocks() > 0);
        // The account has what this thread has done.
        check(4, totals.bytes_allocated >= own.bytes_allocated);
        check(5, totals.deallocations >= own.deallocations);
    }
    // Threads that come and go move the bound between two readings; there are no more than these.
    let widest = (THREADS.load(SeqCst) + 8) * heap().threshold();
    check(
        6,
        live.saturating_add(widest) >= HELD && live <= most + widest,
    );
    check(7, heap().error_bound() <= widest);
    check(8, heap().peak_bytes().saturating_add(widest) >= HELD);
    check(9, heap().is_installed() && heap().hard_limit().is_none());
    check(10, heap().shared_writes() < usize::MAX);
    let counted = COUNTER.totals();
    check(11, counted.net_bytes() >= 0 && counted.net_blocks() >= 0);
    check(
        12,
        COUNTER.thread_totals().allocations <= counted.allocations,
    );
    check(
        13,
        COUNTER.live_bytes() <= most + widest && COUNTER.peak_bytes() <= most + widest,
    );
    if let Some(trigger) = TRIGGER.get() {
        check(14, trigger.limit() == usize::MAX && !trigger.poll());
    }
    // Nothing of this was an operation of the thread.
    check(15, heap().thread_totals() == own);
    HANDLED.fetch_add(1, SeqCst);
}

fn handle(signal: c_int) {
    TRIGGER.get_or_init(|| {
        let never = FixedLimit::new(usize::MAX).expect("above zero");
        Trigger::new(heap(), Measure::LiveBytes, never).expect("there is memory")
    });
    let handler: extern "C" fn(c_int) = read;
    // SAFETY: all zero is an action without flags that blocks nothing.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is valid, and its handler does what handlers may.
    let set = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0, "sigaction");
}

fn assert_handled(at_least: usize) {
    let (handled, wrong) = (HANDLED.load(SeqCst), WRONG.load(SeqCst));
    assert_eq!(wrong, 0, "check {wrong} of the handler, in {handled} calls");
    assert!(handled >= at_least, "{handled} calls of the handler");
}

/// A thread's work: all four methods, of sizes on both sides of the threshold.
fn work(numbers: &mut Numbers) {
    let mut block = Block::new(numbers.within(1..20_000));
    assert!(block.resize(numbers.within(1..20_000)));
    drop(Block::zeroed(numbers.within(1..2000)));
    assert!(block.resize(numbers.within(1..20_000)));
}

/// Interrupts the thread that makes it, until dropped, wherever that is by then.
struct Timer(libc::timer_t);

// SAFETY: a timer may be deleted by any thread.
unsafe impl Send for Timer {}

impl Timer {
    /// Rings again and again. A period must leave the thread time for more than to handle it.
    fn every(microseconds: usize) -> Self {
        Self::new(microseconds, microseconds)
    }

    /// Rings once.
    fn after(microseconds: usize) -> Self {
        Self::new(microseconds, 0)
    }

    fn new(first: usize, then: usize) -> Self {
        // SAFETY: all zero is an event without a notification.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGUSR1;
        // SAFETY: asks who we are.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = std::ptr::null_mut();
        // SAFETY: both are valid, and the signal has a handler.
        let made =
            unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        assert_eq!(made, 0, "timer_create");
        let times = libc::itimerspec {
            it_interval: time(then),
            it_value: time(first),
        };
        // SAFETY: made above; the times are valid.
        let set = unsafe { libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut()) };
        assert_eq!(set, 0, "timer_settime");
        Self(timer)
    }
}

fn time(microseconds: usize) -> libc::timespec {
    libc::timespec {
        tv_sec: 0,
        tv_nsec: microseconds as libc::c_long * 1000,
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `every` and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Runs `work` on `threads` threads, again and again, under a timer each, until the handler has been called often enough.
fn interrupt(threads: usize, work: &(dyn Fn(usize) + Sync)) {
    let calls = calls();
    handle(libc::SIGUSR1);
    THREADS.store(threads, SeqCst);
    on_pthreads(threads, ROOMY, &|index| {
        // Periods that have little in common with each other or with what is done.
        let _timer = Timer::every(97 + 6 * index);
        while HANDLED.load(SeqCst) < calls && WRONG.load(SeqCst) == 0 {
            work(index);
        }
    });
    assert_handled(calls);
}

fn a_handler_that_interrupts_an_operation_reads_what_is_true() {
    let held = Block::new(HELD);
    interrupt(3, &|index| {
        let mut numbers = Numbers::from(index);
        (0..200).for_each(|_| work(&mut numbers));
    });
    drop(held);
    assert_exact();
}

fn a_handler_that_interrupts_the_first_operation_of_a_thread_reads_what_is_true() {
    const AT_ONCE: usize = 4;
    let calls = calls();
    handle(libc::SIGUSR1);
    THREADS.store(AT_ONCE, SeqCst);
    let held = Block::new(HELD);
    let last = [const { Mutex::new(None) }; AT_ONCE];
    let mut rounds = 0;
    while HANDLED.load(SeqCst) < calls && WRONG.load(SeqCst) == 0 {
        rounds += 1;
        on_pthreads(AT_ONCE, ROOMY, &|index| {
            // Before the thread has asked for anything: it rings while the thread comes by its shard, or a little later.
            let first = Timer::after(1 + (rounds + 7 * index) % 50);
            drop(Block::new(index + 9));
            drop(first);
            // And again while it hands the shard back.
            *last[index].lock().expect("no panic") =
                Some(Timer::after(1 + (rounds + 11 * index) % 50));
        });
        for timer in &last {
            drop(timer.lock().expect("no panic").take());
        }
    }
    assert_handled(calls);
    drop(held);
    assert_exact();
}

fn a_handler_that_interrupts_a_counter_reads_what_is_true() {
    let held = Block::new(HELD);
    interrupt(2, &|index| {
        let mut numbers = Numbers::from(index);
        for _ in 0..200 {
            let (size, resized) = (numbers.within(1..20_000), numbers.within(1..20_000));
            COUNTER.add(size);
            COUNTER.resize(size, resized);
            COUNTER.sub(resized);
        }
    });
    let totals = COUNTER.totals();
    assert_eq!((totals.net_bytes(), totals.net_blocks()), (0, 0));
    drop(held);
    assert_exact();
}

fn a_timer_that_interrupts_whatever_runs_disturbs_nothing() {
    handle(libc::SIGPROF);
    THREADS.store(4, SeqCst);
    let held = Block::new(HELD);
    let every = libc::timeval {
        tv_sec: 0,
        tv_usec: 100,
    };
    let timer = libc::itimerval {
        it_interval: every,
        it_value: every,
    };
    // SAFETY: the timer is valid; its signal has a handler.
    let set = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut()) };
    assert_eq!(set, 0, "setitimer");
    // The kernel's ticks are what limits how often it comes.
    let calls = calls() / 40;
    while HANDLED.load(SeqCst) < calls && WRONG.load(SeqCst) == 0 {
        on_pthreads(4, ROOMY, &|index| {
            let mut numbers = Numbers::from(index);
            (0..2000).for_each(|_| work(&mut numbers));
        });
    }
    let stopped = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
        it_value: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
    };
    // SAFETY: the timer is valid.
    let set =
        unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const stopped, std::ptr::null_mut()) };
    assert_eq!(set, 0, "setitimer");
    assert_handled(calls);
    drop(held);
    assert_exact();
}
