//! MMTk decides by a `Counter`, and how its own counted functions differ from ours.
#![allow(missing_docs, reason = "an integration test")]

use mmtk::memory_manager;
use tally_alloc::{Counter, Exact};
use tally_alloc_mmtk::{OFF_HEAP, Runtime};

const MIB: usize = 1 << 20;
const HEAP: usize = 32 * MIB;

/// The machine is one per process, so this is one test.
#[test]
fn off_heap_memory_alone_makes_mmtk_collect_and_what_finalizers_free_makes_it_stop() {
    Runtime::start(HEAP);

    // Below the heap's size nothing happens.
    for _ in 0..30 {
        Runtime::allocate_buffer(MIB, true);
    }
    assert_eq!(
        Runtime::collections(),
        0,
        "collections with 30 of 32 MiB live"
    );
    assert_eq!(OFF_HEAP.totals().live_bytes(), Runtime::buffer_bytes());

    // Garbage of a hundred times the size of a buffer, with room for about two at a time.
    for _ in 0..100 {
        Runtime::allocate_buffer(MIB, false);
        let live = OFF_HEAP.live_bytes();
        assert!(
            live <= HEAP + 2 * MIB,
            "{live} bytes live in a heap of {HEAP}"
        );
    }
    let collections = Runtime::collections();
    assert!(
        (33..=100).contains(&collections),
        "{collections} collections for 100 MiB of garbage and 2 or 3 MiB of room"
    );

    // Buffers far below the threshold, which are published in batches. They are freed by the
    // collector's thread and allocated by this one.
    for _ in 0..20_000 {
        Runtime::allocate_buffer(1_000, false);
    }
    let totals = OFF_HEAP.totals();
    assert_eq!(totals.live_bytes(), Runtime::buffer_bytes());
    let (live, bound) = (OFF_HEAP.live_bytes(), OFF_HEAP.error_bound());
    assert!(
        live.abs_diff(totals.live_bytes()) <= bound,
        "{live} published, {} true, bound {bound}",
        totals.live_bytes()
    );
    assert!(
        Runtime::collections() > collections,
        "20 MB of small garbage made it collect too"
    );

    mmtks_count_loses_a_block_that_could_not_grow_and_ours_keeps_it();
}

/// MMTk takes the old size off before it knows whether there is memory for the new one.
fn mmtks_count_loses_a_block_that_could_not_grow_and_ours_keeps_it() {
    let mmtk = Runtime::mmtk();
    let too_much = isize::MAX as usize;
    let block = memory_manager::counted_malloc(mmtk, 1_000);
    assert_eq!(memory_manager::get_malloc_bytes(mmtk), 1_000);
    let moved = memory_manager::realloc_with_old_size(mmtk, block, too_much, 1_000);
    assert!(moved.is_zero(), "there is no such block");
    assert_eq!(
        memory_manager::get_malloc_bytes(mmtk),
        0,
        "the block is live all the same"
    );
    memory_manager::free_with_size(mmtk, block, 1_000);
    assert_eq!(
        memory_manager::get_malloc_bytes(mmtk),
        0_usize.wrapping_sub(1_000),
        "and below zero once it is freed"
    );

    let counter = Counter::<Exact>::with_mode();
    let block = tally_alloc_capi::malloc::malloc(&counter, 1_000);
    assert!(!block.is_null());
    #[allow(unsafe_code, reason = "the counted functions take raw pointers")]
    // SAFETY: the block was allocated above with 1,000 bytes; the failed call leaves it so.
    let moved = unsafe { tally_alloc_capi::malloc::realloc(&counter, block, 1_000, too_much) };
    assert!(moved.is_null(), "there is no such block");
    assert_eq!(counter.live_bytes(), 1_000);
    #[allow(unsafe_code, reason = "the counted functions take raw pointers")]
    // SAFETY: as above.
    unsafe {
        tally_alloc_capi::malloc::free(&counter, block, 1_000);
    }
    assert_eq!(counter.live_bytes(), 0);
}
