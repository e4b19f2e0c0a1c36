//! The listing of threads, for a page that people look at.

use crate::account::Account;
use crate::identity;
use crate::totals::Totals;

/// What a living thread has done, as [`Heap::threads`](crate::Heap::threads) found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadReading {
    /// On Linux and Android the operating system's id of the thread, as `gettid` gives it. Elsewhere its number among the
    /// threads that have allocated, from 1, in the order in which they first did.
    pub id: u64,
    /// On Linux and Android the name that the operating system has for the thread, at most 15 bytes of the one
    /// that it was started with. `None` elsewhere, when the thread ended during the call, and when `/proc` cannot be read.
    pub name: Option<String>,
    /// What the thread itself has done since it started. It may free what others allocated, so ask for
    /// [`net_bytes`](Totals::net_bytes) rather than `live_bytes`.
    pub totals: Totals,
}

/// Lists the threads that have a shard of `account`.
pub(crate) fn readings(account: &Account) -> Vec<ThreadReading> {
    let sittings = account
        .seats()
        .filter_map(|seat| Some((seat, seat.sitting()?)));
    sittings
        .map(|(seat, sitting)| ThreadReading {
            id: sitting.thread as u64,
            // A thread gets up before its id can go to another; while it has not, the name is its own.
            name: identity::name(sitting.thread).filter(|_| seat.still_has(&sitting)),
            totals: sitting.totals,
        })
        .collect()
}
