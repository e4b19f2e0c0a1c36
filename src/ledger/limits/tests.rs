//! On what a limit is decided, with nobody else under way.

use super::*;
use crate::ledger::Attention;
use crate::operation::Operation;
use crate::shard::Shard;

/// For where the published total must decide, one way or the other.
fn no_sum() -> Sum {
    panic!("a sum is taken");
}

fn sum_of(shard: &Shard) -> Sum {
    Sum::of(|| [shard].into_iter())
}

fn armed_at(ledger: &Ledger, measure: Measure, limit: usize) -> &Watermark {
    let mark = ledger.claim_watermark().expect("the first of four");
    ledger.arm(mark, measure, limit, 0);
    mark
}

/// Takes the crossing: the figure that made it due, and how it was found.
fn taken(mark: &Watermark) -> (usize, Evidence) {
    let crossing = mark.take().expect("due");
    (crossing.figure, crossing.evidence)
}

#[test]
fn where_all_count_exactly_the_published_total_decides_alone() {
    for (measure, limit) in [(Measure::LiveBytes, 100), (Measure::LiveBlocks, 2)] {
        let (ledger, shard) = (Ledger::new(), Shard::new());
        let mark = armed_at(&ledger, measure, limit);
        let below = ledger.publish_one(&shard, Operation::Allocate, 99);
        assert_eq!(below, Attention::None, "{measure:?}");
        ledger.consult(no_sum);
        assert!(!mark.is_due(), "{measure:?} below its limit");

        let at = ledger.publish_one(&shard, Operation::Allocate, 1);
        assert_eq!(at, Attention::Needed, "{measure:?}");
        ledger.consult(no_sum);
        assert!(mark.is_due(), "{measure:?} at its limit");
        assert_eq!(taken(mark), (limit, Evidence::Published));
    }
}

#[test]
fn where_something_may_be_pending_the_sum_decides_from_the_bound_on() {
    let (ledger, shard) = (Ledger::new(), Shard::new());
    ledger.terms.set_threshold(64);
    ledger.admit(&shard, 64);
    let mark = armed_at(&ledger, Measure::LiveBytes, 100);
    for (bytes, attention) in [(36, Attention::None), (1, Attention::Needed)] {
        ledger.consult(no_sum);
        shard.count(Operation::Allocate, bytes);
        assert_eq!(ledger.publish(&shard), attention, "{bytes} more");
    }
    shard.count(Operation::Allocate, 62);
    ledger.consult(|| sum_of(&shard));
    assert!(!mark.is_due(), "at 99 of 100, of which 62 are pending");
    shard.count(Operation::Allocate, 1);
    ledger.consult(|| sum_of(&shard));
    assert!(mark.is_due(), "at 100 of 100, of which 63 are pending");
    assert_eq!(taken(mark), (100, Evidence::Sum));
}

#[test]
fn traffic_is_decided_by_the_sum_since_the_arming() {
    let (ledger, shard) = (Ledger::new(), Shard::new());
    let mark = ledger.claim_watermark().expect("the first of four");
    shard.count(Operation::Allocate, 30);
    ledger.arm(mark, Measure::AllocatedBytes, 100, 30);
    for bytes in [99, 1] {
        ledger.consult(|| sum_of(&shard));
        assert!(!mark.is_due(), "below its limit");
        let operations = [Operation::Allocate, Operation::Deallocate];
        for operation in operations {
            let attention = ledger.publish_one(&shard, operation, bytes);
            assert_eq!(attention, Attention::Needed, "every publish looks");
        }
    }
    ledger.consult(|| sum_of(&shard));
    assert_eq!(taken(mark), (100, Evidence::Sum));
}

#[test]
fn an_estimate_is_off_by_the_bound_in_bytes_and_by_twice_as_many_blocks() {
    let (ledger, shard) = (Ledger::new(), Shard::new());
    ledger.admit(&shard, 64);
    shard.count(Operation::Allocate, 50);
    assert_eq!(ledger.publish(&shard), Attention::None);
    for (measure, total, bound) in [(Measure::LiveBytes, 50, 63), (Measure::LiveBlocks, 1, 126)] {
        let estimate = ledger.estimate(measure).expect("it is published");
        assert_eq!((estimate.total, estimate.bound), (total, bound));
        assert_eq!(estimate.most(), total + bound);
        assert!(!estimate.exact, "{measure:?} may be pending");
    }
    assert!(ledger.estimate(Measure::AllocatedBytes).is_none());
    assert_eq!(ledger.dismiss(&shard), Attention::None);
    let estimate = ledger.estimate(Measure::LiveBytes).expect("as before");
    assert!(estimate.exact && estimate.most() == 50, "{estimate:?}");
}

#[test]
fn publishes_look_for_the_lowest_limit_in_force_and_no_longer_than_it_is() {
    let (ledger, shard) = (Ledger::new(), Shard::new());
    let high = armed_at(&ledger, Measure::LiveBytes, 100);
    let low = armed_at(&ledger, Measure::LiveBytes, 50);
    let blocks = armed_at(&ledger, Measure::LiveBlocks, 100);
    let traffic = armed_at(&ledger, Measure::AllocatedBytes, 100);
    let publish = |bytes| ledger.publish_one(&shard, Operation::Grow, bytes);
    let watched = || {
        let watched = ledger.terms.watched();
        (watched.blocks(), watched.traffic())
    };
    assert_eq!(watched(), (true, true));
    assert_eq!(publish(1), Attention::Needed, "all traffic");
    ledger.release_watermark(traffic);
    assert_eq!(watched(), (true, false));
    assert_eq!(publish(48), Attention::None, "49 of 50");
    assert_eq!(publish(1), Attention::Needed, "50 of 50");
    ledger.release_watermark(low);
    ledger.release_watermark(blocks);
    assert_eq!(watched(), (false, false));
    assert_eq!(publish(49), Attention::None, "99 of 100");
    assert_eq!(publish(1), Attention::Needed, "100 of 100");
    ledger.release_watermark(high);
    assert_eq!(publish(1), Attention::None, "without a limit");
}
