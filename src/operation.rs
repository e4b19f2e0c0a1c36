//! An operation on a block, and what it does to a total.

use std::ops::{Add, Sub};

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Allocate,
    Deallocate,
    /// A reallocation to the same size or a larger one.
    Grow,
    /// A reallocation to a smaller size.
    Shrink,
}

impl Operation {
    /// Splits a reallocation into what it is and the bytes by which it changed.
    #[inline(always)]
    pub(crate) const fn resize(old: usize, new: usize) -> (Self, usize) {
        if new >= old {
            (Self::Grow, new.wrapping_sub(old))
        } else {
            (Self::Shrink, old.wrapping_sub(new))
        }
    }

    #[inline(always)]
    pub(crate) const fn takes_back(self) -> bool {
        matches!(self, Self::Deallocate | Self::Shrink)
    }
}

/// Bytes and blocks by which a shared total has to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Net {
    pub(crate) bytes: isize,
    pub(crate) blocks: isize,
}

impl Net {
    /// The effect of one operation.
    #[inline(always)]
    pub(crate) const fn of(operation: Operation, bytes: usize) -> Self {
        let bytes = bytes.cast_signed();
        match operation {
            Operation::Allocate => Self { bytes, blocks: 1 },
            Operation::Deallocate => Self {
                bytes: bytes.wrapping_neg(),
                blocks: -1,
            },
            Operation::Grow => Self { bytes, blocks: 0 },
            Operation::Shrink => Self {
                bytes: bytes.wrapping_neg(),
                blocks: 0,
            },
        }
    }
}

/// Wraps, as the counters do that it is made of.
impl Add for Net {
    type Output = Self;

    #[inline(always)]
    fn add(self, more: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_add(more.bytes),
            blocks: self.blocks.wrapping_add(more.blocks),
        }
    }
}

/// Wraps too.
impl Sub for Net {
    type Output = Self;

    #[inline(always)]
    fn sub(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            blocks: self.blocks.wrapping_sub(earlier.blocks),
        }
    }
}
