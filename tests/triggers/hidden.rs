//! What threads hold back neither hides a crossing from a publish, nor makes one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::thread;

use tally_alloc::{Evidence, Measure, Trigger, heap};

use super::{EXACT, KB, Step, live};
use crate::support::block::Block;
use crate::support::claims;

claims![
    one_publish_finds_what_64_parked_threads_hold_back,
    frees_that_outrun_their_allocations_do_not_delay_a_collection,
    frees_that_are_held_back_do_not_hasten_a_collection,
    frees_that_meet_a_sum_do_not_hasten_a_collection,
    the_overshoot_is_below_twice_the_bound_and_a_block_on_1_thread,
    the_overshoot_is_below_twice_the_bound_and_a_block_on_8_threads,
    the_overshoot_is_below_twice_the_bound_and_a_block_on_64_threads,
    the_overshoot_is_below_twice_the_bound_and_a_block_on_1000_threads,
];

/// Runs `parked` while as many threads are parked that have done `before`; what they leave is freed after.
fn park<T: Send>(threads: usize, before: impl Fn() -> T + Sync, parked: impl FnOnce()) {
    let barrier = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for _ in 0..threads {
            let start = thread::Builder::new().stack_size(64 * KB);
            let act = || {
                heap().flush();
                barrier.wait();
                let left = before();
                barrier.wait();
                barrier.wait();
                drop(left);
            };
            start.spawn_scoped(scope, act).expect("a thread");
        }
        barrier.wait();
        barrier.wait();
        // Whatever comes of it, the threads have to be let go.
        let outcome = catch_unwind(AssertUnwindSafe(parked));
        barrier.wait();
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
    });
}

/// Makes a trigger that is due once `above` bytes more are live than now.
fn due_at(above: usize) -> Trigger<'static, Step> {
    let policy = Step {
        first: live() + above,
        step: 1 << 40,
    };
    Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory")
}

fn one_publish_finds_what_64_parked_threads_hold_back() {
    let before = live();
    park(
        64,
        || Block::new(15_000),
        || {
            heap().flush();
            let hidden = heap().totals().live_bytes() - before;
            assert!(hidden >= 64 * 15_000, "{hidden} bytes are held back");
            let policy = Step {
                first: before + hidden + 50_000,
                step: 1 << 40,
            };
            let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
            assert!(!trigger.poll(), "50,000 bytes below: {trigger:?}");
            let below = Block::new(40_000);
            assert!(!trigger.poll(), "10,000 bytes below: {trigger:?}");
            let above = Block::new(40_000);
            assert!(trigger.poll(), "30,000 bytes above: {trigger:?}");
            let cause = trigger.report().cause.expect("it fired");
            let evidence = if EXACT {
                Evidence::Published
            } else {
                Evidence::Sum
            };
            assert_eq!(cause.evidence, evidence, "{cause:?}");
            assert!(cause.figure >= cause.limit, "{cause:?}");
            drop((below, above));
        },
    );
}

/// Blocks that parked threads hold back are freed here, which drives the published total below the truth by
/// as much, or below zero.
fn frees_that_outrun_their_allocations_do_not_delay_a_collection() {
    let blocks = std::sync::Mutex::new(Vec::with_capacity(64));
    park(
        64,
        || {
            let block = Block::new(15_000);
            blocks.lock().expect("no panic").push(block);
        },
        || {
            drop(std::mem::take(&mut *blocks.lock().expect("no panic")));
            let trigger = due_at(100_000);
            let below = Block::new(90_000);
            assert!(!trigger.poll(), "10,000 bytes below: {trigger:?}");
            let above = Block::new(30_000);
            let published = heap().live_bytes();
            assert!(
                trigger.poll(),
                "20,000 bytes above, {published} published: {trigger:?}"
            );
            drop((below, above));
        },
    );
}

/// Parked threads have freed blocks of this one and not said so: the published total is above the limit,
/// and what is live is not.
fn frees_that_are_held_back_do_not_hasten_a_collection() {
    let blocks: Vec<_> = (0..64).map(|_| Block::new(15_000)).collect();
    let blocks = std::sync::Mutex::new(blocks);
    live();
    park(
        64,
        || {
            let block = blocks.lock().expect("no panic").pop();
            drop(block);
        },
        || {
            let trigger = due_at(100_000);
            let below = Block::new(90_000);
            let published = heap().live_bytes();
            assert!(
                EXACT || published >= trigger.limit(),
                "{published} bytes are published: {trigger:?}"
            );
            assert!(!trigger.poll(), "10,000 bytes below: {trigger:?}");
            let above = Block::new(20_000);
            assert!(trigger.poll(), "10,000 bytes above: {trigger:?}");
            drop((below, above));
        },
    );
}

/// Each thread frees its block before it allocates the next, and publishes both. Whoever sums up meanwhile can
/// see the new block and not that the old one went.
fn frees_that_meet_a_sum_do_not_hasten_a_collection() {
    const THREADS: usize = 8;
    // So little that a sum which meets a few of them is not taken again.
    const BLOCK: usize = 2 * KB;
    heap().set_threshold(KB).expect("a valid threshold");
    let barrier = Barrier::new(THREADS + 1);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut held = Vec::with_capacity(1);
                held.push(Block::new(BLOCK));
                barrier.wait();
                barrier.wait();
                for _ in 0..20_000 {
                    held.clear();
                    held.push(Block::new(BLOCK));
                }
                barrier.wait();
                barrier.wait();
                drop(held);
            });
        }
        barrier.wait();
        let trigger = due_at(BLOCK / 2);
        barrier.wait();
        barrier.wait();
        let early = trigger.poll();
        barrier.wait();
        assert!(
            !early,
            "a block is allocated when one is freed: {trigger:?}"
        );
    });
}

/// Each thread first frees, then allocates all that it can without publishing. That is the worst there is:
/// the limit was reached by the first byte.
fn overshoot(threads: usize) {
    let most = heap().threshold() - 1;
    let blocks: Vec<_> = (0..threads).map(|_| Block::new(most)).collect();
    let blocks = std::sync::Mutex::new(blocks);
    let barrier = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for _ in 0..threads {
            let start = thread::Builder::new().stack_size(64 * KB);
            let act = || {
                heap().flush();
                barrier.wait();
                let block = blocks.lock().expect("no panic").pop();
                drop(block);
                barrier.wait();
                barrier.wait();
                let held = [Block::new(most), Block::new(most)];
                barrier.wait();
                barrier.wait();
                drop(held);
            };
            start.spawn_scoped(scope, act).expect("a thread");
        }
        barrier.wait();
        barrier.wait();
        let trigger = due_at(1);
        barrier.wait();
        barrier.wait();
        let early = trigger.poll();
        let _last = Block::new(heap().threshold());
        let due = early || trigger.poll();
        let bound = heap().error_bound();
        barrier.wait();
        let cause = trigger.report().cause;
        let cause = cause.filter(|_| due).expect("it fired");
        let (above, block) = (cause.figure - cause.limit, heap().threshold());
        if EXACT {
            let most = threads * block;
            assert!(above < most, "above by {above}, a block each are {most}");
        } else {
            assert!(!early, "nobody has published: {cause:?}");
            assert!(
                above + KB >= 2 * threads * most,
                "above by {above} only: the worst was not met"
            );
            assert!(
                above < 2 * bound + block,
                "above by {above}, the bound is {bound} and the block {block}"
            );
        }
    });
}

fn the_overshoot_is_below_twice_the_bound_and_a_block_on_1_thread() {
    overshoot(1);
}

fn the_overshoot_is_below_twice_the_bound_and_a_block_on_8_threads() {
    overshoot(8);
}

fn the_overshoot_is_below_twice_the_bound_and_a_block_on_64_threads() {
    overshoot(64);
}

fn the_overshoot_is_below_twice_the_bound_and_a_block_on_1000_threads() {
    overshoot(1_000);
}
