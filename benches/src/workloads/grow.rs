//! `grow`: a block grown from 64 bytes to 64 KiB by doubling, then freed: the life of a `Vec`.
//!
//! In two forms. *Written*, each new half is filled, as whoever grows a `Vec` does. *Bare*, nothing is, and
//! the system allocator has nothing to do but to move the end of the block: ten steps in the time of a few
//! dozen instructions each, the least that there can be around the three steps which publish because
//! they are of the threshold or more.

#![allow(
    unsafe_code,
    reason = "calls the allocator without a container around it"
)]

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::hint::black_box;
use std::time::Duration;

use crate::lanes;
use crate::workload::{Size, Workload};

const FIRST: usize = 64;
const LAST: usize = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub struct Grow {
    threads: usize,
    rounds: usize,
    written: bool,
}

impl Grow {
    /// Returns the workload on `threads` threads.
    #[must_use]
    pub fn new(size: Size, threads: usize, written: bool) -> Self {
        let rounds = if written {
            size.pick(500, 20_000, 2_000_000)
        } else {
            size.pick(2_000, 150_000, 15_000_000)
        };
        Self {
            threads,
            rounds: rounds / threads,
            written,
        }
    }

    /// Grows one block and returns whether what was written at first is still there.
    fn grow(written: bool) -> bool {
        let layout = |size| Layout::array::<u8>(size).expect("a small layout");
        let mut size = FIRST;
        // SAFETY: the size is not zero.
        let mut block = black_box(unsafe { alloc(black_box(layout(size))) });
        assert!(!block.is_null(), "{size} bytes refused");
        // SAFETY: the block has 64 bytes.
        unsafe { block.write(0x5a) };
        while size < LAST {
            // SAFETY: from this allocator with this layout; the new size is not zero.
            block = black_box(unsafe { realloc(block, black_box(layout(size)), size * 2) });
            size *= 2;
            assert!(!block.is_null(), "{size} bytes refused");
            if written {
                // SAFETY: inside the block.
                let upper = unsafe { block.add(size / 2) };
                // SAFETY: the upper half of the block.
                unsafe { upper.write_bytes(0xa5, size / 2) };
                black_box(block);
            }
        }
        // SAFETY: the first byte was written above, and moves with the block.
        let kept = unsafe { block.read() } == 0x5a;
        // SAFETY: from this allocator with this layout.
        unsafe { dealloc(block, layout(size)) };
        kept
    }
}

impl Workload for Grow {
    fn name(&self) -> String {
        let threads = self.threads;
        let plural = if threads == 1 { "" } else { "s" };
        let form = if self.written { "written" } else { "bare" };
        format!("grow to 64 KiB, {form}, {threads} thread{plural}")
    }

    fn run(&self) -> Duration {
        let (elapsed, kept) = lanes::run(self.threads, |_| {
            (0..self.rounds)
                .filter(|_| Self::grow(self.written))
                .count()
        });
        assert_eq!(
            kept.iter().sum::<usize>(),
            self.rounds * self.threads,
            "blocks that kept their first byte"
        );
        elapsed
    }
}
