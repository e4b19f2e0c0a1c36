//! How far the published total may be off.

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Acquire, Release};

use super::{Owner, Pair, explore, join, spawn};
use crate::operation::Operation::Allocate;

/// One thread's account, and what it has allocated, told to the reader after each operation.
struct Told {
    pair: Arc<Pair>,
    truth: AtomicUsize,
}

impl Told {
    fn under(threshold: usize) -> Arc<Self> {
        Arc::new(Self {
            pair: Pair::under(threshold),
            truth: AtomicUsize::new(0),
        })
    }

    fn allocate(&self, owner: &Owner<'_>, bytes: usize) {
        owner.count(Allocate, bytes);
        // One thread writes it.
        let truth = self.truth.load(Acquire) + bytes;
        self.truth.store(truth, Release);
    }

    /// What the reader was told of is published or within the bound: as it was just before the
    /// total was read, if a shard narrows meanwhile, or just after, if it widens.
    fn check(&self) {
        let ledger = &self.pair.ledger;
        let truth = self.truth.load(Acquire);
        let before = ledger.terms.error_bound();
        let live = ledger.published.live_bytes();
        let bound = before.max(ledger.terms.error_bound());
        assert!(
            truth <= live + bound,
            "{truth} bytes are live, {live} published, bound {bound}"
        );
    }

    fn check_at_rest(&self) {
        self.check();
        let (truth, live) = (
            self.truth.load(Acquire),
            self.pair.ledger.published.live_bytes(),
        );
        assert!(live <= truth, "{truth} bytes are live, {live} published");
    }
}

/// A reader sets another threshold while the owner counts and comes under it, and reads.
fn changes(from: usize, to: usize) {
    explore(3, move || {
        let told = Told::under(from);
        let shard = &told.pair.shards[0];
        told.pair.ledger.admit(shard, from);
        let owner = spawn(&told, |told| {
            let pair = &told.pair;
            let owner = Owner::resume(&pair.ledger, &pair.shards[0]);
            told.allocate(&owner, 3);
            told.allocate(&owner, 3);
            owner.flush();
            told.allocate(&owner, 1);
        });
        let reader = spawn(&told, move |told| {
            told.pair.ledger.terms.set_threshold(to);
            told.check();
        });
        join([owner, reader]);
        told.check_at_rest();

        let owner = Owner::resume(&told.pair.ledger, shard);
        owner.flush();
        assert_eq!(
            told.pair.ledger.terms.error_bound(),
            to - 1,
            "one shard in use"
        );
        for bytes in [to - 1, 1] {
            told.allocate(&owner, bytes);
            told.check_at_rest();
        }
        owner.leave();
        assert_eq!(told.pair.ledger.terms.error_bound(), 0, "nobody is left");
        told.check_at_rest();
    });
}

/// Up and down; in between, the owner may come under the new threshold at either of two looks.
#[test]
fn a_threshold_change_under_load_keeps_the_bound() {
    changes(4, 16);
    changes(16, 4);
}

#[test]
fn a_thread_that_comes_and_goes_keeps_the_bound() {
    explore(3, || {
        let told = Told::under(8);
        let owner = spawn(&told, |told| {
            let owner = told.pair.owner(0);
            told.allocate(&owner, 7);
            owner.leave();
        });
        let reader = spawn(&told, |told| told.check());
        join([owner, reader]);
        told.check_at_rest();
        assert_eq!(told.pair.ledger.terms.error_bound(), 0, "nobody is left");
    });
}

/// Two threads move the bound at once; it comes out as the sum over both.
#[test]
fn two_threads_that_change_threshold_add_up_in_the_bound() {
    explore(3, || {
        let pair = Pair::under(4);
        let threads = [0, 1].map(|which| {
            spawn(&pair, move |pair| {
                let owner = pair.owner(which);
                pair.ledger.terms.set_threshold(16);
                owner.count(Allocate, 3);
                owner.flush();
            })
        });
        join(threads);
        assert_eq!(pair.ledger.terms.error_bound(), 30, "two shards in use");
        for shard in &pair.shards {
            Owner::resume(&pair.ledger, shard).leave();
        }
        assert_eq!(pair.ledger.terms.error_bound(), 0, "nobody is left");
    });
}
