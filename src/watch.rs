//! What is known of an account, whichever it is: its ledger, and the exact sums of its shards.

use crate::ledger::{Attention, Ledger};
use crate::sum::Sum;

/// An account that a [`Trigger`](crate::Trigger) or an exporter can watch: the [`Heap`](crate::Heap), or a counter of
/// one's own. The trait is sealed.
#[expect(private_bounds, reason = "this is how it is sealed")]
pub trait Watch: Watched {}

pub(crate) trait Watched: Sync {
    fn ledger(&self) -> &Ledger;

    fn sum(&self) -> Sum;

    /// Returns how often anyone has written to the shared line.
    fn publishes(&self) -> usize;

    /// Decides about limits if a publish came near one. The caller's own state is settled.
    #[inline(always)]
    fn attend(&self, attention: Attention) {
        if attention == Attention::Needed {
            self.consult();
        }
    }

    #[cold]
    #[inline(never)]
    fn consult(&self) {
        self.ledger().consult(|| self.sum());
    }
}
