//! `Totals`: what an account has seen so far, as five plain numbers.

use std::fmt;
use std::ops::Sub;

use crate::units::{Bytes, NetBytes};

/// What an account has seen since it began.
///
/// All five figures only ever grow, so the change over a stretch of work is the
/// difference of two readings: `later - earlier`.
///
/// Bytes are the bytes *requested* (`Layout::size`), not what the allocator
/// rounds them up to. A `realloc` is one delta: growing adds to
/// `bytes_allocated`, shrinking adds to `bytes_deallocated`, and either way it
/// adds one to `reallocations` and nothing to the block counts.
///
/// # Range
///
/// The counters are as wide as a pointer and wrap. Every difference is right as
/// long as less than `usize::MAX` bytes pass between its two readings: always on
/// a 64-bit target, 4 GiB on a 32-bit one. What is live is itself such a
/// difference, so it is right for ever.
///
/// # Display
///
/// `{}` is one line in human units: every byte below 10 KiB, from there on three significant digits, off by at
/// most 0.5 %. `{:#}` is a listing in several lines that has the exact figures as well. What is live is shown as
/// [`net_bytes`](Self::net_bytes) and [`net_blocks`](Self::net_blocks), below zero where they are. Neither
/// allocates by itself.
///
/// ```
/// # use tally_alloc::Totals;
/// let mut totals = Totals::default();
/// (totals.bytes_allocated, totals.allocations) = (3_500_000, 4_000);
/// (totals.bytes_deallocated, totals.deallocations) = (1_402_848, 3_000);
/// totals.reallocations = 12;
/// assert_eq!(
///     totals.to_string(),
///     "2.00 MiB live in 1000 blocks (3.34 MiB allocated in 4000, 1.34 MiB freed in 3000, 12 resized)"
/// );
/// ```
///
/// # Serde
///
/// With the feature `serde`, a map of the five public fields under their names, which are stable. Fields that a
/// later version adds are ignored by this one.
///
/// # Examples
///
/// ```
/// use tally_alloc::{Totals, heap};
///
/// let before = heap().thread_totals();
/// let text = String::from("counted when the allocator is installed");
/// let change: Totals = heap().thread_totals() - before;
/// assert!(change.bytes_allocated == 0 || change.bytes_allocated >= text.len());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct Totals {
    /// Bytes handed out, by allocations and by reallocations that grew.
    pub bytes_allocated: usize,
    /// Bytes taken back, by deallocations and by reallocations that shrank.
    pub bytes_deallocated: usize,
    /// Blocks handed out.
    pub allocations: usize,
    /// Blocks taken back.
    pub deallocations: usize,
    /// Blocks resized, up, down or to the size they had.
    pub reallocations: usize,
}

impl Totals {
    /// Returns the bytes allocated and not yet deallocated.
    ///
    /// For the totals of a whole account this is what is live. The totals of one
    /// thread, and the difference of two readings, can come out below zero (a
    /// thread may free what others allocated); ask [`net_bytes`](Self::net_bytes)
    /// there, since this figure then wraps around.
    #[must_use]
    pub const fn live_bytes(&self) -> usize {
        self.bytes_allocated.wrapping_sub(self.bytes_deallocated)
    }

    /// Returns the blocks allocated and not yet deallocated; the note on
    /// [`live_bytes`](Self::live_bytes) applies.
    #[must_use]
    pub const fn live_blocks(&self) -> usize {
        self.allocations.wrapping_sub(self.deallocations)
    }

    /// Returns the bytes allocated less the bytes deallocated, as a signed number: right as long as it is between
    /// `isize::MIN` and `isize::MAX`, always on a 64-bit target, below 2 GiB on a 32-bit one.
    #[must_use]
    pub const fn net_bytes(&self) -> isize {
        self.live_bytes().cast_signed()
    }

    /// Returns the blocks allocated less the blocks deallocated, as a signed number; the note on
    /// [`net_bytes`](Self::net_bytes) applies.
    #[must_use]
    pub const fn net_blocks(&self) -> isize {
        self.live_blocks().cast_signed()
    }
}

/// `later - earlier`: what happened between two readings, modulo the width of a
/// pointer.
impl Sub for Totals {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            bytes_allocated: self.bytes_allocated.wrapping_sub(earlier.bytes_allocated),
            bytes_deallocated: self
                .bytes_deallocated
                .wrapping_sub(earlier.bytes_deallocated),
            allocations: self.allocations.wrapping_sub(earlier.allocations),
            deallocations: self.deallocations.wrapping_sub(earlier.deallocations),
            reallocations: self.reallocations.wrapping_sub(earlier.reallocations),
        }
    }
}

/// See [above](Totals#display).
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (net, allocated, freed) = (
            NetBytes(self.net_bytes()),
            Bytes::from(self.bytes_allocated),
            Bytes::from(self.bytes_deallocated),
        );
        let (blocks, allocations, deallocations, reallocations) = (
            self.net_blocks(),
            self.allocations,
            self.deallocations,
            self.reallocations,
        );
        if f.alternate() {
            // Columns for less than a petabyte and for less than a trillion blocks; what is larger is shown in full.
            writeln!(
                f,
                "live      {:>15} B in {blocks:>12} blocks ({net})",
                self.net_bytes()
            )?;
            writeln!(
                f,
                "allocated {:>15} B in {allocations:>12} blocks ({allocated})",
                self.bytes_allocated
            )?;
            writeln!(
                f,
                "freed     {:>15} B in {deallocations:>12} blocks ({freed})",
                self.bytes_deallocated
            )?;
            write!(f, "resized   {:20} {reallocations:>12} blocks", "")
        } else {
            write!(
                f,
                "{net} live in {blocks} blocks ({allocated} allocated in {allocations}, \
                 {freed} freed in {deallocations}, {reallocations} resized)"
            )
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Totals;

    #[test]
    fn a_difference_is_right_across_the_wrap_of_a_counter() {
        let earlier = Totals {
            bytes_allocated: usize::MAX - 9,
            bytes_deallocated: usize::MAX - 99,
            allocations: usize::MAX,
            ..Totals::default()
        };
        let later = Totals {
            bytes_allocated: 90,
            bytes_deallocated: 50,
            allocations: 3,
            ..Totals::default()
        };
        let change = later - earlier;
        assert_eq!(
            (change.bytes_allocated, change.bytes_deallocated),
            (100, 150)
        );
        assert_eq!(change.net_bytes(), -50);
        assert_eq!(change.allocations, 4);
        assert_eq!(earlier.live_bytes(), 90, "live is right across the wrap");
        assert_eq!(later.live_bytes(), 40);
    }
}
