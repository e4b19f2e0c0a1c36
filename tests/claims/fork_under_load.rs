//! Forks while other threads allocate all the time: the child has a copy of an account that other threads were in the
//! middle of changing, and goes on from it.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use tally_alloc::heap;

use super::{assert_exact, truth, wait_until_alone};
use crate::support::block::Block;
use crate::support::fork::in_a_fork;
use crate::support::pthread::{ROOMY, on_a_pthread, on_pthreads};
use crate::support::{Numbers, SetAtEnd, allow, claims};

claims![
    a_child_forked_while_threads_allocate_reads_what_was_live,
    a_child_forked_while_threads_hand_blocks_over_goes_on_from_there,
];

const THREADS: usize = 3;

/// Live throughout.
const HELD: usize = 1 << 20;

/// The largest block that a thread asks for while others fork.
const LARGEST: usize = 40_000;

/// How often a claim forks, unless `TALLY_ALLOC_FORKS` says otherwise.
const FORKS: usize = 40;

/// Runs `act` again and again on [`THREADS`] threads while children check the account that they find, by `check`,
/// and do some work of their own.
fn fork_beside(act: &(dyn Fn(&mut Numbers) + Sync), check: &dyn Fn()) {
    let forks = std::env::var("TALLY_ALLOC_FORKS");
    let forks = forks.map_or(FORKS, |text| text.parse().expect("a number"));
    allow(u32::try_from(forks.div_ceil(FORKS)).expect("fewer forks"));
    let held = Block::new(HELD);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let ended = &ended;
            scope.spawn(move || {
                let mut numbers = Numbers::from(seed);
                while !ended.load(Relaxed) {
                    act(&mut numbers);
                }
            });
        }
        let _ended = SetAtEnd(&ended);
        for _ in 0..forks {
            let status = in_a_fork(|| {
                check();
                let found = heap().totals();
                assert_eq!(found, heap().totals(), "nobody else is here");
                // What another thread was in the middle of is for ever half done, in the account or in the truth, so
                // what is compared with the truth is what the child does.
                let truth_found = truth();
                let mut mine = Block::new(100_000);
                assert!(mine.resize(50_000));
                on_a_pthread(&|_| drop(Block::new(LARGEST)));
                on_pthreads(4, ROOMY, &|index| drop(Block::zeroed(index + 15_000)));
                heap().flush();
                let (change, truth) = (heap().totals() - found, truth() - truth_found);
                assert_eq!(change, truth, "change (left) and truth (right)");
                drop(mine);
            });
            assert_eq!(status, 0, "the child's wait status");
        }
    });
    wait_until_alone();
    assert_exact();
    drop(held);
    assert_exact();
}

fn a_child_forked_while_threads_allocate_reads_what_was_live() {
    let work = |numbers: &mut Numbers| {
        let mut block = Block::new(numbers.within(1..LARGEST));
        assert!(block.resize(numbers.within(1..LARGEST)));
    };
    fork_beside(&work, &|| {
        let totals = heap().totals();
        let live = totals.net_bytes();
        assert!(
            live >= HELD.cast_signed(),
            "{live} bytes live, {HELD} throughout"
        );
        let most = HELD + THREADS * LARGEST + 100_000;
        assert!(
            totals.live_bytes() <= most,
            "{live} bytes live, {most} at most"
        );
        assert!(totals.net_blocks() > 0, "{totals:?}");
        let published = heap().live_bytes();
        let most = most + heap().error_bound() + THREADS * LARGEST;
        assert!(
            published <= most,
            "{published} bytes published, {most} at most"
        );
    });
}

fn a_child_forked_while_threads_hand_blocks_over_goes_on_from_there() {
    const SEATS: usize = 64;
    let seats = [const { Mutex::new(None) }; SEATS];
    let hand_over = |numbers: &mut Numbers| {
        let block = Block::new(numbers.within(1..LARGEST));
        let seat = &seats[numbers.within(0..SEATS)];
        let before = seat.lock().expect("no panic").replace(block);
        drop(before);
    };
    fork_beside(&hand_over, &|| {
        let totals = heap().totals();
        let live = totals.net_bytes();
        assert!(
            live >= HELD.cast_signed(),
            "{live} bytes live, {HELD} throughout"
        );
        let most = HELD + (SEATS + THREADS) * LARGEST + 100_000;
        assert!(
            totals.live_bytes() <= most,
            "{live} bytes live, {most} at most"
        );
    });
    drop(seats);
    assert_exact();
}
