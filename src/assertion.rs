//! `assert_allocates!`: holds a piece of code to a number of blocks and bytes.

use std::hint::black_box;

use crate::heap::{Heap, heap};
use crate::totals::Totals;

/// Asserts that an expression allocates no more than it may, on this thread, and returns its value.
///
/// * `assert_allocates!(nothing, expression)`
/// * `assert_allocates!(at most 3 blocks, expression)`
/// * `assert_allocates!(at most 4096 bytes, expression)`
/// * `assert_allocates!(at most 3 blocks and 4096 bytes, expression)`
///
/// A number is a literal, a name, or an expression in parentheses, of type `usize`. It is evaluated once, before the
/// expression.
///
/// # What counts
///
/// * *Blocks*: each allocation, and each reallocation, whether it grows, shrinks or does neither, since the
///   allocator may hand out a new block for any. So a `Vec` that is pushed to without
///   [`with_capacity`](Vec::with_capacity) counts as often as it is resized.
/// * *Bytes*: those requested by allocations, and those by which reallocations grow. Bytes that are freed again are
///   not taken off: it is what passed, not what was live.
/// * *Nothing* is no block: the allocator may be called to free, and for nothing else.
///
/// # Accuracy
///
/// Exact, in both modes: what counts is what the calling thread does, so it holds in `#[test]`s while other tests
/// run. Work that the expression gives to other threads is not in it; [`Heap::measure`](crate::Heap::measure)
/// has that as well, and what the rest of the program did. What the assertion needs for itself, its message
/// included, is not measured.
///
/// # Panics
///
/// If the expression allocates more; the message gives the figures found.
///
/// If this thread's allocations are not counted: [`TallyAlloc`](crate::TallyAlloc) is not the program's global
/// allocator, or the thread is past its thread-local destructors. The assertion could not fail then, so it never holds.
///
/// If the expression leaves the assertion by `?`, `return` or a panic, nothing is asserted.
///
/// # Examples
///
/// ```
/// use tally_alloc::{TallyAlloc, assert_allocates};
///
/// #[global_allocator]
/// static GLOBAL: TallyAlloc = TallyAlloc::system();
///
/// # fn main() {
/// let mut numbers = assert_allocates!(at most 1 block and 800 bytes, Vec::<u64>::with_capacity(100));
/// assert_allocates!(nothing, numbers.extend(0..100));
/// let sum: u64 = assert_allocates!(nothing, numbers.iter().sum());
/// assert_eq!(sum, 4950);
/// # }
/// ```
///
/// One more does not fit:
///
/// ```should_panic
/// # use tally_alloc::{TallyAlloc, assert_allocates};
/// # #[global_allocator]
/// # static GLOBAL: TallyAlloc = TallyAlloc::system();
/// # fn main() {
/// # let mut numbers = vec![0_u64; 100];
/// assert_allocates!(nothing, numbers.push(100));
/// # }
/// ```
#[macro_export]
macro_rules! assert_allocates {
    (nothing, $measured:expr $(,)?) => {
        $crate::assert_allocates!(@within 0, usize::MAX, $measured)
    };
    (at most $blocks:tt blocks and $bytes:tt bytes, $measured:expr $(,)?) => {
        $crate::assert_allocates!(@within $blocks, $bytes, $measured)
    };
    (at most $blocks:tt block and $bytes:tt bytes, $measured:expr $(,)?) => {
        $crate::assert_allocates!(@within $blocks, $bytes, $measured)
    };
    (at most $blocks:tt blocks, $measured:expr $(,)?) => {
        $crate::assert_allocates!(@within $blocks, usize::MAX, $measured)
    };
    (at most $blocks:tt block, $measured:expr $(,)?) => {
        $crate::assert_allocates!(@within $blocks, usize::MAX, $measured)
    };
    (at most $bytes:tt bytes, $measured:expr $(,)?) => {
        $crate::assert_allocates!(@within usize::MAX, $bytes, $measured)
    };
    (@within $blocks:expr, $bytes:expr, $measured:expr) => {{
        let allowance = $crate::Allowance::begin($blocks, $bytes);
        let value = $measured;
        allowance.end(::core::stringify!($measured));
        value
    }};
}

/// What [`assert_allocates!`] expands to.
#[doc(hidden)]
#[derive(Debug)]
pub struct Allowance {
    blocks: usize,
    bytes: usize,
    start: Totals,
}

impl Allowance {
    #[doc(hidden)]
    #[track_caller]
    #[must_use]
    pub fn begin(blocks: usize, bytes: usize) -> Self {
        let before = heap().thread_totals();
        drop(black_box(Box::new(0_u8)));
        let start = heap().thread_totals();
        if (start - before).allocations != 1 {
            not_counted(heap());
        }
        Self {
            blocks,
            bytes,
            start,
        }
    }

    #[doc(hidden)]
    #[track_caller]
    pub fn end(self, measured: &str) {
        let found = heap().thread_totals() - self.start;
        let blocks = found.allocations.wrapping_add(found.reallocations);
        if blocks > self.blocks || found.bytes_allocated > self.bytes {
            self.exceeded(found, measured);
        }
    }

    #[cold]
    #[track_caller]
    fn exceeded(&self, found: Totals, measured: &str) -> ! {
        let most = match (self.blocks, self.bytes) {
            (0, usize::MAX) => "nothing".to_owned(),
            (blocks, usize::MAX) => format!("at most {blocks} blocks"),
            (usize::MAX, bytes) => format!("at most {bytes} bytes"),
            (blocks, bytes) => format!("at most {blocks} blocks and {bytes} bytes"),
        };
        panic!(
            "`{measured}` may allocate {most}, and did {} bytes in {} allocations and {} reallocations",
            found.bytes_allocated, found.allocations, found.reallocations,
        );
    }
}

#[cold]
#[track_caller]
fn not_counted(heap: &Heap) -> ! {
    if heap.is_installed() {
        panic!(
            "allocations of this thread are not counted, so nothing can be asserted of them: \
             `TallyAlloc` is not the global allocator, or the thread is at its end"
        );
    }
    panic!(
        "the allocator is not installed, so nothing is counted and nothing can be asserted: \
         the program needs a `#[global_allocator]` that is a `TallyAlloc`"
    );
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic;

    /// These tests run without the allocator.
    #[test]
    fn without_the_allocator_nothing_is_asserted_to_hold() {
        let asserted = panic::catch_unwind(|| crate::assert_allocates!(nothing, ()));
        let panic = asserted.expect_err("it cannot fail, so it must not pass");
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        assert!(
            message.is_some_and(|message| message.contains("the allocator is not installed")),
            "{message:?}"
        );
    }
}
