//! What a trigger tells `tracing`: see [`Trigger`](super::Trigger#tracing). Called on the threads that poll, wait and
//! collect, with no lock held; publishing threads never come here.

use tracing::debug;

use crate::policy::Cycle;
use crate::report::Cause;
use crate::watermark::Measure;

/// What subscribers filter by; it stays when the module is moved.
const TARGET: &str = "tally_alloc::trigger";

pub(super) fn fired(measure: Measure, cause: &Cause) {
    debug!(
        target: TARGET,
        measure = measure.name(),
        limit = cause.limit,
        figure = cause.figure,
        evidence = cause.evidence.name(),
        "collection due"
    );
}

pub(super) fn collected(measure: Measure, cycle: &Cycle, next_limit: usize) {
    debug!(
        target: TARGET,
        measure = measure.name(),
        pause_seconds = cycle.pause.as_secs_f64(),
        live_before = cycle.live_before,
        live_after = cycle.live_after,
        next_limit,
        "collected"
    );
}
