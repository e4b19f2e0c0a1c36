//! What a sum shows while threads run on.

use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Release};

use super::{explore, join, spawn};
use crate::account::Account;
use crate::operation::Operation::{Allocate, Deallocate};
use crate::shard::Shard;
use crate::sum::Sum;
use crate::terms::DEFAULT_THRESHOLD;
use crate::watch::Watched;

/// Two shards, and a block on its way from the owner of the first to the owner of the second.
struct Handover {
    shards: [Shard; 2],
    handed: AtomicBool,
}

impl Handover {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            shards: [Shard::new(), Shard::new()],
            handed: AtomicBool::new(false),
        })
    }

    fn sum(&self) -> Sum {
        Sum::of(|| self.shards.iter())
    }
}

/// One thread allocates and hands the block to another, which frees it; a sum taken meanwhile
/// is never below the block that is live throughout.
fn allocate_here_free_there(bytes: usize) {
    const KEPT: isize = 3;
    explore(3, move || {
        let blocks = Handover::new();
        blocks.shards[0].count(Allocate, KEPT as usize);
        let giver = spawn(&blocks, move |blocks| {
            blocks.shards[0].count(Allocate, bytes);
            blocks.handed.store(true, Release);
        });
        let taker = spawn(&blocks, move |blocks| {
            if blocks.handed.load(Acquire) {
                blocks.shards[1].count(Deallocate, bytes);
            }
        });
        let reader = spawn(&blocks, move |blocks| {
            let sum = blocks.sum();
            let (live, live_blocks) = (sum.totals.net_bytes(), sum.totals.net_blocks());
            assert!(live >= KEPT, "{live} bytes shown, {KEPT} live throughout");
            assert!(
                live_blocks >= 1,
                "{live_blocks} blocks shown, 1 live throughout"
            );
            let most = KEPT.saturating_add_unsigned(bytes);
            let reached = live.saturating_sub_unsigned(sum.freed_bytes);
            assert!(
                reached <= most,
                "{reached} bytes called reached, {most} at most live"
            );
        });
        join([giver, taker, reader]);
    });
}

#[test]
fn a_sum_never_shows_a_free_without_its_allocation() {
    allocate_here_free_there(5);
}

/// As above, and the block is so large that the sum is taken again.
#[test]
fn a_sum_taken_again_never_shows_a_free_without_its_allocation() {
    allocate_here_free_there(DEFAULT_THRESHOLD + 1);
}

/// A block is freed, and only then, by another thread, a larger one allocated: the two were never
/// live together, and the lower figure of a sum never says so.
#[test]
fn the_lower_figure_of_a_sum_is_never_above_what_was_live() {
    explore(3, || {
        let blocks = Handover::new();
        blocks.shards[0].count(Allocate, 3);
        let first = spawn(&blocks, |blocks| {
            blocks.shards[0].count(Deallocate, 3);
            blocks.handed.store(true, Release);
        });
        let second = spawn(&blocks, |blocks| {
            if blocks.handed.load(Acquire) {
                blocks.shards[1].count(Allocate, 4);
            }
        });
        let reader = spawn(&blocks, |blocks| {
            let sum = blocks.sum();
            let reached = sum
                .totals
                .net_bytes()
                .saturating_sub_unsigned(sum.freed_bytes);
            assert!(
                reached <= 4,
                "{reached} bytes called reached, 4 at most live"
            );
            let blocks_reached = sum
                .totals
                .net_blocks()
                .saturating_sub_unsigned(sum.freed_blocks);
            assert!(
                blocks_reached <= 1,
                "{blocks_reached} blocks called reached, 1 at most live"
            );
        });
        join([first, second, reader]);
    });
}

/// The allocating thread claims its shard when the sum is under way already.
#[test]
fn a_sum_includes_a_shard_that_appeared_after_its_first_pass() {
    explore(2, || {
        let account = Arc::new((Account::new(), AtomicBool::new(false)));
        account.0.claim(8).expect("the first slab has room");
        let giver = spawn(&account, |(account, handed)| {
            let (shard, _room) = account.claim(8).expect("the first slab has room");
            shard.count(Allocate, 5);
            handed.store(true, Release);
        });
        let taker = spawn(&account, |(account, handed)| {
            if handed.load(Acquire) {
                account.count_outside(Deallocate, 5);
            }
        });
        let reader = spawn(&account, |(account, _)| {
            let live = account.sum().totals.net_bytes();
            assert!(live >= 0, "{live} bytes shown live");
        });
        join([giver, taker, reader]);
    });
}

/// A thread comes, counts and goes; no field of a later sum is below an earlier one's.
#[test]
fn successive_sums_never_go_back() {
    explore(2, || {
        let account = Arc::new(Account::new());
        let thread = spawn(&account, |account| {
            let (shard, _room) = account.claim(8).expect("the first slab has room");
            shard.count(Allocate, 5);
            shard.count(Deallocate, 5);
            account.release(shard);
        });
        let reader = spawn(&account, |account| {
            let [earlier, later] = [(); 2].map(|()| account.sum().totals);
            let (was, is) = (earlier.bytes_allocated, later.bytes_allocated);
            assert!(is >= was, "{was} bytes allocated, then {is}");
            let (was, is) = (earlier.bytes_deallocated, later.bytes_deallocated);
            assert!(is >= was, "{was} bytes deallocated, then {is}");
        });
        join([thread, reader]);
    });
}
