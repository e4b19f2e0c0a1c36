//! Threads that wait for a trigger are woken, one for each crossing.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use tally_alloc::policy::{Cycle, Policy};
use tally_alloc::{Measure, Trigger, heap};

use super::{KB, MB, NO_TIME, Step, live, truth};
use crate::support::block::Block;
use crate::support::claims;

claims![
    each_crossing_wakes_one_of_several_waiters,
    a_waiter_wakes_though_others_poll,
    a_wait_with_a_timeout_comes_back_without_a_crossing,
    a_waiter_takes_over_when_the_one_before_it_gives_up,
    a_collector_thread_that_allocates_is_counted_once,
];

fn step(first: usize, step: usize) -> Trigger<'static, Step> {
    Trigger::new(heap(), Measure::LiveBytes, Step { first, step }).expect("memory")
}

/// The same limit whatever is live, so that there is always another crossing.
struct Constant(usize);

impl Policy for Constant {
    fn initial_limit(&self) -> usize {
        self.0
    }

    fn next_limit(&mut self, _: &Cycle) -> usize {
        self.0
    }
}

/// Waits, without the heap, until `until` holds.
fn spin(until: impl Fn() -> bool) {
    while !until() {
        thread::yield_now();
    }
}

fn each_crossing_wakes_one_of_several_waiters() {
    const ROUNDS: usize = 100;
    const WAITERS: usize = 4;
    let trigger = step(live() + MB, MB);
    let woken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| {
                loop {
                    trigger.wait();
                    let n = woken.fetch_add(1, SeqCst);
                    trigger.collected(NO_TIME);
                    if n >= ROUNDS {
                        break;
                    }
                }
            });
        }
        let mut held = Vec::with_capacity(ROUNDS + WAITERS);
        // The last rounds end the waiters, one each.
        for round in 0..ROUNDS + WAITERS {
            held.push(Block::new(3 * MB));
            spin(|| trigger.report().cycles > round as u64);
            assert_eq!(woken.load(SeqCst), round + 1, "woken in round {round}");
        }
    });
    assert_eq!(trigger.report().cycles as usize, woken.into_inner());
}

/// A waiter, and a thread that polls: whoever takes a crossing, both see the last one through. Had a wake-up
/// been lost, the waiter would sleep for ever on a trigger that is due.
fn a_waiter_wakes_though_others_poll() {
    const CROSSINGS: usize = 2_000;
    let policy = Constant(live() + 200 * KB);
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for waits in [true, true, false, false] {
            let (trigger, taken) = (&trigger, &taken);
            scope.spawn(move || {
                let mut held = Vec::with_capacity(16);
                while taken.load(SeqCst) < CROSSINGS {
                    // A waiter comes back now and then, to see whether it is all over.
                    let won = if waits {
                        trigger.wait_timeout(Duration::from_millis(50))
                    } else {
                        held.push(Block::new(20 * KB));
                        trigger.poll()
                    };
                    if won {
                        taken.fetch_add(1, SeqCst);
                        trigger.collected(NO_TIME);
                    }
                    if held.len() == 16 {
                        held.clear();
                    }
                }
            });
        }
    });
    let (cycles, taken) = (trigger.report().cycles as usize, taken.into_inner());
    assert_eq!(cycles, taken, "cycles and crossings taken");
}

fn a_wait_with_a_timeout_comes_back_without_a_crossing() {
    let trigger = step(live() + MB, MB);
    assert!(!trigger.wait_timeout(Duration::ZERO));
    assert!(!trigger.wait_timeout(Duration::from_millis(1)));
    let crossing = Block::new(2 * MB);
    assert!(trigger.wait_timeout(Duration::ZERO), "it is due");
    assert!(!trigger.wait_timeout(Duration::ZERO), "it was taken");
    drop(crossing);
}

fn a_waiter_takes_over_when_the_one_before_it_gives_up() {
    let trigger = step(live() + MB, MB);
    thread::scope(|scope| {
        let gives_up = scope.spawn(|| trigger.wait_timeout(Duration::from_millis(20)));
        let stays = scope.spawn(|| trigger.wait());
        assert!(!gives_up.join().expect("no panic"), "no crossing yet");
        let crossing = Block::new(2 * MB);
        stays.join().expect("no panic");
        drop(crossing);
    });
    assert!(!trigger.poll(), "taken by the waiter");
}

/// The thread that is woken allocates at once, while the one that woke it is still in its slow path.
fn a_collector_thread_that_allocates_is_counted_once() {
    const CYCLES: u64 = 200;
    let policy = Constant(live() + 256 * KB);
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..CYCLES {
                trigger.wait();
                let held: Vec<_> = (0..50).map(|n| Block::new(KB + n * 100)).collect();
                drop(held);
                trigger.collected(NO_TIME);
            }
        });
        while trigger.report().cycles < CYCLES {
            let held: Vec<_> = (0..64).map(|_| Block::new(20 * KB)).collect();
            drop(held);
        }
    });
    // The scope may return before its thread has ended.
    spin(|| heap().totals() == truth());
}
