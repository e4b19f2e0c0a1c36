//! Triggers are made and dropped while threads publish.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use tally_alloc::policy::Policy;
use tally_alloc::{Measure, Trigger, heap};

use super::{KB, MB, Step, live, truth};
use crate::support::block::Block;
use crate::support::fork::in_a_fork;
use crate::support::{Numbers, claims};

claims![
    triggers_come_and_go_while_8_threads_publish,
    a_dropped_trigger_leaves_nothing_behind,
    a_policy_that_panics_at_the_start_leaves_nothing_behind,
    a_forked_child_polls_and_makes_triggers_of_its_own,
];

fn at(measure: Measure, first: usize) -> Trigger<'static, Step> {
    let policy = Step { first, step: MB };
    Trigger::new(heap(), measure, policy).expect("memory")
}

fn triggers_come_and_go_while_8_threads_publish() {
    let start = live();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..8 {
            let over = &over;
            scope.spawn(move || {
                let mut numbers = Numbers::from(seed);
                let mut held = Vec::with_capacity(16);
                while !over.load(SeqCst) {
                    held.push(Block::new(numbers.within(KB..32 * KB)));
                    if held.len() == 16 {
                        held.clear();
                    }
                }
            });
        }
        let mut fired = 0;
        for n in 0..2_000 {
            // Between what 8 threads hold at the least and at the most.
            let limit = start + (n % 64) * 32 * KB;
            let bytes = at(Measure::LiveBytes, limit);
            let blocks = at(Measure::LiveBlocks, n % 128);
            let traffic = at(Measure::AllocatedBytes, 64 * KB);
            let wait = Duration::from_micros(20);
            for won in [bytes.wait_timeout(wait), blocks.poll(), traffic.poll()] {
                fired += usize::from(won);
            }
        }
        over.store(true, SeqCst);
        assert!(fired > 100, "{fired} of 6,000 triggers fired");
    });
    while heap().totals() != truth() {
        thread::yield_now();
    }
}

/// A limit that is not there any more makes nobody look, and a trigger's place is used again.
fn a_dropped_trigger_leaves_nothing_behind() {
    let before = live();
    for _ in 0..100_000 {
        drop(at(Measure::LiveBytes, before + 1));
    }
    assert_eq!(live(), before, "bytes live after 100,000 triggers");
    let kept = at(Measure::LiveBytes, before + MB);
    let below = Block::new(MB / 2);
    assert!(!kept.poll(), "{kept:?}");
    drop(below);
}

struct NoLimit;

impl Policy for NoLimit {
    fn initial_limit(&self) -> usize {
        panic!("no limit")
    }

    fn next_limit(&mut self, _: &tally_alloc::policy::Cycle) -> usize {
        unreachable!("it was never armed")
    }
}

fn a_policy_that_panics_at_the_start_leaves_nothing_behind() {
    std::panic::set_hook(Box::new(|_| ()));
    for _ in 0..100_000 {
        let made = std::panic::catch_unwind(|| {
            drop(Trigger::new(heap(), Measure::LiveBytes, NoLimit));
        });
        assert!(made.is_err(), "it panics");
    }
    drop(std::panic::take_hook());
    let resident = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = resident.split(' ').nth(1).and_then(|n| n.parse().ok());
    let pages: usize = pages.unwrap_or(0);
    // A slab of four watermarks takes a page or more: 25,000 of them would be 100 MB.
    assert!(pages < 20_000, "{pages} pages are resident");
}

fn a_forked_child_polls_and_makes_triggers_of_its_own() {
    let trigger = at(Measure::LiveBytes, live() + MB);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // A thread that the child will not have, inside the parent's sleeper.
        scope.spawn(|| {
            while !over.load(SeqCst) {
                let _ = trigger.wait_timeout(Duration::from_millis(5));
            }
        });
        let status = in_a_fork(|| {
            let crossing = Block::new(2 * MB);
            let own = at(Measure::LiveBytes, live() + MB);
            let more = Block::new(2 * MB);
            assert!(own.poll(), "the child's own: {own:?}");
            drop((crossing, more));
        });
        over.store(true, SeqCst);
        assert_eq!(status, 0, "the child's wait status");
    });
}
