//! How often a shard looks and publishes, and what that does to the error bound.

use super::*;
use crate::hard_limit::Admission;
use crate::terms::DEFAULT_THRESHOLD;
use crate::watermark::Measure;

/// Counts the looks and the publishes of a loop that frees what it allocates, on a thread with
/// `pending` bytes to begin with.
fn balanced_loop(pending: isize, bytes: usize, rounds: usize) -> (usize, usize) {
    let ledger = Ledger::new();
    let shard = Shard::new();
    let operation = if pending < 0 {
        Operation::Deallocate
    } else {
        Operation::Allocate
    };
    let room = ledger.admit(&shard, DEFAULT_THRESHOLD);
    shard.count(operation, pending.unsigned_abs());
    assert!(
        room.take(operation, pending.unsigned_abs()),
        "{pending} bytes fit"
    );
    let mut looks = 0;
    for operation in [Operation::Allocate, Operation::Deallocate].repeat(rounds) {
        let fits = room.take(operation, bytes);
        shard.count(operation, bytes);
        if !fits {
            looks += 1;
            let attention = ledger.settle(&shard, bytes, |anew| room.set(anew));
            assert_eq!(attention, Attention::None, "nothing is watched");
        }
    }
    (looks, shard.publishes())
}

#[test]
fn a_balanced_loop_looks_seldom_wherever_it_starts() {
    let most = DEFAULT_THRESHOLD as isize - 1;
    for pending in [-most, -most + 100, -most / 2, 0, most / 2, most - 100, most] {
        let (looks, publishes) = balanced_loop(pending, 64, 10_000);
        assert!(
            looks <= 20_000 / 64 + 1,
            "{looks} looks in 20,000 operations from {pending} bytes pending"
        );
        assert!(
            publishes <= 1,
            "{publishes} publishes from {pending} bytes pending"
        );
    }
}

#[test]
fn a_balanced_loop_of_blocks_just_under_the_threshold_does_not_publish() {
    let (looks, publishes) = balanced_loop(0, DEFAULT_THRESHOLD - 1, 10_000);
    assert_eq!(publishes, 0, "publishes, with {looks} looks");
}

/// Counts a block of `bytes` on a fresh shard and looks; returns the published bytes and blocks.
fn publish_a_block_of(bytes: usize, watched: Option<Measure>) -> (usize, usize) {
    let ledger = Ledger::new();
    let shard = Shard::new();
    ledger.admit(&shard, DEFAULT_THRESHOLD);
    if let Some(measure) = watched {
        let mark = ledger.claim_watermark().expect("the first of four");
        ledger.arm(mark, measure, usize::MAX / 16, 0);
    }
    shard.count(Operation::Allocate, bytes);
    let _far_from_the_limit = if ledger.is_large(&shard, bytes) {
        ledger.publish_large(&shard)
    } else {
        ledger.settle(&shard, bytes, |_| ())
    };
    let published = &ledger.published;
    (published.live_bytes(), published.live_blocks())
}

#[test]
fn blocks_are_published_with_the_bytes_only_while_a_trigger_watches_them() {
    const LARGE: usize = DEFAULT_THRESHOLD;
    assert_eq!(publish_a_block_of(LARGE, None), (LARGE, 0));
    assert_eq!(
        publish_a_block_of(LARGE, Some(Measure::LiveBytes)),
        (LARGE, 0)
    );
    assert_eq!(
        publish_a_block_of(LARGE, Some(Measure::LiveBlocks)),
        (LARGE, 1)
    );
    assert_eq!(
        publish_a_block_of(8, Some(Measure::LiveBlocks)),
        (0, 0),
        "nothing is due"
    );
}

#[test]
fn blocks_alone_are_published_when_a_sixteenth_of_the_threshold_is_pending() {
    let ledger = Ledger::new();
    let shard = Shard::new();
    ledger.terms.set_threshold(64);
    ledger.admit(&shard, 64);
    for (blocks, published) in [(3, 0), (4, 4), (5, 4), (8, 8)] {
        while shard.net().blocks < blocks {
            shard.count(Operation::Allocate, 1);
        }
        assert_eq!(ledger.settle(&shard, 1, |_| ()), Attention::None);
        assert_eq!(
            ledger.published.live_blocks(),
            published,
            "of {blocks} blocks"
        );
    }
    assert_eq!(ledger.published.live_bytes(), 0, "8 bytes are not due");
}

#[test]
fn large_operations_publish_their_blocks_when_a_sixteenth_of_the_threshold_is_pending() {
    let ledger = Ledger::new();
    let shard = Shard::new();
    ledger.terms.set_threshold(64);
    ledger.admit(&shard, 64);
    for (blocks, published) in [(1, 0), (3, 0), (4, 4), (7, 4), (8, 8)] {
        while shard.net().blocks < blocks {
            shard.count(Operation::Allocate, 64);
            assert!(ledger.is_large(&shard, 64), "as large as the threshold");
            assert_eq!(ledger.publish_large(&shard), Attention::None);
        }
        let live = &ledger.published;
        assert_eq!(live.live_blocks(), published, "of {blocks} blocks");
        assert_eq!(live.live_bytes(), 64 * blocks as usize, "every block");
    }
    ledger.terms.set_threshold(32);
    assert!(
        !ledger.is_large(&shard, 64),
        "it has to look, and come under the new threshold"
    );
}

#[test]
fn a_large_operation_that_evens_out_what_was_pending_writes_nothing() {
    let ledger = Ledger::new();
    let shard = Shard::new();
    ledger.admit(&shard, 64);
    for operation in [Operation::Deallocate, Operation::Allocate] {
        shard.count(operation, 64);
    }
    assert_eq!(ledger.publish_large(&shard), Attention::None);
    assert_eq!(shard.publishes(), 0, "writes to the shared line");
    let mark = ledger.claim_watermark().expect("the first of four");
    ledger.arm(mark, Measure::AllocatedBytes, usize::MAX / 16, 0);
    assert_eq!(
        ledger.publish_large(&shard),
        Attention::Needed,
        "while traffic is watched"
    );
}

#[test]
fn attention_is_needed_when_either_needs_it() {
    for (one, other) in [(false, false), (false, true), (true, false), (true, true)] {
        let both = Attention::if_any(one).or(Attention::if_any(other));
        assert_eq!(both, Attention::if_any(one || other), "{one} or {other}");
    }
}

/// Returns a shard under a threshold of 64, of a ledger with the same.
fn under_64() -> (Ledger, Shard) {
    let (ledger, shard) = (Ledger::new(), Shard::new());
    ledger.terms.set_threshold(64);
    ledger.admit(&shard, 64);
    (ledger, shard)
}

/// Looks; returns the room made, in both directions.
fn settle(ledger: &Ledger, shard: &Shard, bytes: usize) -> (usize, usize) {
    let room = Room::none();
    let attention = ledger.settle(shard, bytes, |anew| room.set(anew));
    assert_eq!(attention, Attention::None, "nothing is watched");
    room.into_parts()
}

#[test]
fn an_operation_under_a_quarter_of_the_threshold_publishes_from_three_quarters_on() {
    // Of 63 bytes that may be held back, 15 are a quarter.
    for (bytes, pending, due) in [
        (0, 48, false),
        (0, 49, true),
        (14, 48, false),
        (14, 49, true),
        (15, 49, false),
        (15, 63, false),
        (15, 64, true),
        (63, 63, false),
        (63, 8, false),
        (64, 8, true),
    ] {
        for operation in [Operation::Allocate, Operation::Deallocate] {
            let (ledger, shard) = under_64();
            shard.count(operation, pending);
            let room = settle(&ledger, &shard, bytes);
            let published = shard.published().bytes.unsigned_abs();
            let case = format!("{pending} pending at {operation:?} of {bytes}");
            assert_eq!(published, if due { pending } else { 0 }, "{case}");
            let left = 63 - (pending - published);
            let rooms = match operation {
                Operation::Allocate => (left, 63),
                _ => (63, left),
            };
            assert_eq!(room, rooms, "{case}");
        }
    }
}

#[test]
fn what_is_published_in_parts_adds_up() {
    let (ledger, shard) = under_64();
    for (bytes, published) in [(40, 40), (8, 48), (100, 148)] {
        shard.count(Operation::Allocate, bytes);
        let (room, attention) = ledger.flush(&shard);
        assert_eq!(attention, Attention::None);
        assert_eq!(room.into_parts(), (63, 63), "nothing is pending");
        assert_eq!(ledger.published.live_bytes(), published);
        assert_eq!(shard.net(), shard.published());
    }
    assert_eq!(shard.publishes(), 3, "writes to the shared line");
}

#[test]
fn the_bound_goes_with_the_threshold_that_a_shard_is_under() {
    let (ledger, shard) = under_64();
    assert_eq!(ledger.terms.error_bound(), 63);
    for threshold in [100, 100, 30, 64, 1, 64] {
        ledger.terms.set_threshold(threshold);
        let most = threshold - 1;
        assert_eq!(settle(&ledger, &shard, 0), (most, most), "by a look");
        assert_eq!(shard.threshold(), threshold);
        assert_eq!(ledger.terms.error_bound(), most);
    }
    for threshold in [100, 30, 64] {
        ledger.terms.set_threshold(threshold);
        let (room, _) = ledger.flush(&shard);
        let most = threshold - 1;
        assert_eq!(room.into_parts(), (most, most), "by a flush");
        assert_eq!(ledger.terms.error_bound(), most);
    }
    shard.count(Operation::Allocate, 40);
    assert_eq!(ledger.tighten(&shard), Attention::None);
    assert_eq!((shard.threshold(), ledger.terms.error_bound()), (1, 0));
    assert_eq!(ledger.published.live_bytes(), 40, "published before that");

    assert_eq!(settle(&ledger, &shard, 0), (63, 63), "and back");
    shard.count(Operation::Allocate, 8);
    assert_eq!(ledger.dismiss(&shard), Attention::None);
    assert_eq!((shard.threshold(), ledger.terms.error_bound()), (0, 0));
    assert_eq!(ledger.published.live_bytes(), 48, "published at the end");
}

#[test]
fn what_a_lower_threshold_does_not_permit_is_published_when_the_shard_comes_under_it() {
    let (ledger, shard) = under_64();
    shard.count(Operation::Allocate, 40);
    assert_eq!(settle(&ledger, &shard, 40), (23, 63), "40 pending of 63");
    ledger.terms.set_threshold(30);
    assert_eq!(settle(&ledger, &shard, 0), (29, 29));
    assert_eq!(ledger.published.live_bytes(), 40);
}

#[test]
fn near_the_hard_limit_a_shard_may_hold_back_a_sixteenth_of_what_is_left() {
    let (ledger, shard) = under_64();
    assert!(
        ledger.set_hard_limit(62).is_err(),
        "63 bytes may be live already"
    );
    ledger
        .set_hard_limit(63 + 160)
        .expect("above what may be live");
    assert_eq!(settle(&ledger, &shard, 0), (10, 10));
    assert_eq!((shard.threshold(), ledger.terms.error_bound()), (11, 10));

    // Of 213 bytes left below it.
    let newcomer = Shard::new();
    let room = ledger.admit(&newcomer, 64);
    assert_eq!(room.into_parts(), (13, 13));
    assert_eq!(ledger.terms.error_bound(), 10 + 13);

    ledger.terms.swap_hard_limit(usize::MAX);
    assert_eq!(settle(&ledger, &shard, 0), (63, 63), "without a limit");
    assert_eq!(ledger.terms.error_bound(), 63 + 13);
}

#[test]
fn a_shard_that_goes_over_from_exact_counting_has_nothing_pending() {
    let (ledger, shard) = (Ledger::new(), Shard::new());
    ledger.admit(&shard, 1);
    for bytes in [100, 50] {
        let attention = ledger.publish_one(&shard, Operation::Allocate, bytes);
        assert_eq!(attention, Attention::None);
    }
    assert_eq!(ledger.published.live_bytes(), 150);
    assert_eq!(ledger.published.live_blocks(), 2);
    Ledger::note_all_published(&shard);
    assert_eq!(ledger.publish(&shard), Attention::None);
    assert_eq!(ledger.published.live_bytes(), 150, "published once");
}

#[test]
fn a_reservation_of_any_size_that_is_given_back_leaves_what_was_pending() {
    for bytes in [64, 1 << 20, isize::MAX as usize - 10, isize::MAX as usize] {
        let (ledger, shard) = under_64();
        ledger
            .set_hard_limit(usize::MAX - 1)
            .expect("above what may be live");
        shard.count(Operation::Allocate, 50);
        let (Admission::Reserved(reserved), attention) = ledger.admit_batched(&shard, bytes) else {
            panic!("{bytes} bytes are not reserved");
        };
        assert_eq!(attention, Attention::None);
        let held_back = usize::from(shard.threshold() > 1) * 63;
        assert_eq!(ledger.terms.error_bound(), reserved + held_back);
        let live = ledger.published.live_bytes();
        assert_eq!(live + reserved, 50 + bytes, "all that would be published");
        ledger.release_reserved(reserved);
        assert_eq!(ledger.terms.error_bound(), held_back);
        assert_eq!(ledger.published.live_bytes(), live, "after {bytes} bytes");
    }
}

#[test]
fn what_stays_below_the_threshold_needs_no_leave_and_the_rest_reserves_all_that_it_publishes() {
    let (ledger, shard) = under_64();
    ledger
        .set_hard_limit(1 << 20)
        .expect("above what may be live");
    shard.count(Operation::Allocate, 200);
    assert_eq!(ledger.publish(&shard), Attention::None);
    shard.count(Operation::Allocate, 50);
    for (bytes, admission) in [
        (13, Admission::Free),
        (14, Admission::Reserved(64)),
        (1_000, Admission::Reserved(1_050)),
    ] {
        let answer = ledger.admit_batched(&shard, bytes);
        assert_eq!(answer, (admission, Attention::None), "{bytes} bytes");
        if let Admission::Reserved(reserved) = admission {
            assert_eq!(ledger.terms.error_bound(), 63 + reserved);
            ledger.release_reserved(reserved);
        }
        assert_eq!(ledger.published.live_bytes(), 200, "{bytes} bytes");
    }
}
