//! Blocks of the counted malloc family, with bytes that must stay.

use std::ffi::c_void;

use arbitrary::Arbitrary;
use tally_alloc_capi::{
    Account, tally_aligned_malloc, tally_aligned_malloc_usable, tally_calloc, tally_calloc_usable,
    tally_free, tally_free_usable, tally_malloc, tally_malloc_usable, tally_realloc,
    tally_realloc_usable, tally_usable_size,
};

/// How a block is asked for, and whether what it has room for is counted.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Kind {
    Plain {
        usable: bool,
    },
    Zeroed {
        usable: bool,
        count: u8,
    },
    Aligned {
        usable: bool,
        alignment: Alignment,
    },
    /// By resizing null.
    FromNull {
        usable: bool,
        old: u64,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Alignment {
    Power(u8),
    Any(u64),
}

impl Alignment {
    fn get(self) -> usize {
        match self {
            Self::Power(power) => 1 << (power % 64),
            Self::Any(alignment) => alignment as usize,
        }
    }
}

/// More than this is not asked for, unless it is more than there can be.
const LARGEST: usize = 1 << 20;

/// No block can be of so many bytes.
const IMPOSSIBLE: usize = isize::MAX as usize;

/// The bytes at the start of a block that are written and must stay.
const KEPT: usize = 64;

#[derive(Debug)]
pub(super) struct Block {
    start: *mut c_void,
    /// What was asked for.
    size: usize,
    usable: bool,
    mark: u8,
}

/// Returns whether a block of so many bytes is to be asked for: it is small, or impossible.
fn is_clear(size: usize) -> bool {
    size <= LARGEST || size > IMPOSSIBLE
}

impl Block {
    /// Asks for a block; the outer `None` if it was not tried.
    pub(super) fn new(account: *const Account, kind: Kind, size: usize) -> Option<Option<Self>> {
        let (usable, all) = match kind {
            Kind::Zeroed { usable, count } => (usable, size.checked_mul(usize::from(count))),
            Kind::Plain { usable }
            | Kind::Aligned { usable, .. }
            | Kind::FromNull { usable, .. } => (usable, Some(size)),
        };
        if !all.is_none_or(is_clear) {
            return None;
        }
        let mut alignment = align_of::<u64>();
        let start = match kind {
            // SAFETY: of all here, the account is one, and null may be resized.
            Kind::Plain { usable: false } => unsafe { tally_malloc(account, size) },
            // SAFETY: as above.
            Kind::Plain { usable: true } => unsafe { tally_malloc_usable(account, size) },
            Kind::Zeroed {
                usable: false,
                count,
            } => {
                // SAFETY: as above.
                unsafe { tally_calloc(account, usize::from(count), size) }
            }
            Kind::Zeroed {
                usable: true,
                count,
            } => {
                // SAFETY: as above.
                unsafe { tally_calloc_usable(account, usize::from(count), size) }
            }
            Kind::Aligned {
                usable,
                alignment: wanted,
            } => {
                alignment = wanted.get();
                if alignment > LARGEST && alignment.is_power_of_two() {
                    return None;
                }
                if usable {
                    // SAFETY: as above.
                    unsafe { tally_aligned_malloc_usable(account, alignment, size) }
                } else {
                    // SAFETY: as above.
                    unsafe { tally_aligned_malloc(account, alignment, size) }
                }
            }
            Kind::FromNull { usable: false, old } => {
                // SAFETY: as above.
                unsafe { tally_realloc(account, std::ptr::null_mut(), old as usize, size) }
            }
            Kind::FromNull { usable: true, .. } => {
                // SAFETY: as above.
                unsafe { tally_realloc_usable(account, std::ptr::null_mut(), size) }
            }
        };
        let possible = all.is_some_and(|all| all <= LARGEST) && alignment.is_power_of_two();
        assert_eq!(
            !start.is_null(),
            possible,
            "{kind:?} of {size} bytes: {start:?}"
        );
        if start.is_null() {
            return Some(None);
        }
        assert!(
            start.addr().is_multiple_of(alignment),
            "{kind:?}: {start:?}"
        );
        let mut block = Self {
            start,
            size: all.expect("it was possible"),
            usable,
            mark: 0,
        };
        if matches!(kind, Kind::Zeroed { .. }) {
            block.check();
        }
        block.write();
        Some(Some(block))
    }

    /// Returns what is counted for it.
    pub(super) fn counted(&self) -> usize {
        // SAFETY: the block is not freed.
        let room = unsafe { tally_usable_size(self.start) };
        assert!(room >= self.size, "{self:?} has room for {room} bytes");
        if self.usable { room } else { self.size }
    }

    fn write(&mut self) {
        self.mark = self.mark.wrapping_add(0x5d);
        // SAFETY: as many bytes as it has, or fewer.
        unsafe {
            self.start
                .cast::<u8>()
                .write_bytes(self.mark, self.size.min(KEPT))
        };
    }

    fn check(&self) {
        self.check_first(self.size);
    }

    fn check_first(&self, bytes: usize) {
        // SAFETY: as many bytes as it has, or fewer, written or zeroed.
        let kept = unsafe { std::slice::from_raw_parts(self.start.cast::<u8>(), bytes.min(KEPT)) };
        assert!(
            kept.iter().all(|byte| *byte == self.mark),
            "{self:?} is changed: {kept:?}"
        );
    }

    /// Resizes it; `None` if that was not tried, else whether there was memory.
    pub(super) fn resize(&mut self, account: *const Account, size: usize) -> Option<bool> {
        if !is_clear(size) {
            return None;
        }
        self.check();
        let moved = if self.usable {
            // SAFETY: the block is the account's, and counted so.
            unsafe { tally_realloc_usable(account, self.start, size) }
        } else {
            // SAFETY: as above, and this is its size.
            unsafe { tally_realloc(account, self.start, self.size, size) }
        };
        assert_eq!(
            !moved.is_null(),
            size <= LARGEST,
            "resized to {size}: {moved:?}"
        );
        if moved.is_null() {
            self.check();
            return Some(false);
        }
        let kept = self.size.min(size);
        (self.start, self.size) = (moved, size);
        self.check_first(kept);
        self.write();
        Some(true)
    }

    pub(super) fn free(self, account: *const Account) {
        self.check();
        if self.usable {
            // SAFETY: the block is the account's, and counted so.
            unsafe { tally_free_usable(account, self.start) };
        } else {
            // SAFETY: as above, and this is its size.
            unsafe { tally_free(account, self.start, self.size) };
        }
    }
}
