//! That live bytes stay within a hard limit.

use super::{Pair, explore, join, spawn};
use crate::hard_limit::Admission;
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
            if pair.ledger.admit_exact(8) == Admission::Reserved {
                let _attention = pair.ledger.count_reserved(shard, Allocate, 8);
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
                    Admission::Reserved => {
                        let _attention = pair.ledger.count_reserved(shard, Allocate, 6);
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
                match pair.ledger.admit_batched(owner.shard, 60) {
                    Admission::Reserved => {
                        owner.shard.count(Allocate, 60);
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
