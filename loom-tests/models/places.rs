//! Where a counter's path differs from the heap's: places that pass to a new owner without notice.

use loom::sync::{Arc, Mutex};

use super::{explore, join, spawn};
use crate::ledger::Ledger;
use crate::operation::Operation::{self, Allocate, Deallocate};
use crate::place::{Name, Place};
use crate::shard::Shard;
use crate::sum::Sum;

/// Two places of one account, each behind a lock that stands for the one under which `ThreadLocal`
/// hands out numbers, and a shard for operations without a place. (Its own thread-locals are the
/// standard library's, which models cannot follow.)
struct Account {
    ledger: Ledger,
    places: [Place; 2],
    free: Mutex<()>,
    outside: Shard,
}

/// So that one block alone is not published.
const THRESHOLD: usize = 64;

impl Account {
    fn new() -> Self {
        let ledger = Ledger::new();
        ledger.terms.set_threshold(THRESHOLD);
        Self {
            ledger,
            places: [Place::new(), Place::new()],
            free: Mutex::new(()),
            outside: Shard::new(),
        }
    }

    /// As `Counter::count`, on a place by number.
    fn count(&self, place: usize, thread: Name, operation: Operation, bytes: usize) {
        let place = &self.places[place];
        if place.is_owned_by(thread) && place.count(operation, bytes) {
            return;
        }
        if !place.is_owned_by(thread) {
            let _ = place.take_over(&self.ledger, thread);
        }
        let _ = place.count_and_look(&self.ledger, operation, bytes);
    }

    fn sum(&self) -> Sum {
        Sum::of(|| self.places.iter().map(Place::shard).chain([&self.outside]))
    }
}

/// Two threads own the same place one after the other, in an order that is not known, and each leaves
/// something pending: the second finds all that the first has counted, nothing is published twice or
/// lost, and each one's own totals are its own.
#[test]
fn a_place_is_taken_over_with_what_its_last_owner_left_pending() {
    explore(3, || {
        let account = Arc::new(Account::new());
        let threads = [(1, 5), (2, 6)].map(|(name, bytes)| {
            spawn(&account, move |account| {
                let number = account.free.lock().unwrap();
                account.count(0, name, Allocate, bytes);
                account.count(0, name, Deallocate, 1);
                let own = account.places[0].owner_totals();
                assert_eq!(own.net_bytes(), bytes as isize - 1, "its own");
                drop(number);
            })
        });
        join(threads);
        assert_eq!(account.sum().totals.live_bytes(), 9);
        assert_eq!(
            account.ledger.terms.error_bound(),
            THRESHOLD - 1,
            "one place"
        );
        // What the first left pending came to light at the takeover; the second's is pending.
        let published = account.ledger.published.live_bytes();
        assert!(published == 4 || published == 5, "{published} published");
        let _ = account.places[0].flush(&account.ledger);
        assert_eq!(account.ledger.published.live_bytes(), 9);
    });
}

/// A block is added by a thread on one place and taken off by another on a second, or outside any
/// place by a thread that is past its end: a sum never sees the second without the first.
#[test]
fn a_sum_never_shows_a_block_taken_off_that_was_not_added() {
    for outside in [false, true] {
        explore(2, move || {
            let shared = Arc::new((Account::new(), Mutex::new(None)));
            let threads = [
                spawn(&shared, |(account, block)| {
                    account.count(0, 1, Allocate, 5);
                    *block.lock().unwrap() = Some(5);
                }),
                spawn(&shared, move |(account, block)| {
                    let Some(bytes) = block.lock().unwrap().take() else {
                        return;
                    };
                    if outside {
                        let ledger = &account.ledger;
                        let _ = ledger.publish_shared(&account.outside, Deallocate, bytes);
                    } else {
                        account.count(1, 2, Deallocate, bytes);
                    }
                }),
                spawn(&shared, |(account, _)| {
                    let seen = account.sum().totals;
                    assert!(seen.net_bytes() >= 0, "{seen:?}");
                    assert!(seen.net_blocks() >= 0, "{seen:?}");
                }),
            ];
            join(threads);
            let (account, block) = &*shared;
            let left = block.lock().unwrap().unwrap_or(0);
            assert_eq!(account.sum().totals.live_bytes(), left);
        });
    }
}
