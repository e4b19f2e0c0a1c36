//! What shards and the shared totals do to each other.

use loom::sync::Arc;

use super::{Owner, Pair, explore, join, spawn};
use crate::account::Account;
use crate::operation::Operation::{Allocate, Deallocate};
use crate::sum::Sum;
use crate::watch::Watched;

/// Two threads publish into one ledger; when they are done it holds what both counted.
#[test]
fn publishing_loses_nothing() {
    explore(3, || {
        let pair = Pair::under(8);
        let threads = [0, 1].map(|which| {
            spawn(&pair, move |pair| {
                let owner = pair.owner(which);
                owner.count(Allocate, 5);
                owner.count(Allocate, 5);
                owner.count(Deallocate, 1);
                owner.leave();
            })
        });
        join(threads);
        let totals = Sum::of(|| pair.shards.iter()).totals;
        assert_eq!(totals.live_bytes(), 18, "counted");
        assert_eq!(pair.ledger.published.live_bytes(), 18, "published");
        assert_eq!(pair.ledger.published.live_blocks(), 2, "published");
        assert_eq!(pair.ledger.terms.error_bound(), 0, "nobody is left");
    });
}

/// Two threads come and go, overlapping on two shards or one after the other on the same one, which
/// goes on from the counters it has.
#[test]
fn publishing_loses_nothing_through_recycling() {
    explore(2, || {
        let account = Arc::new(Account::new());
        account.ledger.terms.set_threshold(8);
        let come_and_go = |account: &Account| {
            let (shard, room) = account.claim(8).expect("the first slab has room");
            let owner = Owner::new(&account.ledger, shard, room);
            owner.count(Allocate, 5);
            owner.count(Allocate, 5);
            account.release(owner.shard);
        };
        let threads = [spawn(&account, come_and_go), spawn(&account, come_and_go)];
        join(threads);
        assert_eq!(account.sum().totals.live_bytes(), 20, "counted");
        assert_eq!(account.sum().totals.live_blocks(), 4, "counted");
        assert_eq!(account.ledger.published.live_bytes(), 20, "published");
        assert_eq!(account.ledger.terms.error_bound(), 0, "nobody is left");
    });
}

/// What a thread does after it has handed its shard back goes, like everybody's, into the shared
/// shard, and is in the totals and published.
#[test]
fn late_operations_after_a_shard_was_handed_back_are_counted() {
    explore(2, || {
        let account = Arc::new(Account::new());
        let end = |account: &Account| {
            let (shard, _room) = account.claim(8).expect("the first slab has room");
            shard.count(Allocate, 5);
            account.release(shard);
            account.count_outside(Deallocate, 5);
            account.count_outside(Allocate, 3);
        };
        let threads = [spawn(&account, end), spawn(&account, end)];
        join(threads);
        let totals = account.sum().totals;
        assert_eq!(
            (totals.bytes_allocated, totals.bytes_deallocated),
            (16, 10),
            "counted"
        );
        assert_eq!((totals.allocations, totals.deallocations), (4, 2));
        assert_eq!(account.ledger.published.live_bytes(), 6, "published");
        assert_eq!(
            account.publishes(),
            6,
            "one write for each of six operations"
        );
        assert_eq!(account.ledger.terms.error_bound(), 0, "nobody is left");
    });
}
