//! What a trigger answers.

use std::fmt;

/// What becomes of a request that was announced to a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Announcement {
    /// It fits below the limit.
    Fits,
    /// It does not, and a collection is due that will take it into account.
    Collect,
    /// It did not fit even after a collection that took it into account: the policy has refused it.
    Refused,
}

/// Why a trigger could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TriggerError {
    /// The system has no memory for what publishing threads have to see.
    OutOfMemory,
}

impl fmt::Display for TriggerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("no memory for another trigger"),
        }
    }
}

impl std::error::Error for TriggerError {}
