//! What becomes of an ended thread's place: a program of its own, since the threads of other tests take
//! places too.
#![allow(missing_docs, reason = "an integration test")]

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

fn main() {
    const BYTES: usize = 10_000;
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
