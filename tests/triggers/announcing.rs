//! A request that is announced takes one collection, and is then served or refused.

use std::sync::OnceLock;

use tally_alloc::policy::{Cycle, FixedLimit, Policy, Proportional};
use tally_alloc::{Announcement, Evidence, Measure, Trigger, heap};

use super::{MB, NO_TIME, live};
use crate::support::block::Block;
use crate::support::claims;

claims![
    a_request_beyond_the_limit_takes_one_collection_and_then_fits,
    a_request_that_the_policy_refuses_takes_one_collection_however_often_it_is_made,
    a_request_that_fits_takes_none,
    a_request_during_a_collection_is_taken_into_account_by_it,
    a_request_while_the_policy_is_asked_is_put_to_it_next,
    a_request_that_has_come_to_fit_is_not_put_to_the_policy,
];

/// Does what a runtime does before a large request; returns the answer in the end.
fn ask<P: Policy>(trigger: &Trigger<'_, P>, bytes: usize) -> Announcement {
    for _ in 0..10 {
        match trigger.announce(bytes) {
            Announcement::Collect => {
                assert!(trigger.poll(), "a collection is due: {trigger:?}");
                let cause = trigger.report().cause.expect("it fired");
                assert_eq!(cause.evidence, Evidence::Request, "{cause:?}");
                trigger.collected(NO_TIME);
            }
            answer => return answer,
        }
    }
    panic!("still no answer after 10 collections: {trigger:?}");
}

fn a_request_beyond_the_limit_takes_one_collection_and_then_fits() {
    let policy = Proportional::new(1.0, 10 * MB..=100 * MB).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    assert_eq!(ask(&trigger, 20 * MB), Announcement::Fits);
    let granted = Block::new(20 * MB);
    assert!(!trigger.poll(), "the request was granted: {trigger:?}");
    assert_eq!(trigger.report().cycles, 1);
    drop(granted);
}

fn a_request_that_the_policy_refuses_takes_one_collection_however_often_it_is_made() {
    let limit = live() + 10 * MB;
    let policy = FixedLimit::new(limit).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    for _ in 0..1_000 {
        assert_eq!(ask(&trigger, 20 * MB), Announcement::Refused);
    }
    assert_eq!(ask(&trigger, 5 * MB), Announcement::Fits);
    assert_eq!(trigger.report().cycles, 1);
}

fn a_request_that_fits_takes_none() {
    let limit = live() + 10 * MB;
    let policy = FixedLimit::new(limit).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    for _ in 0..1_000 {
        assert_eq!(ask(&trigger, 9 * MB), Announcement::Fits);
    }
    assert_eq!(trigger.report().cycles, 0);
}

fn a_request_during_a_collection_is_taken_into_account_by_it() {
    let policy = Proportional::new(1.0, 10 * MB..=100 * MB).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let full = Block::new(11 * MB);
    assert!(trigger.poll(), "{trigger:?}");
    assert_eq!(trigger.announce(20 * MB), Announcement::Collect);
    assert!(!trigger.poll(), "this collection takes it into account");
    drop(full);
    trigger.collected(NO_TIME);
    assert_eq!(trigger.announce(20 * MB), Announcement::Fits);
    assert_eq!(trigger.report().cycles, 1);
}

static ASKED: OnceLock<Trigger<'static>> = OnceLock::new();

const LIMIT: usize = 1 << 40;

/// Announces a request beyond its limit while it is asked for the first time, and grants what it is asked for.
struct Announces;

impl Policy for Announces {
    fn initial_limit(&self) -> usize {
        LIMIT
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        let trigger = ASKED.get().expect("set before the first cycle");
        if cycle.request == 0 {
            assert_eq!(trigger.announce(2 * LIMIT), Announcement::Collect);
        }
        LIMIT + 2 * cycle.request
    }
}

fn a_request_while_the_policy_is_asked_is_put_to_it_next() {
    let policy: Box<dyn Policy> = Box::new(Announces);
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    assert!(ASKED.set(trigger).is_ok(), "set once");
    let trigger = ASKED.get().expect("it was set");
    trigger.collected(NO_TIME);
    assert!(trigger.poll(), "a collection is due for it: {trigger:?}");
    let cause = trigger.report().cause.expect("it fired");
    assert_eq!(cause.evidence, Evidence::Request, "{cause:?}");
    trigger.collected(NO_TIME);
    assert!(!trigger.poll(), "{trigger:?}");
    assert_eq!(trigger.announce(2 * LIMIT), Announcement::Fits);
}

static GROWS: OnceLock<Trigger<'static>> = OnceLock::new();

/// Is asked for a request while it makes room for it of its own accord; each cycle must come without one.
struct Doubles(usize);

impl Policy for Doubles {
    fn initial_limit(&self) -> usize {
        self.0
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        assert_eq!(cycle.request, 0, "served without us");
        let trigger = GROWS.get().expect("set before the first cycle");
        assert_eq!(trigger.announce(self.0), Announcement::Collect);
        self.0 *= 4;
        self.0
    }
}

fn a_request_that_has_come_to_fit_is_not_put_to_the_policy() {
    let policy: Box<dyn Policy> = Box::new(Doubles(LIMIT));
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    assert!(GROWS.set(trigger).is_ok(), "set once");
    let trigger = GROWS.get().expect("it was set");
    for _ in 0..2 {
        trigger.collected(NO_TIME);
        assert!(!trigger.poll(), "it fits: {trigger:?}");
    }
}
