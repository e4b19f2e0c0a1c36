//! That live bytes stay within a hard limit.

use super::{Owner, Pair, explore, join, publish, spawn};
use crate::hard_limit::Admission;
use crate::ledger::Attention;
use crate::operation::Operation::{Allocate, Deallocate};

/// One thread allocates exactly, a whole block or none; another comes, widens the bound, and uses up
/// what room that gives it. Both look at the limit first.
#[test]
fn the_hard_limit_holds_while_threads_reserve_and_widen() {
    explore(3, || {
        let pair = Pair::under(8);
        pair.ledger.set_hard_limit(10).unwrap();
        let reserves = spawn(&pair, |pair| {
            let shard = &pair.shards[0];
            let _room = pair.ledger.admit(shard, 1);
            if let Admission::Reserved(reserved) = pair.ledger.admit_exact(8) {
                publish(&pair.ledger, shard, Allocate, 8);
                pair.ledger.release_reserved(reserved);
            }
        });
        let widens = spawn(&pair, |pair| {
            let shard = &pair.shards[1];
            // The share of one thread is small; here it takes all that the limit leaves.
            pair.ledger.terms.widen_bound(3);
            if pair.ledger.most_live() <= 10 {
                shard.count(Allocate, 3);
            } else {
                pair.ledger.terms.narrow_bound(3);
            }
        });
        join([reserves, widens]);
        let live: isize = pair.shards.iter().map(|shard| shard.net().bytes).sum();
        assert!(live <= 10, "{live} bytes are live under a limit of 10");
    });
}

/// One thread publishes what it has had pending, and goes on counting in the room that this leaves it; another reserves
/// all that was left. The first takes blocks that are within what it may hold back, without leave.
#[test]
fn the_hard_limit_holds_while_pending_bytes_are_published() {
    // A sixteenth of what is left at first is the threshold.
    const LIMIT: usize = 60;
    explore(2, || {
        let pair = Pair::under(4);
        // Set before there are threads, which would otherwise get a share of what is left only.
        let owner = pair.owner(0);
        owner.count(Allocate, 3);
        pair.ledger.set_hard_limit(LIMIT).unwrap();
        let batches = spawn(&pair, |pair| {
            let owner = Owner::resume(&pair.ledger, &pair.shards[0]);
            owner.flush();
            let (admission, _) = pair.ledger.admit_batched(owner.shard, 3);
            match admission {
                Admission::Free => owner.shard.count(Allocate, 3),
                Admission::Reserved(_) => owner.shard.count(Allocate, 3),
                Admission::Refused => {}
            }
        });
        let reserves = spawn(&pair, |pair| {
            let shard = &pair.shards[1];
            let _room = pair.ledger.admit(shard, 1);
            if let Admission::Reserved(reserved) = pair.ledger.admit_exact(LIMIT - 3) {
                publish(&pair.ledger, shard, Allocate, LIMIT - 3);
                pair.ledger.release_reserved(reserved);
            }
        });
        join([batches, reserves]);
        let live: isize = pair.shards.iter().map(|shard| shard.net().bytes).sum();
        assert!(
            live <= LIMIT as isize,
            "{live} bytes are live under a limit of {LIMIT}"
        );
    });
}

/// A thread widens the bound, as one that starts does, while a limit is set that has no place for that.
#[test]
fn a_limit_that_is_set_reckons_with_whoever_widens_meanwhile() {
    explore(3, || {
        let pair = Pair::under(8);
        let widens = spawn(&pair, |pair| {
            let shard = &pair.shards[0];
            let _room = pair.ledger.admit(shard, 8);
        });
        let sets = spawn(&pair, |pair| {
            let _is_set = pair.ledger.set_hard_limit(5);
        });
        join([widens, sets]);
        assert!(
            pair.ledger.is_within_limit(),
            "7 bytes are reckoned with, of 5"
        );
    });
}

/// Two threads reserve at once, and there is place for one.
#[test]
fn two_reservations_never_share_what_is_left_below_the_limit() {
    explore(3, || {
        let pair = Pair::under(1);
        pair.ledger.set_hard_limit(10).unwrap();
        let threads = [0, 1].map(|which| {
            spawn(&pair, move |pair| {
                let shard = &pair.shards[which];
                let _room = pair.ledger.admit(shard, 1);
                match pair.ledger.admit_exact(6) {
                    Admission::Reserved(reserved) => {
                        publish(&pair.ledger, shard, Allocate, 6);
                        pair.ledger.release_reserved(reserved);
                    }
                    refused => assert_eq!(refused, Admission::Refused),
                }
            })
        });
        join(threads);
        let live: isize = pair.shards.iter().map(|shard| shard.net().bytes).sum();
        assert_eq!(live, 6, "one of the two is served");
        assert_eq!(pair.ledger.published.live_bytes(), 6);
    });
}

/// A batch that reserves publishes what it had pending too, and one that is refused keeps its account.
#[test]
fn a_refused_reservation_leaves_the_account_as_it_was() {
    explore(1, || {
        let pair = Pair::under(4);
        pair.ledger.set_hard_limit(100).unwrap();
        let threads = [0, 1].map(|which| {
            spawn(&pair, move |pair: &Pair| {
                let owner = pair.owner(which);
                owner.count(Allocate, 3);
                let (admission, attention) = pair.ledger.admit_batched(owner.shard, 60);
                assert_eq!(attention, Attention::None);
                match admission {
                    Admission::Reserved(reserved) => {
                        owner.shard.count(Allocate, 60);
                        assert_eq!(pair.ledger.publish(owner.shard), Attention::None);
                        pair.ledger.release_reserved(reserved);
                        owner.count(Deallocate, 60);
                    }
                    refused => assert_eq!(refused, Admission::Refused),
                }
                owner.leave();
            })
        });
        join(threads);
        assert_eq!(pair.ledger.published.live_bytes(), 6);
        assert_eq!(pair.ledger.terms.error_bound(), 0);
    });
}
