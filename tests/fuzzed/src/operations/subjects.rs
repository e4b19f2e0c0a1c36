//! What is operated on: two counters, and the process's account.

#![allow(unsafe_code, reason = "the allocator is called by hand")]

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::ptr;

use tally_alloc::{Batched, Counter, Exact, MAX_THRESHOLD, TallyAlloc, heap};

use super::Act;
use crate::pretend::{Pretend, REFUSED_ALIGN};

static BATCHED: TallyAlloc<Pretend, Batched> = TallyAlloc::new(Pretend);
static EXACT: TallyAlloc<Pretend, Exact> = TallyAlloc::new(Pretend);

pub(super) struct Subjects {
    pub(super) batched: Counter<Batched>,
    pub(super) exact: Counter<Exact>,
    /// Whether the allocator counts exactly.
    pub(super) heap_is_exact: bool,
}

fn layout(size: usize, align: usize) -> Layout {
    black_box(Layout::from_size_align(size, align).expect("a valid layout"))
}

impl Subjects {
    pub(super) fn new(heap_is_exact: bool) -> Self {
        heap().set_threshold(16 << 10).expect("the default");
        Self {
            batched: Counter::with_mode(),
            exact: Counter::with_mode(),
            heap_is_exact,
        }
    }

    /// Does it on all three.
    pub(super) fn act(&self, act: Act) {
        match act {
            Act::Allocate { size, .. } => {
                self.batched.add(size);
                self.exact.add(size);
            }
            Act::Free { size } => {
                self.batched.sub(size);
                self.exact.sub(size);
            }
            Act::Resize { old, new } => {
                self.batched.resize(old, new);
                self.exact.resize(old, new);
            }
            Act::Flush => {
                self.batched.flush();
                self.exact.flush();
                heap().flush();
            }
            Act::SetThreshold { bytes } => {
                let accepted = [
                    self.batched.set_threshold(bytes).is_ok(),
                    self.exact.set_threshold(bytes).is_ok(),
                    heap().set_threshold(bytes).is_ok(),
                ];
                assert_eq!(
                    accepted,
                    [bytes <= MAX_THRESHOLD; 3],
                    "a threshold of {bytes}"
                );
            }
            Act::ResetPeak => {
                self.batched.reset_peak();
                self.exact.reset_peak();
                heap().reset_peak();
            }
            Act::Refused { .. } | Act::OpenScope | Act::CloseScope | Act::Nothing => (),
        }
        if self.heap_is_exact {
            allocate(&EXACT, act);
        } else {
            allocate(&BATCHED, act);
        }
    }
}

fn allocate(allocator: &impl GlobalAlloc, act: Act) {
    let block: *mut u8 = ptr::without_provenance_mut(4096);
    match act {
        Act::Allocate {
            size,
            zeroed: false,
        } => {
            // SAFETY: of all here, blocks are pretended.
            assert!(!unsafe { allocator.alloc(layout(size, 1)) }.is_null());
        }
        Act::Allocate { size, zeroed: true } => {
            // SAFETY: as above.
            assert!(!unsafe { allocator.alloc_zeroed(layout(size, 1)) }.is_null());
        }
        Act::Free { size } => {
            // SAFETY: as above.
            unsafe { allocator.dealloc(block, layout(size, 1)) };
        }
        Act::Resize { old, new } => {
            // SAFETY: as above.
            assert!(!unsafe { allocator.realloc(block, layout(old, 1), new) }.is_null());
        }
        Act::Refused { size } => {
            let refused = layout(size.min(isize::MAX as usize - 1), REFUSED_ALIGN);
            // SAFETY: as above.
            assert!(unsafe { allocator.alloc(refused) }.is_null());
            // SAFETY: as above.
            assert!(unsafe { allocator.alloc_zeroed(refused) }.is_null());
            // SAFETY: as above.
            assert!(unsafe { allocator.realloc(block, refused, 1) }.is_null());
        }
        _ => (),
    }
}
