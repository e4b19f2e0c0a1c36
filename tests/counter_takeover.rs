//! What becomes of an ended thread's place: a program of its own, since the threads of other tests take
//! places too.
#![allow(missing_docs, reason = "an integration test")]

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Batched, Counter, Measure, Trigger};

static ELSEWHERE: Counter<Batched> = Counter::with_mode();

fn run(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        // `join` waits for thread-local destructors, the end of the scope does not.
        scope.spawn(work).join().expect("the thread ends well");
    });
}

/// Counts in its destructor, once it is told to.
struct Late {
    ending: mpsc::Sender<()>,
    go_on: mpsc::Receiver<()>,
}

impl Drop for Late {
    fn drop(&mut self) {
        self.ending.send(()).expect("somebody waits for it");
        self.go_on.recv().expect("somebody says so");
        assert_eq!(
            ELSEWHERE.thread_totals(),
            Default::default(),
            "no place of ours any more"
        );
        ELSEWHERE.add(7);
        ELSEWHERE.sub(2);
    }
}

/// A thread whose number has gone to another still counts, in a destructor that runs late. It may not use the place
/// that it remembers, since that is the other's now.
fn a_place_that_another_thread_has_taken_over_is_left_alone() {
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }

    let before = ELSEWHERE.totals();
    let (ending, has_ended) = mpsc::channel();
    let (go_on, told) = mpsc::channel();
    let old = thread::spawn(move || {
        // Registered before anything a counter may register, so destroyed after it.
        LATE.set(Some(Late {
            ending,
            go_on: told,
        }));
        ELSEWHERE.add(100);
        ELSEWHERE.add(100);
    });
    has_ended.recv().expect("it comes to its destructors");

    let bound = ELSEWHERE.error_bound();
    run(move || {
        ELSEWHERE.add(30);
        assert_eq!(ELSEWHERE.error_bound(), bound, "the place of the old one");
        go_on.send(()).expect("it waits");
        old.join().expect("it ends well");
        let own = ELSEWHERE.thread_totals();
        assert_eq!((own.bytes_allocated, own.allocations), (30, 1), "{own:?}");
        assert_eq!(own.deallocations, 0, "{own:?}");
    });
    let change = ELSEWHERE.totals() - before;
    assert_eq!((change.net_bytes(), change.net_blocks()), (235, 3));
}

fn main() {
    const BYTES: usize = 10_000;
    a_place_that_another_thread_has_taken_over_is_left_alone();
    for counts_elsewhere_first in [false, true] {
        let counter = Counter::<Batched>::with_mode();
        for round in 1..=20 {
            run(|| {
                // Then the thread has its number, and finds the place without asking for it.
                if counts_elsewhere_first {
                    ELSEWHERE.add(1);
                }
                assert_eq!(counter.thread_totals(), Default::default(), "its own");
                counter.add(BYTES);
                let own = counter.thread_totals();
                assert_eq!(
                    (own.bytes_allocated, own.allocations),
                    (BYTES, 1),
                    "its own"
                );
            });
            assert_eq!(counter.totals().live_bytes(), round * BYTES);
            assert_eq!(
                counter.live_bytes(),
                (round - 1) * BYTES,
                "round {round}: each thread publishes what the one before it left"
            );
            assert_eq!(counter.error_bound(), counter.threshold() - 1, "one place");
        }
        // A thread that is there longer, so that the next one gets another place.
        run(|| {
            counter.add(BYTES);
            run(|| counter.add(BYTES));
            counter.flush();
        });
        assert_eq!(counter.totals().live_bytes(), 22 * BYTES);
        assert_eq!(counter.live_bytes(), 21 * BYTES);
        assert_eq!(
            counter.error_bound(),
            2 * (counter.threshold() - 1),
            "two places"
        );
    }

    // What comes to light that way counts for a trigger at once.
    let counter = Counter::<Batched>::with_mode();
    let policy = FixedLimit::new(BYTES).expect("above zero");
    let trigger = Trigger::new(&counter, Measure::LiveBytes, policy).expect("there is memory");
    run(|| counter.add(BYTES));
    assert!(!trigger.poll(), "nobody has published");
    run(|| counter.add(1));
    assert!(trigger.poll(), "{} bytes published", counter.live_bytes());
}
