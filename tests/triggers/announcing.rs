//! A request that is announced takes one collection, and is then served or refused.

use tally_alloc::policy::{FixedLimit, Policy, Proportional};
use tally_alloc::{Announcement, Evidence, Measure, Trigger, heap};

use super::{MB, NO_TIME, live};
use crate::support::block::Block;
use crate::support::claims;

claims![
    a_request_beyond_the_limit_takes_one_collection_and_then_fits,
    a_request_that_the_policy_refuses_takes_one_collection_however_often_it_is_made,
    a_request_that_fits_takes_none,
    a_request_during_a_collection_is_taken_into_account_by_it,
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
