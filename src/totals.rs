//! `Totals`: what an account has seen so far, as five plain numbers.

use std::ops::Sub;

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

    /// Returns the bytes allocated less the bytes deallocated, as a signed number.
    #[must_use]
    pub const fn net_bytes(&self) -> isize {
        self.live_bytes().cast_signed()
    }

    /// Returns the blocks allocated less the blocks deallocated, as a signed number.
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
