//! What collecting costs in virtual time.
//!
//! A collection marks every live slot and slides every live chunk; what is dead costs nothing by
//! itself, since the sweep of a slot is a few instructions beside the cache miss of marking one.

use std::time::Duration;

/// Nanoseconds to mark one live slot: a cache miss that goes to memory, as measured for the workers
/// that the settings were tuned for.
pub const NANOSECONDS_PER_LIVE_SLOT: f64 = 80.0;

/// Nanoseconds to slide one live chunk byte: 2 GB/s, a copy that reads and writes memory within one
/// core's share of a server's bandwidth. An assumption, and a small part of the whole: a heap of half
/// slots and half chunks spends a sixth of its pause here.
pub const NANOSECONDS_PER_LIVE_CHUNK_BYTE: f64 = 0.5;

/// Bytes per slot (XS on a 64-bit machine).
pub const SLOT_BYTES: usize = 32;

/// Returns the pause of a collection that finds `slots` slots and `chunk_bytes` bytes live.
#[must_use]
pub fn pause(slots: usize, chunk_bytes: usize) -> Duration {
    let nanoseconds = slots as f64 * NANOSECONDS_PER_LIVE_SLOT
        + chunk_bytes as f64 * NANOSECONDS_PER_LIVE_CHUNK_BYTE;
    Duration::from_nanos(nanoseconds as u64)
}
