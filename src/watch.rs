//! What a trigger needs of an account: its ledger, and the exact sum of its shards.

use crate::ledger::{Attention, Ledger};
use crate::sum::Sum;

/// An account that a [`Trigger`](crate::Trigger) can watch: the [`Heap`](crate::Heap), or a counter of
/// one's own. The trait is sealed.
#[expect(private_bounds, reason = "this is how it is sealed")]
pub trait Watch: Watched {}

pub(crate) trait Watched: Sync {
    fn ledger(&self) -> &Ledger;

    fn sum(&self) -> Sum;

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
