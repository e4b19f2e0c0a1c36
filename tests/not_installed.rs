//! A program that links the library without installing the allocator can tell, and one that has installed
//! it can tell as well when nothing is live.

#![allow(unsafe_code, reason = "the allocator is called by hand")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::ExitCode;

use support::claims;
use support::pthread::{ROOMY, on_a_pthread, on_pthreads};
use tally_alloc::{Batched, Exact, TallyAlloc, Totals, heap};

claims![
    a_program_without_the_allocator_is_not_installed_and_all_figures_are_zero,
    reading_does_not_make_it_installed,
    it_is_installed_when_nothing_is_live_any_more,
    it_is_installed_after_one_request_in_exact_mode,
    a_refused_request_does_not_make_it_installed,
    it_is_installed_by_another_thread_that_has_ended,
];

fn main() -> ExitCode {
    support::run(CLAIMS, &[])
}

static BY_HAND: TallyAlloc<System, Batched> = TallyAlloc::new(System);
static BY_HAND_EXACT: TallyAlloc<System, Exact> = TallyAlloc::new(System);

fn assert_nothing_counted() {
    assert!(!heap().is_installed());
    assert_eq!(heap().totals(), Totals::default());
    assert_eq!(heap().thread_totals(), Totals::default());
    assert_eq!((heap().live_bytes(), heap().peak_bytes()), (0, 0));
    assert_eq!((heap().error_bound(), heap().shared_writes()), (0, 0));
}

/// Asks for a block of 100 bytes and gives it back.
fn pair(allocator: &impl GlobalAlloc) {
    let layout = black_box(Layout::new::<[u8; 100]>());
    // SAFETY: the size is not zero.
    let block = black_box(unsafe { allocator.alloc(layout) });
    assert!(!block.is_null());
    // SAFETY: just allocated, with this layout, by this allocator.
    unsafe { allocator.dealloc(block, layout) };
}

fn a_program_without_the_allocator_is_not_installed_and_all_figures_are_zero() {
    let text = black_box("allocated, but not by us ".repeat(1000));
    on_pthreads(8, ROOMY, &|_| drop(black_box(vec![1_u8; 100_000])));
    assert!(text.len() > 1000);
    assert_nothing_counted();
}

fn reading_does_not_make_it_installed() {
    heap().flush();
    heap().reset_peak();
    heap().set_threshold(1).unwrap();
    assert!(heap().set_threshold(usize::MAX).is_err());
    black_box(format!("{:?}", heap()));
    assert_nothing_counted();
}

fn it_is_installed_when_nothing_is_live_any_more() {
    assert_nothing_counted();
    pair(&BY_HAND);
    assert_eq!(heap().totals().live_bytes(), 0);
    assert_eq!(heap().live_bytes(), 0);
    assert!(heap().is_installed(), "live is 0, and requests were served");
}

fn it_is_installed_after_one_request_in_exact_mode() {
    pair(&BY_HAND_EXACT);
    assert_eq!(heap().live_bytes(), 0);
    assert!(heap().is_installed());
    assert_eq!(heap().totals().allocations, 1);
}

fn a_refused_request_does_not_make_it_installed() {
    let layout = black_box(Layout::from_size_align(isize::MAX as usize - 4096, 1).unwrap());
    // SAFETY: the size is not zero.
    assert!(unsafe { BY_HAND.alloc(layout) }.is_null());
    assert_nothing_counted();
}

fn it_is_installed_by_another_thread_that_has_ended() {
    on_a_pthread(&|_| pair(&BY_HAND));
    assert!(heap().is_installed());
    assert_eq!(heap().error_bound(), 0, "nobody has a shard any more");
    assert_eq!(heap().thread_totals(), Totals::default());
}
