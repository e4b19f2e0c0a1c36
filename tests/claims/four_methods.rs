//! Each method reaches the same method of the inner allocator and counts what it did, as one operation.

use tally_alloc::{Totals, heap};

use super::{assert_exact, truth};
use crate::support::block::Block;
use crate::support::claims;
use crate::support::oracle::Calls;
use crate::{EXACT, GLOBAL};

claims![
    alloc_counts_one_allocation,
    alloc_zeroed_counts_one_allocation,
    dealloc_counts_one_deallocation,
    realloc_that_grows_counts_the_difference,
    realloc_that_shrinks_counts_the_difference,
    realloc_to_the_same_size_counts_no_bytes,
    collections_use_the_four_methods_as_without_us,
    each_method_is_published_at_once_in_exact_mode_or_from_the_threshold_up,
    zeroed_memory_is_zero_and_not_touched,
];

/// Does `act` and returns what the account saw of it and which methods the inner allocator was called
/// by.
fn change(act: impl FnOnce()) -> (Totals, Calls) {
    let (before, truth_before, calls) = (heap().totals(), truth(), GLOBAL.inner().calls());
    act();
    let (change, truth, after) = (
        heap().totals() - before,
        truth() - truth_before,
        GLOBAL.inner().calls(),
    );
    assert_eq!(change, truth, "change (left) and truth (right)");
    let calls = Calls {
        alloc: after.alloc - calls.alloc,
        alloc_zeroed: after.alloc_zeroed - calls.alloc_zeroed,
        realloc: after.realloc - calls.realloc,
        dealloc: after.dealloc - calls.dealloc,
    };
    (change, calls)
}

const NONE: Calls = Calls {
    alloc: 0,
    alloc_zeroed: 0,
    realloc: 0,
    dealloc: 0,
};

/// A few bytes, either side of the default threshold, and far above it.
const SIZES: [usize; 6] = [1, 64, 16_383, 16_384, 16_385, 5_000_000];

fn totals(bytes: (usize, usize), blocks: (usize, usize, usize)) -> Totals {
    let mut totals = Totals::default();
    (totals.bytes_allocated, totals.bytes_deallocated) = bytes;
    (
        totals.allocations,
        totals.deallocations,
        totals.reallocations,
    ) = blocks;
    totals
}

fn alloc_counts_one_allocation() {
    for size in SIZES {
        let (seen, calls) = change(|| std::mem::forget(Block::new(size)));
        assert_eq!(seen, totals((size, 0), (1, 0, 0)), "{size} bytes");
        assert_eq!(calls, Calls { alloc: 1, ..NONE }, "{size} bytes");
    }
}

fn alloc_zeroed_counts_one_allocation() {
    for size in SIZES {
        let (seen, calls) = change(|| std::mem::forget(Block::zeroed(size)));
        assert_eq!(seen, totals((size, 0), (1, 0, 0)), "{size} bytes");
        assert_eq!(
            calls,
            Calls {
                alloc_zeroed: 1,
                ..NONE
            },
            "{size} bytes"
        );
    }
}

fn dealloc_counts_one_deallocation() {
    for size in SIZES {
        let block = Block::new(size);
        let (seen, calls) = change(|| drop(block));
        assert_eq!(seen, totals((0, size), (0, 1, 0)), "{size} bytes");
        assert_eq!(calls, Calls { dealloc: 1, ..NONE }, "{size} bytes");
    }
}

fn resizing(from: usize, to: usize) {
    let mut block = Block::new(from);
    let (seen, calls) = change(|| assert!(block.resize(to)));
    let bytes = (to.saturating_sub(from), from.saturating_sub(to));
    assert_eq!(seen, totals(bytes, (0, 0, 1)), "{from} bytes to {to}");
    assert_eq!(calls, Calls { realloc: 1, ..NONE }, "{from} bytes to {to}");
    // Freeing goes by the new size.
    let (seen, _) = change(|| drop(block));
    assert_eq!(seen, totals((0, to), (0, 1, 0)), "{to} bytes freed");
}

fn realloc_that_grows_counts_the_difference() {
    for from in SIZES {
        for by in SIZES {
            resizing(from, from + by);
        }
    }
}

fn realloc_that_shrinks_counts_the_difference() {
    for to in SIZES {
        for by in SIZES {
            resizing(to + by, to);
        }
    }
}

fn realloc_to_the_same_size_counts_no_bytes() {
    for size in SIZES {
        resizing(size, size);
    }
}

fn collections_use_the_four_methods_as_without_us() {
    let (_, calls) = change(|| {
        let mut numbers = Vec::with_capacity(4);
        numbers.extend_from_slice(&[1_u64, 2, 3, 4]);
        for n in 5..=64_u64 {
            numbers.push(n);
        }
        std::hint::black_box(&mut numbers).truncate(3);
        numbers.shrink_to_fit();
        std::hint::black_box(numbers);
        std::hint::black_box(vec![0_u64; 1000]);
    });
    assert_eq!(
        calls,
        Calls {
            alloc: 1,
            alloc_zeroed: 1,
            realloc: 5,
            dealloc: 2
        },
        "4, 8, 16, 32, 64 numbers, 3 numbers; and a zeroed vector"
    );
}

fn each_method_is_published_at_once_in_exact_mode_or_from_the_threshold_up() {
    let threshold = heap().threshold();
    let sizes = if EXACT {
        1..4
    } else {
        threshold..threshold + 3
    };
    for size in sizes {
        // A debt in the other direction must not hold back what follows.
        for debt in [1, threshold / 2, threshold - 1] {
            heap().flush();
            let debtor = Block::new(debt);
            heap().flush();
            drop(debtor);
            let mut block = Block::new(size);
            assert_eq!(heap().live_bytes(), truth().live_bytes(), "alloc of {size}");
            assert!(block.resize(2 * size));
            assert_eq!(heap().live_bytes(), truth().live_bytes(), "grown by {size}");
            assert!(block.resize(size));
            assert_eq!(
                heap().live_bytes(),
                truth().live_bytes(),
                "shrunk by {size}"
            );
            drop(block);
            assert_eq!(
                heap().live_bytes(),
                truth().live_bytes(),
                "dealloc of {size}"
            );
            let block = Block::zeroed(size);
            assert_eq!(heap().live_bytes(), truth().live_bytes(), "zeroed, {size}");
            drop(block);
        }
    }
    assert_exact();
}

/// Bytes of this process that are in memory.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    // SAFETY: asks for a number.
    pages * usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap()
}

fn zeroed_memory_is_zero_and_not_touched() {
    let mut small = Block::zeroed(4000);
    assert!(small.bytes().iter().all(|&byte| byte == 0));
    #[cfg(target_os = "linux")]
    {
        let before = resident();
        let large = Block::zeroed(512 << 20);
        let grown = resident().saturating_sub(before);
        assert!(
            grown < 16 << 20,
            "512 MiB of zeros have made {grown} bytes resident"
        );
        assert!(heap().live_bytes() >= 512 << 20);
        drop(large);
    }
    assert_exact();
}
