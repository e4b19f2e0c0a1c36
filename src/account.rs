//! An account whose threads come and go: a ledger, a registry of shards, and one shard for
//! what happens outside any thread's own.
//!
//! The process's account is one `static` of this type ([`local`](crate::local)); models
//! make their own.

use crossbeam_utils::CachePadded;

use crate::ledger::Ledger;
use crate::operation::Operation;
use crate::registry::Registry;
use crate::room::Room;
use crate::shard::Shard;
use crate::sum::Sum;
use crate::sync::const_fn;
use crate::watch::Watched;

/// Shards in a slab: the bits of a word. Models have two, so that they meet the end of a slab.
const SHARDS: usize = if cfg!(loom) { 2 } else { usize::BITS as usize };

/// See the module.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) ledger: Ledger,
    shards: Registry<Shard, SHARDS>,
    /// Counted into by any thread, with atomic adds, and published at once.
    outside: CachePadded<Shard>,
}

impl Account {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                ledger: Ledger::new(),
                shards: Registry::new(),
                outside: CachePadded::new(Shard::new()),
            }
        }
    }

    /// Hands a shard to the calling thread, under `threshold`; `None` when the system has
    /// no memory for one.
    pub(crate) fn claim(&self, threshold: usize) -> Option<(&Shard, Room)> {
        let shard = self.shards.claim()?;
        Some((shard, self.ledger.admit(shard, threshold)))
    }

    /// Takes a shard back from its owner and publishes what it had pending.
    pub(crate) fn release(&self, shard: &Shard) {
        let attention = self.ledger.dismiss(shard);
        self.shards.release(shard);
        self.attend(attention);
    }

    /// Counts an operation of a thread that has no shard: it is just claiming one, or it
    /// has handed it back already.
    pub(crate) fn count_outside(&self, operation: Operation, bytes: usize) {
        self.attend(self.ledger.publish_shared(&self.outside, operation, bytes));
    }

    /// Counts an operation of a thread that has no shard and whose bytes were reserved.
    pub(crate) fn count_reserved_outside(&self, operation: Operation, bytes: usize) {
        let ledger = &self.ledger;
        self.attend(ledger.count_reserved_shared(&self.outside, operation, bytes));
    }

    /// Returns whether anything was ever counted here.
    pub(crate) fn has_counted(&self) -> bool {
        self.shards.used().next().is_some() || self.outside.publishes() != 0
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.used().chain(std::iter::once(&*self.outside))
    }

    /// Returns how many shards have an owner.
    #[cfg(loom)]
    pub(crate) fn owned(&self) -> usize {
        self.shards.owned()
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
