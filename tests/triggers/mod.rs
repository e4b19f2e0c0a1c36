//! What is claimed of triggers, a file per family of claims. Two programs run them, one per mode.

mod announcing;
mod collecting;
mod cost;
mod crossings;
mod hidden;
mod lifetime;
mod policies;
mod several;
mod waiting;

use std::time::Duration;

use tally_alloc::policy::{Cycle, Policy};
use tally_alloc::{Totals, heap};

use crate::support::Claim;
use crate::{EXACT, GLOBAL};

/// Returns the claims of all files.
pub(crate) fn all() -> impl Iterator<Item = &'static Claim> {
    [
        announcing::CLAIMS,
        collecting::CLAIMS,
        cost::CLAIMS,
        crossings::CLAIMS,
        hidden::CLAIMS,
        lifetime::CLAIMS,
        policies::CLAIMS,
        several::CLAIMS,
        waiting::CLAIMS,
    ]
    .into_iter()
    .flatten()
}

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// What a collection took, where that does not matter.
const NO_TIME: Duration = Duration::ZERO;

fn truth() -> Totals {
    GLOBAL.inner().totals()
}

/// Returns the exact live bytes, with what this thread holds back published.
fn live() -> usize {
    heap().flush();
    heap().totals().live_bytes()
}

/// A limit a fixed step above what a collection has left: any crossing is followed by another.
struct Step {
    first: usize,
    step: usize,
}

impl Policy for Step {
    fn initial_limit(&self) -> usize {
        self.first
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        cycle.live_after + self.step
    }
}
