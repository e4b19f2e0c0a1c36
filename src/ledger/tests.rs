//! How often a shard looks and publishes.

use super::*;
use crate::terms::DEFAULT_THRESHOLD;

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
    let mut room = ledger.admit(&shard, DEFAULT_THRESHOLD);
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
            room = ledger.settle(&shard, bytes).0;
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
