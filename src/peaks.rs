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

/// What is kept for one scope.
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
        let _alone = self.restarting.lock();
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
        let _alone = self.restarting.lock();
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Kept, Peaks};
    use crate::operation::{Net, Operation};
    use crate::published::Published;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Publish(Operation, usize),
        Open,
        /// Of those that are open, by number, as far as there are so many.
        Close(usize),
        Reset,
    }

    fn steps() -> impl Strategy<Value = Step> {
        let operation = prop_oneof![Just(Operation::Allocate), Just(Operation::Deallocate)];
        prop_oneof![
            6 => (operation, 0..1_000_usize).prop_map(|(way, bytes)| Step::Publish(way, bytes)),
            2 => Just(Step::Open),
            1 => (0..8_usize).prop_map(Step::Close),
            1 => Just(Step::Reset),
        ]
    }

    proptest! {
        /// On either of two accounts, in any order, each scope has the highest total since it was opened, and the
        /// account has the highest since it was reset.
        #[test]
        fn each_peak_is_the_highest_total_since_its_own_moment(
            steps in vec((0..2_usize, steps()), 0..200),
        ) {
            let peaks = Peaks::new();
            let accounts = [Published::new(), Published::new()];
            // Live and peak of each account; account, place and peak of each scope.
            let mut figures = [(0_isize, 0_isize); 2];
            let mut scopes: Vec<(usize, &Kept, isize)> = Vec::new();
            for (account, step) in steps {
                let published = &accounts[account];
                let (live, peak) = &mut figures[account];
                match step {
                    Step::Publish(way, bytes) => {
                        let net = Net::of(way, bytes);
                        published.add(net, || 0);
                        *live += net.bytes;
                        *peak = (*live).max(*peak);
                        for (_, _, peak) in scopes.iter_mut().filter(|scope| scope.0 == account) {
                            *peak = (*live).max(*peak);
                        }
                    }
                    Step::Open => {
                        let kept = peaks.open(published).expect("memory");
                        scopes.push((account, kept, *live));
                    }
                    Step::Close(number) if number < scopes.len() => {
                        peaks.close(scopes.swap_remove(number).1);
                    }
                    Step::Close(_) => {}
                    Step::Reset => {
                        peaks.reset(published);
                        *peak = *live;
                    }
                }
                for (account, (_, peak)) in figures.iter().enumerate() {
                    let found = accounts[account].peak_bytes();
                    prop_assert_eq!(found, (*peak).max(0).cast_unsigned(), "{} after {:?}", account, step);
                }
                for (account, kept, peak) in &scopes {
                    let found = kept.peak_bytes(&accounts[*account]);
                    prop_assert_eq!(found, (*peak).max(0).cast_unsigned(), "{:?} after {:?}", kept, step);
                }
            }
        }
    }

    #[test]
    fn scopes_one_after_another_share_one_place() {
        let (peaks, published) = (Peaks::new(), Published::new());
        let first = peaks.open(&published).expect("memory");
        for _ in 0..1_000 {
            peaks.close(first);
            let next = peaks.open(&published).expect("memory");
            assert!(ptr::eq(first, next), "{next:?} is another place");
        }
        assert_eq!(peaks.kept.used().count(), 1);
    }
}
