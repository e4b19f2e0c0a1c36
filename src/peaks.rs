//! Peaks since several moments at once, for the scopes that are open.
//!
//! # How one peak serves many
//!
//! Publishes raise one peak, and know of no scope. A scope that opens *restarts* it, so that from then on it is the
//! peak since that opening ([`Published::restart_peak`]); what it was goes first to every scope that is open, and to
//! the account itself. So each of them has
//!
//! > peak since my moment = the higher of what was kept for me and the one peak of now
//!
//! and an open scope costs an operation nothing. A scope that closes leaves the peak alone: whoever is older
//! loses nothing by its restarts.
//!
//! # Who keeps
//!
//! What is kept lies in slots of a [`Registry`], none of which is ever allocated: a scope that opens inside another
//! must not show in its figures. The slots are the process's, for scopes of any account, and each says whose it is. A
//! slot whose scope was never closed is raised for ever, and does no harm but to take its place.
//!
//! Openings and resets are one at a time, under a lock that no allocator method ever takes, and nothing in there
//! allocates or calls back. So a slot that was closed, which takes no lock, is not handed out again while an opening still
//! raises it. Readers take no lock: they rely on the order in which a restart keeps and takes down
//! ([`published`](crate::published)).
//!
//! # Memory orderings
//!
//! `account` and `peak` of a slot are written by who holds the lock, or has the slot alone: `Relaxed`.

use std::ptr;
use std::sync::PoisonError;

use crate::published::Published;
use crate::registry::{Registry, Slot};
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicUsize, Mutex, const_fn};

/// Slots in a slab: enough for a scope on each thread of a machine of today's size, in 2 KiB.
const SLOTS: usize = if cfg!(loom) { 2 } else { 16 };

/// The peaks of all scopes.
#[cfg(not(loom))]
pub(crate) static PEAKS: Peaks = Peaks::new();

/// See the module.
#[derive(Debug)]
pub(crate) struct Peaks {
    kept: Registry<Kept, SLOTS>,
    restarting: Mutex<()>,
}

/// What is kept for one scope. All zero while nobody has it.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The address of the published figures that it is of.
    account: AtomicUsize,
    /// The highest total from the opening to the last restart after it.
    peak: AtomicUsize,
}

// SAFETY: made of atomic integers, and a fresh one has zero in each.
#[allow(unsafe_code, reason = "promises that zero is a fresh slot")]
unsafe impl Slot for Kept {
    #[cfg(not(loom))]
    const FRESH: Self = Self::new();

    #[cfg(loom)]
    fn fresh() -> Self {
        Self::new()
    }
}

impl Kept {
    const_fn! {
        const fn new() -> Self {
            Self {
                account: AtomicUsize::new(0),
                peak: AtomicUsize::new(0),
            }
        }
    }

    fn is_of(&self, published: &Published) -> bool {
        self.account.load(Relaxed) == ptr::from_ref(published).addr()
    }

    /// Returns the highest live bytes since the opening.
    pub(crate) fn peak_bytes(&self, published: &Published) -> usize {
        published.peak_bytes_since(&self.peak)
    }
}

impl Peaks {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                kept: Registry::new(),
                restarting: Mutex::new(()),
            }
        }
    }

    /// Begins to keep a peak from now on; `None` when there is no memory for another.
    pub(crate) fn open(&self, published: &Published) -> Option<&Kept> {
        let _alone = self
            .restarting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let kept = self.kept.claim()?;
        let total = self.restart(published);
        kept.peak.store(total, Relaxed);
        // Only now, so that this restart has not raised it.
        kept.account.store(ptr::from_ref(published).addr(), Relaxed);
        Some(kept)
    }

    /// Ends what [`open`](Self::open) began.
    pub(crate) fn close(&self, kept: &Kept) {
        kept.account.store(0, Relaxed);
        self.kept.release(kept);
    }

    /// Forgets the account's own peak, and none that is kept.
    pub(crate) fn reset(&self, published: &Published) {
        let _alone = self
            .restarting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let total = self.restart(published);
        published.forget_earlier_peak(total);
    }

    fn restart(&self, published: &Published) -> usize {
        published.restart_peak(|peak| {
            for kept in self.kept.used().filter(|kept| kept.is_of(published)) {
                kept.peak.fetch_max(peak, Relaxed);
            }
        })
    }

    /// Returns what is kept for the scope that opened first, if there was one.
    #[cfg(loom)]
    pub(crate) fn first(&self) -> Option<&Kept> {
        self.kept.used().next()
    }
}
