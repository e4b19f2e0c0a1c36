//! What a reader sees while threads run: never below what was live throughout, never above it by more
//! than was freed meanwhile, never going back.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::sync_channel;
use std::thread;

use tally_alloc::{Totals, heap};

use super::{assert_exact, truth, wait_until_alone};
use crate::EXACT;
use crate::support::block::Block;
use crate::support::claims;
use crate::support::{Numbers, SetAtEnd};

claims![
    totals_are_never_below_what_is_live_throughout,
    totals_are_above_live_by_no_more_than_was_freed_meanwhile,
    totals_of_handed_over_blocks_are_never_negative,
    no_field_of_the_totals_ever_goes_back,
    the_changes_between_a_million_readings_add_up,
    published_live_stays_within_the_bound_while_threads_run,
];

/// Runs `read` again and again until it has run `times` times, while `threads` threads run `work`.
fn beside(
    threads: usize,
    work: impl Fn(usize, &AtomicBool) + Sync,
    times: usize,
    mut read: impl FnMut(),
) {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for index in 0..threads {
            let (work, ended) = (&work, &ended);
            scope.spawn(move || work(index, ended));
        }
        let _ended = SetAtEnd(&ended);
        for _ in 0..times {
            read();
        }
    });
    wait_until_alone();
    assert_exact();
}

fn churn(seed: usize, ended: &AtomicBool) {
    let mut numbers = Numbers::from(seed);
    let mut kept = Vec::with_capacity(64);
    while !ended.load(Relaxed) {
        let mut block = Block::new(numbers.within(1..10_000));
        if numbers.within(0..4) == 0 {
            assert!(block.resize(numbers.within(1..20_000)));
        }
        kept.push(block);
        if kept.len() == 64 {
            kept.truncate(numbers.within(0..64));
        }
    }
}

/// Two producers and their consumers: every block is freed by another thread than allocated it.
fn hand_over(index: usize, ended: &AtomicBool) {
    let (sender, receiver) = sync_channel::<Block>(8);
    thread::scope(|scope| {
        scope.spawn(move || receiver.into_iter().for_each(drop));
        let mut numbers = Numbers::from(index);
        while !ended.load(Relaxed) {
            sender.send(Block::new(numbers.within(1..30_000))).unwrap();
        }
        drop(sender);
    });
}

fn totals_are_never_below_what_is_live_throughout() {
    let kept: Vec<Block> = (0..1000).map(|_| Block::new(10_000)).collect();
    let (bytes, blocks) = (truth().live_bytes(), truth().live_blocks());
    let read = || {
        let now = heap().totals();
        assert!(
            now.live_bytes() >= bytes,
            "live {now:?}, {bytes} throughout"
        );
        assert!(
            now.live_blocks() >= blocks,
            "live {now:?}, {blocks} throughout"
        );
    };
    beside(2, churn, 100_000, read);
    beside(2, hand_over, 100_000, read);
    drop(kept);
    assert_exact();
}

fn totals_are_above_live_by_no_more_than_was_freed_meanwhile() {
    beside(3, churn, 100_000, || {
        let before = truth();
        let now = heap().totals();
        let after = truth();
        // The truth counts an allocation before, and a free after, the account does. So all that was
        // ever allocated, less all that was freed before we read, is live or was freed meanwhile. But
        // a block that shrinks has shrunk in truth before the account can say so: each thread may
        // be in the middle of that.
        let shrinking = 3 * 20_000;
        let most = after.bytes_allocated.wrapping_sub(before.bytes_deallocated) + shrinking;
        assert!(
            now.live_bytes() <= most,
            "{now:?} is above {most}: {before:?} before, {after:?} after"
        );
    });
}

fn totals_of_handed_over_blocks_are_never_negative() {
    beside(2, hand_over, 200_000, || {
        let now = heap().totals();
        assert!(now.net_bytes() >= 0, "{now:?}");
        assert!(now.net_blocks() >= 0, "{now:?}");
    });
}

fn assert_not_before(now: &Totals, last: &Totals) {
    let forward = now.bytes_allocated >= last.bytes_allocated
        && now.bytes_deallocated >= last.bytes_deallocated
        && now.allocations >= last.allocations
        && now.deallocations >= last.deallocations
        && now.reallocations >= last.reallocations;
    assert!(forward, "{last:?}, then {now:?}");
}

fn no_field_of_the_totals_ever_goes_back() {
    let mut last = heap().totals();
    let mut read = || {
        let now = heap().totals();
        assert_not_before(&now, &last);
        last = now;
    };
    beside(3, churn, 100_000, &mut read);
    beside(2, hand_over, 100_000, &mut read);
}

fn the_changes_between_a_million_readings_add_up() {
    let start = heap().totals();
    let mut last = start;
    let mut taken = Totals::default();
    beside(1, churn, 1_000_000, || {
        let now = heap().totals();
        let change = now - last;
        taken.bytes_allocated += change.bytes_allocated;
        taken.bytes_deallocated += change.bytes_deallocated;
        taken.allocations += change.allocations;
        taken.deallocations += change.deallocations;
        taken.reallocations += change.reallocations;
        last = now;
    });
    let end = heap().totals();
    let rest = end - last;
    taken.bytes_allocated += rest.bytes_allocated;
    taken.bytes_deallocated += rest.bytes_deallocated;
    taken.allocations += rest.allocations;
    taken.deallocations += rest.deallocations;
    taken.reallocations += rest.reallocations;
    assert_eq!(taken, end - start, "what was taken, and what there was");
    assert_eq!(end, truth());
}

fn published_live_stays_within_the_bound_while_threads_run() {
    // Each thread says how much it holds at the least and at the most, before and after it changes.
    let (least, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let resting = truth().live_bytes();
    let bound = if EXACT { 0 } else { 5 * heap().threshold() };
    // What the runtime holds for the threads themselves.
    const THREADS_THEMSELVES: usize = 32 * 1024;
    let work = |seed: usize, ended: &AtomicBool| {
        let mut numbers = Numbers::from(seed);
        while !ended.load(Relaxed) {
            let size = numbers.within(1..40_000);
            most.fetch_add(size, SeqCst);
            let block = Block::new(size);
            least.fetch_add(size, SeqCst);
            least.fetch_sub(size, SeqCst);
            drop(block);
            most.fetch_sub(size, SeqCst);
        }
    };
    beside(3, work, 300_000, || {
        let live = heap().live_bytes();
        assert!(
            live <= resting + 3 * 40_000 + bound + THREADS_THEMSELVES,
            "published {live}, at rest {resting}, bound {bound}"
        );
        assert!(
            live + bound >= resting,
            "published {live}, at rest {resting}, bound {bound}"
        );
    });
}
