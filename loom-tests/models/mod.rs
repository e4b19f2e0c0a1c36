//! Models of the protocol: each is named as the claim it explores.
//!
//! # Who runs first
//!
//! Loom looks for another order of two steps when the later one meets the last access to the same
//! variable, and it remembers that one only. An owner that loads its counter and stores it back meets
//! its own load there, never the load of a reader that ran before it; so a model whose reader comes
//! first explores nothing at all. Loom goes on with a thread as long as it can and then takes the one
//! that was started first. Hence the rule here: the main thread does nothing between starting threads
//! and waiting for them, writers are started first and readers last, where every load may still
//! return any value that is not too old to be seen.

mod bound;
mod hard_limit;
mod modes;
mod peak;
mod places;
mod publishing;
mod registry;
mod sum;
mod trigger;

use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use crate::ledger::{Attention, Ledger};
use crate::operation::Operation;
use crate::room::Room;
use crate::shard::Shard;

/// Explores a model with at most `preemptions` switches away from a thread that could have gone on;
/// the values a load may return are explored without a bound. Every fault we have put in on purpose
/// shows with two; where three cost seconds only, a model takes three. `LOOM_MAX_PREEMPTIONS`
/// overrides the number.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(model);
}

/// Runs `work` on a thread of its own with a share in `shared`.
fn spawn<T: 'static, R: 'static>(
    shared: &Arc<T>,
    work: impl FnOnce(&T) -> R + 'static,
) -> JoinHandle<R> {
    let shared = shared.clone();
    thread::spawn(move || work(&shared))
}

/// Waits for threads, and fails with them.
fn join<const N: usize>(threads: [JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// A ledger and two shards, where a model needs no registry.
struct Pair {
    ledger: Ledger,
    shards: [Shard; 2],
}

impl Pair {
    /// Returns a ledger under `threshold` and its shards, which nobody owns yet.
    fn under(threshold: usize) -> Arc<Self> {
        let ledger = Ledger::new();
        ledger.terms.set_threshold(threshold);
        Arc::new(Self {
            ledger,
            shards: [Shard::new(), Shard::new()],
        })
    }

    fn owner(&self, which: usize) -> Owner<'_> {
        let shard = &self.shards[which];
        let room = self.ledger.admit(shard, self.ledger.terms.threshold());
        Owner::new(&self.ledger, shard, room)
    }
}

/// Counts an operation exactly.
fn publish(ledger: &Ledger, shard: &Shard, operation: Operation, bytes: usize) {
    let attention = ledger.publish_one(shard, operation, bytes);
    assert_eq!(attention, Attention::None);
}

/// The owner of a shard, who counts in batches as a thread does.
struct Owner<'a> {
    ledger: &'a Ledger,
    shard: &'a Shard,
    room: Room,
}

impl<'a> Owner<'a> {
    fn new(ledger: &'a Ledger, shard: &'a Shard, room: Room) -> Self {
        Self {
            ledger,
            shard,
            room,
        }
    }

    /// Goes on with a shard that another thread was admitted to and has passed on.
    fn resume(ledger: &'a Ledger, shard: &'a Shard) -> Self {
        let pending = shard.net() - shard.published();
        Self::new(
            ledger,
            shard,
            Room::around(pending.bytes, shard.threshold()),
        )
    }

    fn count(&self, operation: Operation, bytes: usize) {
        let fits = self.room.take(operation, bytes);
        self.shard.count(operation, bytes);
        if fits {
            return;
        }
        let ledger = self.ledger;
        let attention = if ledger.is_large(self.shard, bytes) {
            self.room.set(Room::around(0, self.shard.threshold()));
            ledger.publish_large(self.shard)
        } else {
            ledger.settle(self.shard, bytes, |room| self.room.set(room))
        };
        assert_eq!(attention, Attention::None);
    }

    fn flush(&self) {
        self.take_room(self.ledger.flush(self.shard));
    }

    fn leave(self) {
        assert_eq!(self.ledger.dismiss(self.shard), Attention::None);
    }

    /// No limit is armed in these models, so nothing calls for attention.
    fn take_room(&self, (room, attention): (Room, Attention)) {
        assert_eq!(attention, Attention::None);
        self.room.set(room);
    }
}
