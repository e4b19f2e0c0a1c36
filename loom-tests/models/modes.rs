//! Exact counting and counting in batches on one ledger.

use super::{Owner, Pair, explore, join, publish, spawn};
use crate::ledger::Ledger;
use crate::operation::Operation::{Allocate, Deallocate, Grow, Shrink};
use crate::room::Room;
use crate::shard::Shard;
use crate::sum::Sum;

fn agree(pair: &Pair, bytes: usize, blocks: usize) {
    let totals = Sum::of(|| pair.shards.iter()).totals;
    assert_eq!(totals.live_bytes(), bytes, "counted");
    assert_eq!(totals.live_blocks(), blocks, "counted");
    assert_eq!(pair.ledger.published.live_bytes(), bytes, "published");
}

/// One thread counts exactly, the other in batches; with its batches out, the published total is
/// the exact sum.
#[test]
fn exact_counting_and_batches_agree_on_one_ledger() {
    explore(3, || {
        let pair = Pair::under(8);
        let exact = spawn(&pair, |pair| {
            let shard = &pair.shards[0];
            pair.ledger.admit(shard, 1);
            publish(&pair.ledger, shard, Allocate, 6);
            publish(&pair.ledger, shard, Shrink, 2);
            Ledger::note_all_published(shard);
            Owner::resume(&pair.ledger, shard).leave();
        });
        let batched = spawn(&pair, |pair| {
            let owner = pair.owner(1);
            owner.count(Allocate, 6);
            owner.count(Grow, 4);
            owner.leave();
        });
        join([exact, batched]);
        agree(&pair, 14, 2);
        assert_eq!(pair.ledger.terms.error_bound(), 0, "nobody is left");
    });
}

/// Goes over to exact counting as a thread does.
fn go_exact(owner: &Owner<'_>) {
    owner.take_room((Room::none(), owner.ledger.tighten(owner.shard)));
}

/// Goes back to batches as a thread does; its next operation looks.
fn go_batched(shard: &Shard) {
    Ledger::note_all_published(shard);
}

/// Two threads change between the modes, there and back; what each has pending at a change is
/// published once.
#[test]
fn a_shard_that_changes_modes_loses_nothing() {
    explore(2, || {
        let pair = Pair::under(8);
        let threads = [0, 1].map(|which| {
            spawn(&pair, move |pair| {
                let owner = pair.owner(which);
                owner.count(Allocate, 5);
                go_exact(&owner);
                publish(&pair.ledger, owner.shard, Deallocate, 3);
                go_batched(owner.shard);
                owner.count(Allocate, 4);
                owner.leave();
            })
        });
        join(threads);
        agree(&pair, 12, 2);
        assert_eq!(pair.ledger.terms.error_bound(), 0, "nobody is left");
    });
}
