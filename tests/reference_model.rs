//! The account against a reference model: random operations, in both modes, on threads that come and go,
//! in a random order that is the same for both.
//!
//! The program's own allocator is the system's, so that only what a case asks for is counted. Threads
//! work one step at a time, each step waited for, so after each of them every figure can be compared with
//! the model: that knows what each thread has pending at the most, and what the account must say.

#![allow(unsafe_code, reason = "the allocator is called by hand")]

#[path = "support/pretend.rs"]
mod pretend;
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::ExitCode;
use std::ptr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use pretend::{Pretend, REFUSED_ALIGN};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::claims;
use tally_alloc::{Batched, Exact, TallyAlloc, Totals, heap};

claims![
    random_operations_in_batched_mode_agree_with_the_model,
    random_operations_in_exact_mode_agree_with_the_model,
    random_operations_in_both_modes_at_once_agree_with_the_model,
    counters_that_wrap_around_agree_with_the_model,
];

fn main() -> ExitCode {
    support::run(CLAIMS, &[])
}

static BATCHED: TallyAlloc<Pretend, Batched> = TallyAlloc::new(Pretend);
static EXACT: TallyAlloc<Pretend, Exact> = TallyAlloc::new(Pretend);

/// The program's own, named so that nobody looks for another.
#[global_allocator]
static GLOBAL: System = System;

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(usize),
    AllocZeroed(usize),
    Free(prop::sample::Index),
    Resize(prop::sample::Index, usize),
    Refused(usize),
    Flush,
    SetThreshold(usize),
    End,
}

/// A step, the thread that does it, and the mode it does it in.
#[derive(Clone, Copy, Debug)]
struct Turn {
    thread: usize,
    exact: bool,
    step: Step,
}

const THREADS: usize = 4;

fn turns(
    size: BoxedStrategy<usize>,
    exact: BoxedStrategy<bool>,
) -> impl Strategy<Value = Vec<Turn>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        4 => size.clone().prop_map(Step::Alloc),
        1 => size.clone().prop_map(Step::AllocZeroed),
        4 => index().prop_map(Step::Free),
        3 => (index(), size.clone()).prop_map(|(index, size)| Step::Resize(index, size)),
        1 => size.prop_map(Step::Refused),
        1 => Just(Step::Flush),
        1 => prop_oneof![Just(0), Just(1), 2..40_usize, 1000..70_000_usize]
            .prop_map(Step::SetThreshold),
        1 => Just(Step::End),
    ];
    let turn = (0..THREADS, exact, step).prop_map(|(thread, exact, step)| Turn {
        thread,
        exact,
        step,
    });
    prop::collection::vec(turn, 1..300)
}

fn layout(size: usize, align: usize) -> Layout {
    black_box(Layout::from_size_align(size, align).expect("a valid layout"))
}

/// What a thread is asked to do: in which mode, and with the old size where there is one.
type Order = (bool, Step, usize);

fn act(allocator: &impl GlobalAlloc, step: Step, old: usize) {
    let block: *mut u8 = ptr::without_provenance_mut(4096);
    match step {
        Step::Alloc(size) => {
            // SAFETY: blocks are pretended.
            assert!(!unsafe { allocator.alloc(layout(size, 1)) }.is_null());
        }
        Step::AllocZeroed(size) => {
            // SAFETY: blocks are pretended.
            assert!(!unsafe { allocator.alloc_zeroed(layout(size, 1)) }.is_null());
        }
        Step::Free(_) => {
            // SAFETY: blocks are pretended.
            unsafe { allocator.dealloc(block, layout(old, 1)) };
        }
        Step::Resize(_, size) => {
            // SAFETY: blocks are pretended.
            assert!(!unsafe { allocator.realloc(block, layout(old, 1), size) }.is_null());
        }
        Step::Refused(size) => {
            let refused = layout(size.min(isize::MAX as usize - 1), REFUSED_ALIGN);
            // SAFETY: blocks are pretended.
            assert!(unsafe { allocator.alloc(refused) }.is_null());
            // SAFETY: blocks are pretended.
            assert!(unsafe { allocator.alloc_zeroed(refused) }.is_null());
            // SAFETY: blocks are pretended.
            assert!(unsafe { allocator.realloc(block, refused, 1) }.is_null());
        }
        Step::Flush => heap().flush(),
        Step::SetThreshold(bytes) => heap().set_threshold(bytes).expect("a permitted threshold"),
        Step::End => (),
    }
}

struct Worker {
    orders: SyncSender<Order>,
    done: Receiver<Totals>,
    handle: JoinHandle<()>,
    /// What it has done itself.
    own: Totals,
}

impl Worker {
    fn start() -> Self {
        let (orders, receiver) = sync_channel::<Order>(1);
        let (sender, done) = sync_channel(1);
        let handle = thread::spawn(move || {
            for (exact, step, old) in receiver {
                if exact {
                    act(&EXACT, step, old);
                } else {
                    act(&BATCHED, step, old);
                }
                sender
                    .send(heap().thread_totals())
                    .expect("the model waits");
            }
        });
        Self {
            orders,
            done,
            handle,
            own: Totals::default(),
        }
    }

    fn end(self) {
        drop(self.orders);
        self.handle.join().expect("the thread ends");
    }
}

/// What happened, by the book.
fn note(totals: &mut Totals, step: Step, old: usize) {
    match step {
        Step::Alloc(size) | Step::AllocZeroed(size) => {
            totals.bytes_allocated = totals.bytes_allocated.wrapping_add(size);
            totals.allocations += 1;
        }
        Step::Free(_) => {
            totals.bytes_deallocated = totals.bytes_deallocated.wrapping_add(old);
            totals.deallocations += 1;
        }
        Step::Resize(_, size) => {
            let (grown, shrunk) = (size.saturating_sub(old), old.saturating_sub(size));
            totals.bytes_allocated = totals.bytes_allocated.wrapping_add(grown);
            totals.bytes_deallocated = totals.bytes_deallocated.wrapping_add(shrunk);
            totals.reallocations += 1;
        }
        Step::Refused(_) | Step::Flush | Step::SetThreshold(_) | Step::End => (),
    }
}

fn agrees(turns: &[Turn]) -> Result<(), TestCaseError> {
    heap().set_threshold(16 * 1024).expect("the default");
    let start = (heap().totals(), heap().live_bytes());
    prop_assert_eq!(start.1, start.0.live_bytes(), "all threads have ended");
    prop_assert_eq!(heap().error_bound(), 0, "all threads have ended");
    heap().reset_peak();
    let mut workers: Vec<Worker> = (0..THREADS).map(|_| Worker::start()).collect();
    let mut blocks: Vec<usize> = Vec::new();
    let mut model = Totals::default();
    let mut only_exact = true;
    let mut highest = heap().live_bytes();
    for turn in turns {
        let mut old = 0;
        match turn.step {
            Step::Free(index) | Step::Resize(index, _) if blocks.is_empty() => {
                let _ = index;
                continue;
            }
            // Live may be anything a process can hold, and must stay so.
            Step::Alloc(size) | Step::AllocZeroed(size) | Step::Resize(_, size)
                if blocks.iter().sum::<usize>() > isize::MAX as usize - size =>
            {
                continue;
            }
            Step::Alloc(size) | Step::AllocZeroed(size) => blocks.push(size),
            Step::Free(index) => old = blocks.swap_remove(index.index(blocks.len())),
            Step::Resize(index, size) => {
                let place = index.index(blocks.len());
                old = std::mem::replace(&mut blocks[place], size);
            }
            Step::End => {
                let ended = std::mem::replace(&mut workers[turn.thread], Worker::start());
                ended.end();
            }
            Step::Refused(_) | Step::Flush | Step::SetThreshold(_) => (),
        }
        let worker = &mut workers[turn.thread];
        worker
            .orders
            .send((turn.exact, turn.step, old))
            .expect("the thread waits");
        let own = worker.done.recv().expect("the thread answers");
        note(&mut model, turn.step, old);
        note(&mut worker.own, turn.step, old);
        only_exact &= turn.exact;
        prop_assert_eq!(
            heap().totals() - start.0,
            model,
            "the totals after {:?}",
            turn
        );
        prop_assert_eq!(own, worker.own, "the thread's own after {:?}", turn);
        let (live, truth) = (heap().live_bytes(), heap().totals().live_bytes());
        let now = heap().error_bound();
        prop_assert!(
            live.abs_diff(truth) <= now,
            "published {}, truth {}, bound {} after {:?}",
            live,
            truth,
            now,
            turn
        );
        highest = highest.max(live);
        prop_assert!(heap().peak_bytes() >= highest, "peak after {:?}", turn);
        if only_exact {
            prop_assert_eq!(live, truth, "exact after {:?}", turn);
            prop_assert_eq!(now, 0, "the bound in exact mode");
        }
    }
    // Give back what is left, so that the next case begins with nothing.
    for size in blocks.drain(..) {
        // SAFETY: blocks are pretended.
        unsafe { BATCHED.dealloc(ptr::without_provenance_mut(4096), layout(size, 1)) };
    }
    workers.into_iter().for_each(Worker::end);
    Ok(())
}

fn check(size: BoxedStrategy<usize>, exact: BoxedStrategy<bool>) {
    let config = Config {
        cases: 100,
        // A failing case is printed; there is nothing to keep between runs.
        failure_persistence: None,
        ..Config::default()
    };
    let turns = turns(size, exact);
    // Each case on a thread of its own, so that what it leaves pending is published by its end.
    let outcome = TestRunner::new(config).run(&turns, |turns| {
        thread::spawn(move || agrees(&turns))
            .join()
            .expect("no panic")
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn usual() -> BoxedStrategy<usize> {
    prop_oneof![
        1..200_usize,
        1..20_000_usize,
        16_380..16_390_usize,
        1..3_000_000_usize
    ]
    .boxed()
}

fn random_operations_in_batched_mode_agree_with_the_model() {
    check(usual(), Just(false).boxed());
}

fn random_operations_in_exact_mode_agree_with_the_model() {
    check(usual(), Just(true).boxed());
}

fn random_operations_in_both_modes_at_once_agree_with_the_model() {
    check(usual(), any::<bool>().boxed());
}

fn counters_that_wrap_around_agree_with_the_model() {
    let most = isize::MAX as usize;
    let huge = prop_oneof![1..100_usize, most / 2..most, most - 3..=most].boxed();
    check(huge, any::<bool>().boxed());
}
