//! A heap that only grows makes the trigger fire, as often as it should and no more.

use std::sync::Mutex;
use std::thread;

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Measure, Trigger, heap};

use super::{EXACT, KB, MB, NO_TIME, Step, live};
use crate::support::block::Block;
use crate::support::claims;

claims![
    growth_by_malloc_alone_fires_and_stays_under_twice_the_limit,
    a_heap_just_above_its_limit_collects_at_most_once_per_progress,
    a_limit_that_is_passed_already_is_due_as_soon_as_it_is_armed,
    a_loop_that_frees_what_it_allocates_just_below_the_limit_never_fires,
    hovering_below_the_limit_takes_no_sum,
    a_straight_approach_publishes_a_bounded_number_of_times_near_the_limit,
    the_same_work_takes_the_same_number_of_cycles_on_any_number_of_threads,
];

fn growth_by_malloc_alone_fires_and_stays_under_twice_the_limit() {
    let mut garbage = Vec::with_capacity(5 * KB);
    let limit = live() + 4 * MB;
    let policy = FixedLimit::new(limit).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let mut highest = 0;
    for _ in 0..40 * MB / KB {
        garbage.push(Block::new(KB));
        if trigger.poll() {
            highest = highest.max(heap().totals().live_bytes());
            garbage.clear();
            trigger.collected(NO_TIME);
        }
    }
    let cycles = trigger.report().cycles;
    assert!((9..=10).contains(&cycles), "{cycles} cycles for 10 limits");
    assert!(
        highest >= limit && highest < 2 * limit,
        "live reached {highest}, the limit is {limit}"
    );
}

/// `FixedLimit` documents that a full heap is collected once per progress, 1/16 of the limit.
fn a_heap_just_above_its_limit_collects_at_most_once_per_progress() {
    let limit = live() + 8 * MB;
    let policy = FixedLimit::new(limit).expect("a valid policy");
    let mut kept = Vec::with_capacity(101_000);
    let full = Block::new(8 * MB + 100);
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    for _ in 0..100_000 {
        kept.push(Block::new(64));
        if trigger.poll() {
            trigger.collected(NO_TIME);
        }
    }
    let (cycles, most) = (trigger.report().cycles, 6_400_000 / (limit / 16) + 2);
    assert!(cycles >= 1, "the limit is reached from the start");
    assert!(cycles <= most as u64, "{cycles} cycles, at most {most}");
    drop(full);
}

/// Nobody publishes in between.
fn a_limit_that_is_passed_already_is_due_as_soon_as_it_is_armed() {
    let full = Block::new(2 * MB);
    let policy = Step {
        first: live() - MB,
        step: 0,
    };
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    assert!(trigger.poll(), "when it is made: {trigger:?}");
    trigger.collected(NO_TIME);
    assert!(trigger.poll(), "after a collection: {trigger:?}");
    drop(full);
}

fn a_loop_that_frees_what_it_allocates_just_below_the_limit_never_fires() {
    let limit = live() + 65;
    let policy = FixedLimit::new(limit).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    for _ in 0..100_000 {
        drop(Block::new(64));
        assert!(!trigger.poll(), "64 of 65 bytes were live: {trigger:?}");
    }
}

/// Exact sums are taken when a thread publishes near a limit, and at no other time.
fn hovering_below_the_limit_takes_no_sum() {
    if EXACT {
        return;
    }
    let limit = live() + 16 * KB;
    let policy = FixedLimit::new(limit).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let mut held = Vec::with_capacity(200);
    live();
    let before = heap().shared_writes();
    for _ in 0..1_000 {
        held.extend((0..100).map(|_| Block::new(100)));
        held.clear();
    }
    let sums = heap().shared_writes() - before;
    assert_eq!(sums, 0, "publishes in 200,000 operations up to 10 kB");
    assert!(!trigger.poll(), "{trigger:?}");
}

/// Within the bound of the limit a thread has to fill a threshold to publish, so it does so about twice.
fn a_straight_approach_publishes_a_bounded_number_of_times_near_the_limit() {
    if EXACT {
        return;
    }
    let mut held = Vec::with_capacity(10_000);
    let limit = live() + MB;
    let policy = FixedLimit::new(limit).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let mut near = None;
    while !trigger.poll() {
        held.push(Block::new(256));
        if near.is_none() && heap().live_bytes() + heap().error_bound() >= limit {
            near = Some(heap().shared_writes());
        }
    }
    let sums = heap().shared_writes() - near.expect("the limit was approached");
    assert!(sums <= 3, "{sums} publishes near the limit");
}

/// The threads take turns, so that the work is the same whatever the scheduler does.
fn the_same_work_takes_the_same_number_of_cycles_on_any_number_of_threads() {
    const WORK: usize = 32 * MB;
    let cycles = [1, 2, 4, 8].map(|threads| {
        let garbage = Mutex::new(Vec::with_capacity(WORK / KB));
        let policy = Step {
            first: live() + 2 * MB,
            step: 2 * MB,
        };
        let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..WORK / KB / threads {
                        let mut garbage = garbage.lock().expect("no panic");
                        garbage.push(Block::new(KB));
                        if trigger.poll() {
                            garbage.clear();
                            trigger.collected(NO_TIME);
                        }
                    }
                });
            }
        });
        trigger.report().cycles
    });
    let (least, most) = (cycles.iter().min(), cycles.iter().max());
    assert!(
        most.zip(least)
            .is_some_and(|(most, least)| most - least <= 1 && *least >= 14),
        "cycles on 1, 2, 4 and 8 threads: {cycles:?}"
    );
}
