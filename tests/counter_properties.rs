//! A counter against a reference that counts every operation with plain numbers.
#![allow(missing_docs, reason = "an integration test")]

use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;
use tally_alloc::{Batched, Counter, Exact, Mode, Totals};

#[derive(Clone, Copy, Debug)]
enum Step {
    Add(usize),
    /// Takes off the block at this place among the live ones.
    Sub(usize),
    Resize(usize, usize),
    Threshold(usize),
    Flush,
    /// The thread ends and another takes its number.
    EndThread,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    // Around the thresholds below, and far from them.
    let bytes = || prop_oneof![0..40_usize, 100..5_000_usize, 30_000..60_000_usize];
    let step = prop_oneof![
        8 => bytes().prop_map(Step::Add),
        6 => any::<usize>().prop_map(Step::Sub),
        3 => (any::<usize>(), bytes()).prop_map(|(place, new)| Step::Resize(place, new)),
        1 => prop_oneof![Just(0), Just(1), Just(64), Just(1 << 14), Just(1 << 16)].prop_map(Step::Threshold),
        1 => Just(Step::Flush),
        1 => Just(Step::EndThread),
    ];
    prop::collection::vec((0..3_usize, step), 1..200)
}

/// What the counter must show.
#[derive(Default)]
struct Reference {
    live: Vec<usize>,
    totals: Totals,
}

/// What a thread is told to do; it answers with its own totals.
enum Order {
    Count(Step),
    Flush,
}

/// A thread that counts what it is told, one order at a time.
struct Worker {
    orders: mpsc::Sender<Order>,
    answers: mpsc::Receiver<Totals>,
    thread: thread::JoinHandle<()>,
    totals: Totals,
}

impl Worker {
    fn new<M: Mode + 'static>(counter: &'static Counter<M>) -> Self {
        let (orders, inbox) = mpsc::channel();
        let (outbox, answers) = mpsc::channel();
        let thread = thread::spawn(move || {
            for order in inbox {
                match order {
                    Order::Count(Step::Add(bytes)) => counter.add(bytes),
                    Order::Count(Step::Sub(bytes)) => counter.sub(bytes),
                    Order::Count(Step::Resize(old, new)) => counter.resize(old, new),
                    _ => counter.flush(),
                }
                outbox
                    .send(counter.thread_totals())
                    .expect("the test waits");
            }
        });
        Self {
            orders,
            answers,
            thread,
            totals: Totals::default(),
        }
    }

    fn does(&mut self, order: Order) -> Totals {
        self.orders.send(order).expect("the worker waits");
        self.answers.recv().expect("the worker answers")
    }

    fn end(self) {
        drop(self.orders);
        self.thread.join().expect("the worker ends well");
    }
}

fn count(totals: &mut Totals, step: Step) {
    match step {
        Step::Add(bytes) => {
            totals.bytes_allocated += bytes;
            totals.allocations += 1;
        }
        Step::Sub(bytes) => {
            totals.bytes_deallocated += bytes;
            totals.deallocations += 1;
        }
        Step::Resize(old, new) => {
            totals.bytes_allocated += new.saturating_sub(old);
            totals.bytes_deallocated += old.saturating_sub(new);
            totals.reallocations += 1;
        }
        _ => {}
    }
}

impl Reference {
    /// Fills in which blocks a step is about; `None` when there is none to be about.
    fn resolve(&mut self, step: Step) -> Option<Step> {
        let step = match step {
            Step::Add(bytes) => {
                self.live.push(bytes);
                step
            }
            Step::Sub(_) | Step::Resize(..) if self.live.is_empty() => return None,
            Step::Sub(place) => Step::Sub(self.live.swap_remove(place % self.live.len())),
            Step::Resize(place, new) => {
                let place = place % self.live.len();
                let old = std::mem::replace(&mut self.live[place], new);
                Step::Resize(old, new)
            }
            other => other,
        };
        count(&mut self.totals, step);
        Some(step)
    }

    fn live_bytes(&self) -> usize {
        self.live.iter().sum()
    }
}

fn check<M: Mode + 'static>(steps: &[(usize, Step)], exact: bool) -> Result<Totals, TestCaseError> {
    let counter: &'static Counter<M> = Box::leak(Box::default());
    let mut reference = Reference::default();
    let mut workers: Vec<_> = (0..3).map(|_| Worker::new(counter)).collect();
    let mut before = Totals::default();
    let mut highest = 0;
    for &(who, step) in steps {
        match step {
            Step::Threshold(bytes) => counter.set_threshold(bytes).expect("below the maximum"),
            Step::Flush => {
                workers[who].does(Order::Flush);
            }
            Step::EndThread => {
                workers.remove(who).end();
                workers.insert(who, Worker::new(counter));
            }
            step => {
                if let Some(step) = reference.resolve(step) {
                    count(&mut workers[who].totals, step);
                    let own = workers[who].does(Order::Count(step));
                    prop_assert_eq!(own, workers[who].totals, "thread_totals after {:?}", step);
                }
            }
        }
        let totals = counter.totals();
        prop_assert_eq!(totals, reference.totals, "totals after {:?}", step);
        prop_assert_eq!(totals.live_bytes(), reference.live_bytes());
        prop_assert_eq!(totals.live_blocks(), reference.live.len());
        let back = totals.bytes_allocated < before.bytes_allocated
            || totals.bytes_deallocated < before.bytes_deallocated;
        prop_assert!(!back, "{totals:?} after {before:?}");
        before = totals;

        let (live, truth, bound) = (
            counter.live_bytes(),
            reference.live_bytes(),
            counter.error_bound(),
        );
        prop_assert!(
            live.abs_diff(truth) <= bound,
            "{live} published, {truth} true, bound {bound}"
        );
        if exact {
            prop_assert_eq!((live, bound), (truth, 0), "published and bound, exact mode");
        }
        highest = highest.max(live);
        let peak = counter.peak_bytes();
        prop_assert!(
            peak >= highest,
            "peak {peak}, live bytes read before {highest}"
        );
    }
    for worker in &mut workers {
        worker.does(Order::Flush);
    }
    workers.into_iter().for_each(Worker::end);
    Ok(counter.totals())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reading_agrees_with_the_reference_in_both_modes(steps in steps()) {
        let batched = check::<Batched>(&steps, false)?;
        let exact = check::<Exact>(&steps, true)?;
        prop_assert_eq!(batched, exact, "the same work in both modes");
    }

    #[test]
    fn flushing_every_thread_brings_live_bytes_to_the_truth(sizes in prop::collection::vec(0..20_000_usize, 1..40)) {
        let counter = Counter::<Batched>::with_mode();
        thread::scope(|scope| {
            for part in sizes.chunks(10) {
                let counter = &counter;
                scope.spawn(move || {
                    part.iter().for_each(|&bytes| counter.add(bytes));
                    counter.flush();
                });
            }
        });
        prop_assert_eq!(counter.live_bytes(), sizes.iter().sum::<usize>());
    }
}
