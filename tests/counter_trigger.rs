//! A trigger works on a counter as on the heap.
#![allow(missing_docs, reason = "an integration test")]

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Announcement, Batched, Counter, Exact, Measure, Mode, Trigger};

fn trigger<M: Mode>(counter: &Counter<M>, limit: usize) -> Trigger<'_, FixedLimit> {
    let policy = FixedLimit::new(limit).expect("above zero");
    Trigger::new(counter, Measure::LiveBytes, policy).expect("there is memory")
}

#[test]
fn on_an_exact_counter_it_fires_at_the_very_operation_that_reaches_the_limit() {
    let counter = Counter::<Exact>::with_mode();
    let trigger = trigger(&counter, 10_000);
    for step in 1..10_000 {
        counter.add(1);
        assert!(!trigger.poll(), "fired at {step} of 10,000 bytes");
    }
    counter.add(1);
    assert!(trigger.poll(), "10,000 of 10,000 bytes live");
    assert!(!trigger.poll(), "fired twice for one crossing");
    counter.sub(5_000);
    trigger.collected(Duration::ZERO);
    counter.resize(1, 5_000);
    assert!(!trigger.poll(), "9,999 of 10,000 bytes live");
    counter.resize(5_000, 5_001);
    assert!(trigger.poll(), "10,000 of 10,000 bytes live");
}

#[test]
fn on_a_batched_counter_it_never_fires_early_and_fires_within_its_bound() {
    const THREADS: usize = 4;
    const LIMIT: usize = 1_000_000;
    let counter = Counter::<Batched>::with_mode();
    let trigger = trigger(&counter, LIMIT);
    let mut fired = 0;
    for _ in 0..50 {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        loop {
                            counter.add(700);
                            if trigger.poll() {
                                let live = counter.totals().live_bytes();
                                assert!(live >= LIMIT, "fired at {live} of {LIMIT} bytes");
                                return true;
                            }
                            let live = counter.totals().live_bytes();
                            if live >= LIMIT {
                                return false;
                            }
                        }
                    })
                })
                .collect();
            for thread in threads {
                let winner = thread.join().expect("it fires in time");
                fired += usize::from(winner);
            }
        });
        // With the limit reached and nobody publishing since, it need not have fired.
        fired += usize::from(trigger.poll());
        let totals = counter.totals();
        assert!(totals.live_bytes() >= LIMIT, "{totals:?}");
        // On this thread: the others' places keep what they have pending.
        (0..totals.live_blocks()).for_each(|_| counter.sub(700));
        assert_eq!(counter.totals().live_bytes(), 0);
        trigger.collected(Duration::ZERO);
        assert!(!trigger.poll(), "due with nothing live");
    }
    assert!(fired <= 50, "fired {fired} times in 50 crossings");

    // The bound: one thread alone, straight up.
    let before = trigger.report().cycles;
    while !trigger.poll() {
        counter.add(700);
        let live = counter.totals().live_bytes();
        let most = LIMIT + 2 * counter.error_bound() + 700;
        assert!(
            live <= most,
            "{live} bytes live and not fired, limit {LIMIT}"
        );
    }
    assert_eq!(trigger.report().cycles, before);
}

#[test]
fn what_ended_threads_left_pending_counts_towards_the_limit() {
    const THREADS: usize = 8;
    let counter = Counter::<Batched>::with_mode();
    let trigger = trigger(&counter, THREADS * 10_000 + 20_000);
    let all_alive = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                counter.add(10_000);
                all_alive.wait();
            });
        }
    });
    assert_eq!(counter.live_bytes(), 0, "nobody has published");
    assert!(!trigger.poll());
    counter.add(20_000);
    assert!(
        trigger.poll(),
        "{} bytes live",
        counter.totals().live_bytes()
    );
}

#[test]
fn counters_with_triggers_are_dropped_and_do_not_know_of_each_other() {
    for _ in 0..100 {
        let (a, b) = (
            Counter::<Exact>::with_mode(),
            Counter::<Batched>::with_mode(),
        );
        // More than fit into a counter itself.
        let on_a: Vec<_> = (1..=10).map(|i| trigger(&a, 100 * i)).collect();
        let on_b: Vec<_> = (1..=10).map(|i| trigger(&b, 100_000 * i)).collect();
        a.add(500);
        b.add(300_000);
        let due =
            |triggers: &[Trigger<'_, FixedLimit>]| triggers.iter().filter(|it| it.poll()).count();
        assert_eq!(due(&on_a), 5);
        assert_eq!(due(&on_b), 3);
    }
}

#[test]
fn a_request_fits_if_it_stays_below_the_limit_and_asks_for_a_collection_at_it() {
    let counter = Counter::<Exact>::with_mode();
    let trigger = trigger(&counter, 100);
    counter.add(50);
    assert_eq!(trigger.headroom(), 50);
    for amount in [0, 49] {
        assert_eq!(trigger.announce(amount), Announcement::Fits, "{amount}");
        assert!(!trigger.poll(), "50 and {amount} are below 100");
    }
    assert_eq!(trigger.announce(50), Announcement::Collect);
    assert!(trigger.poll(), "50 and 50 are 100");
    assert!(!trigger.poll(), "taken");
    counter.sub(1);
    trigger.collected(Duration::ZERO);
    assert_eq!(trigger.report().cycles, 1);
    assert_eq!(trigger.announce(50), Announcement::Fits, "49 and 50");
    assert_eq!(trigger.headroom(), 51);

    assert_eq!(trigger.announce(1_000), Announcement::Collect);
    assert!(trigger.poll(), "for the request");
    trigger.collected(Duration::ZERO);
    assert_eq!(trigger.announce(1_000), Announcement::Refused);
    assert!(!trigger.poll(), "once is enough");
}

#[test]
fn a_wait_ends_with_the_crossing_that_it_takes_or_without_one_in_time() {
    let counter = Counter::<Exact>::with_mode();
    let trigger = trigger(&counter, 100);
    for _ in 0..2 {
        assert!(!trigger.wait_timeout(Duration::from_millis(1)), "below");
        counter.add(100);
        assert!(trigger.wait_timeout(Duration::MAX), "at the limit");
        assert!(!trigger.wait_timeout(Duration::from_millis(1)), "taken");
        counter.sub(100);
        trigger.collected(Duration::ZERO);

        counter.add(100);
        trigger.wait();
        assert!(!trigger.poll(), "the wait has taken it");
        counter.sub(100);
        trigger.collected(Duration::ZERO);
    }
    assert_eq!(trigger.report().cycles, 4);
}

#[test]
fn blocks_of_no_bytes_reach_a_limit_on_blocks() {
    for (threshold, late) in [(1, 0), (1_000, 2 * 999 + 1)] {
        let counter = Counter::<Batched>::with_mode();
        counter.set_threshold(threshold).expect("in the range");
        let policy = FixedLimit::new(10_000).expect("above zero");
        let trigger = Trigger::new(&counter, Measure::LiveBlocks, policy).expect("there is memory");
        for block in 1..=10_000 + late {
            counter.add(0);
            if block < 10_000 {
                assert!(!trigger.poll(), "fired at {block} of 10,000 blocks");
            }
        }
        assert!(trigger.poll(), "{} blocks of 10,000", 10_000 + late);
    }
}

#[test]
fn taking_off_more_than_was_counted_leaves_a_trigger_that_works() {
    let counter = Counter::<Batched>::with_mode();
    let trigger = trigger(&counter, 1_000_000);
    counter.add(100);
    counter.sub(200);
    assert_eq!(trigger.headroom(), 1_000_000, "nothing is live");
    trigger.collected(Duration::ZERO);
    assert_eq!(trigger.limit(), 1_000_000);
    counter.add(2_000_000);
    assert!(trigger.poll(), "2 MB live of 1 MB");
}
