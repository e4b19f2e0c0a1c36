//! An account whose threads come and go: a ledger, a registry of seats with a shard each, and one shard for
//! what happens outside any thread's own.
//!
//! The process's account is one `static` of this type ([`local`](crate::local)); models
//! make their own.

use crossbeam_utils::CachePadded;

use crate::identity;
use crate::ledger::{Attention, Ledger};
use crate::operation::Operation;
use crate::registry::Registry;
use crate::room::Room;
use crate::seat::Seat;
use crate::shard::Shard;
use crate::sum::Sum;
use crate::sync::const_fn;
use crate::watch::Watched;

/// Seats in a slab: the bits of a word. Models have two, so that they meet the end of a slab.
const SEATS: usize = if cfg!(loom) { 2 } else { usize::BITS as usize };

/// See the module.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) ledger: Ledger,
    seats: Registry<Seat, SEATS>,
    /// Counted into by any thread, with atomic adds, and published at once.
    outside: CachePadded<Shard>,
}

impl Account {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                ledger: Ledger::new(),
                seats: Registry::new(),
                outside: CachePadded::new(Shard::new()),
            }
        }
    }

    /// Hands a shard to the calling thread, under `threshold`; `None` when the system has
    /// no memory for one.
    pub(crate) fn claim(&self, threshold: usize) -> Option<(&Shard, Room)> {
        self.claim_as(identity::own(), threshold)
    }

    /// Hands a shard to a thread with this id.
    pub(crate) fn claim_as(&self, thread: usize, threshold: usize) -> Option<(&Shard, Room)> {
        let seat = self.seats.claim()?;
        let room = self.ledger.admit(&seat.shard, threshold);
        seat.sit_down(thread);
        Some((&seat.shard, room))
    }

    /// Takes a shard back from its owner and publishes what it had pending.
    pub(crate) fn release(&self, shard: &Shard) {
        let attention = self.ledger.dismiss(shard);
        self.seats.release_around(shard, Seat::get_up);
        self.attend(attention);
    }

    /// Counts an operation of a thread that has no shard: it is just claiming one, or it
    /// has handed it back already.
    pub(crate) fn publish_outside(&self, operation: Operation, bytes: usize) -> Attention {
        self.ledger.publish_shared(&self.outside, operation, bytes)
    }

    /// Does the same, and decides about limits that it came near.
    #[cfg(loom)]
    pub(crate) fn count_outside(&self, operation: Operation, bytes: usize) {
        self.attend(self.publish_outside(operation, bytes));
    }

    /// Returns whether anything was ever counted here.
    pub(crate) fn has_counted(&self) -> bool {
        self.seats.used().next().is_some() || self.outside.publishes() != 0
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        let seated = self.seats.used().map(|seat| &seat.shard);
        seated.chain(std::iter::once(&*self.outside))
    }

    /// Walks the seats that were ever taken.
    pub(crate) fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.seats.used()
    }

    /// Returns how many shards have an owner.
    #[cfg(loom)]
    pub(crate) fn owned(&self) -> usize {
        self.seats.owned()
    }
}

impl Watched for Account {
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn sum(&self) -> Sum {
        Sum::of(|| self.shards())
    }

    fn publishes(&self) -> usize {
        self.shards()
            .fold(0, |sum, shard| sum.wrapping_add(shard.publishes()))
    }
}
