//! How often a shard looks and publishes.

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

/// Returns a shard under a threshold of 64, of a ledger with the same.
fn under_64() -> (Ledger, Shard) {
    let (ledger, shard) = (Ledger::new(), Shard::new());
    ledger.terms.set_threshold(64);
    ledger.admit(&shard, 64);
    (ledger, shard)
}

#[test]
fn a_reservation_of_any_size_that_is_given_back_leaves_what_was_pending() {
    for bytes in [64, 1 << 20, isize::MAX as usize - 10, isize::MAX as usize] {
        let (ledger, shard) = under_64();
        ledger
            .set_hard_limit(usize::MAX - 1)
            .expect("above what may be live");
        shard.count(Operation::Allocate, 50);
        let admission = ledger.admit_batched(&shard, bytes);
        assert_eq!(admission, Admission::Reserved, "{bytes} bytes");
        ledger.cancel_batched(&shard, bytes);
        assert_eq!(ledger.published.live_bytes(), 50, "after {bytes} bytes");
        assert_eq!(shard.published().bytes, 50, "after {bytes} bytes");
    }
}
