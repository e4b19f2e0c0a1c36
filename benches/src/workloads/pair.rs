//! `pair`: a block allocated and freed at once, over and over: nothing but malloc and free.

#![allow(
    unsafe_code,
    reason = "calls the allocator without a container around it"
)]

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::time::Duration;

use crate::lanes;
use crate::workload::{Size, Workload};

/// See the module.
#[derive(Debug)]
pub struct Pair {
    bytes: usize,
    threads: usize,
    pairs: usize,
}

impl Pair {
    /// Returns pairs of `bytes` each on `threads` threads.
    #[must_use]
    pub fn new(size: Size, bytes: usize, threads: usize) -> Self {
        // The large blocks miss glibc's thread cache and take its arena's way.
        let total: usize = if bytes <= 1024 {
            size.pick(100_000, 8_000_000, 800_000_000)
        } else {
            size.pick(20_000, 1_000_000, 100_000_000)
        };
        Self {
            bytes,
            threads,
            pairs: total / threads,
        }
    }
}

impl Workload for Pair {
    fn name(&self) -> String {
        let threads = self.threads;
        let plural = if threads == 1 { "" } else { "s" };
        format!("pair {} B, {threads} thread{plural}", self.bytes)
    }

    fn run(&self) -> Duration {
        let layout = Layout::array::<u8>(self.bytes).expect("a small layout");
        let (elapsed, allocated) = lanes::run(self.threads, |_| {
            let mut allocated = 0_usize;
            for _ in 0..self.pairs {
                let layout = black_box(layout);
                // SAFETY: the size is not zero.
                let block = black_box(unsafe { alloc(layout) });
                allocated += usize::from(!block.is_null());
                if !block.is_null() {
                    // SAFETY: from `alloc` with the same layout.
                    unsafe { dealloc(block, layout) };
                }
            }
            allocated
        });
        let refused = self.pairs * self.threads - allocated.iter().sum::<usize>();
        assert_eq!(refused, 0, "allocations refused");
        elapsed
    }
}
