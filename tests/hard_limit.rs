//! The hard limit: live bytes never exceed it, and what is refused leaves no trace.
//!
//! The allocator is used by hand and not installed, so nothing but these tests is counted. The account is
//! the process's, so the tests run one at a time.

#![allow(unsafe_code, reason = "calls the allocator's methods by hand")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Batched, Exact, HardLimitError, Measure, TallyAlloc, Trigger, heap};

static BATCHED: TallyAlloc<System, Batched> = TallyAlloc::new(System);
static EXACT: TallyAlloc<System, Exact> = TallyAlloc::new(System);

type Allocator = &'static (dyn GlobalAlloc + Sync);

/// Gives `test` its turn with the account, on a thread of its own that has ended before the next turn: until a
/// thread has ended, its threshold is in the error bound, and a limit has to leave place for it. The hard limit
/// is gone afterwards, whatever happened.
fn in_turn(test: impl FnOnce() + Send) {
    struct Unlimited;
    impl Drop for Unlimited {
        fn drop(&mut self) {
            heap().clear_hard_limit();
        }
    }

    static TURN: Mutex<()> = Mutex::new(());
    let _held = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let _unlimited = Unlimited;
    thread::scope(|scope| {
        // Joined by hand: the scope waits for its threads' closures only, not for their ends.
        let ended = scope.spawn(test).join();
        ended.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

fn layout(bytes: usize) -> Layout {
    black_box(Layout::from_size_align(bytes, 8).expect("a size that is no matter"))
}

fn live() -> usize {
    heap().totals().live_bytes()
}

/// Allocates `bytes`; `None` when refused.
fn allocate(allocator: Allocator, bytes: usize) -> Option<usize> {
    // SAFETY: no size here is zero.
    let block = unsafe { allocator.alloc(layout(bytes)) };
    (!black_box(block).is_null()).then_some(block as usize)
}

fn free(allocator: Allocator, block: usize, bytes: usize) {
    // SAFETY: every caller passes what `allocate` gave it, once, with the same size.
    unsafe { allocator.dealloc(block as *mut u8, layout(bytes)) };
}

#[test]
fn exact_counting_meets_the_limit_to_the_byte() {
    in_turn(|| {
        // Bring the thread under exact counting first, so that nothing is held back.
        let first = allocate(&EXACT, 1).expect("no limit yet");
        free(&EXACT, first, 1);
        let start = live();
        heap()
            .set_hard_limit(start + 1000)
            .expect("above what is live");
        let most = allocate(&EXACT, 1000).expect("fits to the byte");
        assert_eq!(allocate(&EXACT, 1), None, "one byte more is refused");
        assert_eq!(live(), start + 1000, "a refusal counts nothing");
        free(&EXACT, most, 1000);
        let again = allocate(&EXACT, 1000).expect("fits again after the free");
        free(&EXACT, again, 1000);
        assert_eq!(live(), start);
    });
}

#[test]
fn a_refusal_leaves_the_rest_of_the_program_as_it_was() {
    for allocator in [&BATCHED as Allocator, &EXACT] {
        in_turn(|| {
            let start = live();
            heap()
                .set_hard_limit(start + (4 << 20))
                .expect("above what is live");
            let before = heap().totals();
            for huge in [5 << 20, isize::MAX as usize - 64] {
                assert_eq!(allocate(allocator, huge), None, "{huge} bytes are refused");
            }
            assert_eq!(heap().totals(), before, "refusals count nothing");
            let small = allocate(allocator, 100_000).expect("a small request goes on");
            // SAFETY: allocated above with this layout.
            let refused = unsafe { allocator.realloc(small as *mut u8, layout(100_000), 5 << 20) };
            assert!(refused.is_null(), "growing past the limit is refused");
            assert_eq!(live(), start + 100_000, "and the block is what it was");
            // SAFETY: the same.
            let grown = unsafe { allocator.realloc(small as *mut u8, layout(100_000), 200_000) };
            assert!(!grown.is_null(), "growing within it is not");
            free(allocator, grown as usize, 200_000);
            assert_eq!(live(), start);
        });
    }
}

#[test]
fn blocks_that_were_reserved_are_published_once() {
    in_turn(|| {
        heap()
            .set_hard_limit(live() + (4 << 20))
            .expect("above what is live");
        for _ in 0..10 {
            let block = allocate(&BATCHED, 1 << 20).expect("fits");
            free(&BATCHED, block, 1 << 20);
        }
    });
    // Where all count exactly, the published total decides alone.
    in_turn(|| {
        let limit = FixedLimit::new(heap().totals().live_blocks() + 5).expect("a limit");
        let trigger = Trigger::new(heap(), Measure::LiveBlocks, limit).expect("memory");
        let block = allocate(&EXACT, 8).expect("no limit any more");
        assert!(!trigger.poll(), "{trigger:?}");
        free(&EXACT, block, 8);
    });
}

#[test]
fn a_block_may_shrink_where_nothing_more_fits() {
    const BYTES: usize = 1 << 20;
    for allocator in [&BATCHED as Allocator, &EXACT] {
        in_turn(|| {
            let start = live();
            heap()
                .set_hard_limit(start + BYTES + 100_000)
                .expect("above what is live");
            let block = allocate(allocator, BYTES).expect("fits");
            assert_eq!(allocate(allocator, 100_001), None, "past the limit");
            // SAFETY: allocated above with this layout.
            let shrunk = unsafe { allocator.realloc(block as *mut u8, layout(BYTES), 1000) };
            assert!(!shrunk.is_null(), "it takes nothing");
            assert_eq!(live(), start + 1000);
            free(allocator, shrunk as usize, 1000);
        });
    }
}

#[test]
fn a_limit_that_is_cleared_refuses_nothing_any_more() {
    for allocator in [&BATCHED as Allocator, &EXACT] {
        in_turn(|| {
            heap()
                .set_hard_limit(live() + (1 << 20))
                .expect("above what is live");
            assert_eq!(allocate(allocator, 2 << 20), None, "past the limit");
            heap().clear_hard_limit();
            assert_eq!(heap().hard_limit(), None);
            let block = allocate(allocator, 2 << 20).expect("no limit any more");
            free(allocator, block, 2 << 20);
        });
    }
}

/// A thread that frees has less pending than nothing. That makes place for what it then allocates, once.
#[test]
fn what_a_thread_has_freed_does_not_make_place_twice() {
    const SMALL: usize = 10_000;
    in_turn(|| {
        let mut small: Vec<_> = (0..1_000)
            .map(|_| allocate(&BATCHED, SMALL).expect("no limit yet"))
            .collect();
        heap().flush();
        let limit = live() + (1 << 20);
        heap().set_hard_limit(limit).expect("above what is live");
        let mut large = Vec::new();
        while let Some(block) = small.pop() {
            free(&BATCHED, block, SMALL);
            large.extend(allocate(&BATCHED, 2 * SMALL));
            assert!(live() <= limit, "{} bytes live under {limit}", live());
        }
        assert!(large.len() < 1_000, "all were served");
        for block in large {
            free(&BATCHED, block, 2 * SMALL);
        }
    });
}

/// An inner allocator that has no memory, and looks at the account while it says so.
struct Looking;

static SEEN: Mutex<Option<[usize; 3]>> = Mutex::new(None);

fn figures() -> [usize; 3] {
    [live(), heap().live_bytes(), heap().peak_bytes()]
}

// SAFETY: it never gives a block.
unsafe impl GlobalAlloc for Looking {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        // Not counted: the allocator is not installed.
        *SEEN.lock().expect("nobody has panicked") = Some(figures());
        std::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
        unreachable!("nothing was ever given");
    }
}

static BATCHED_IN_VAIN: TallyAlloc<Looking, Batched> = TallyAlloc::new(Looking);
static EXACT_IN_VAIN: TallyAlloc<Looking, Exact> = TallyAlloc::new(Looking);

#[test]
fn a_block_that_is_not_there_yet_is_in_no_figure() {
    for allocator in [&BATCHED_IN_VAIN as Allocator, &EXACT_IN_VAIN] {
        in_turn(|| {
            let kept = allocate(&EXACT, 100).expect("no limit yet");
            heap().reset_peak();
            heap()
                .set_hard_limit(live() + (64 << 20))
                .expect("above what is live");
            let before = figures();
            let bound = heap().error_bound();
            assert_eq!(allocate(allocator, 32 << 20), None);
            assert_eq!(
                SEEN.lock().expect("nobody has panicked").take(),
                Some(before)
            );
            assert_eq!(figures(), before);
            assert!(heap().error_bound() <= bound.max(heap().threshold()));
            free(&EXACT, kept, 100);
        });
    }
}

/// What a thread gives up to make place is published, and a trigger that it reaches is due, whether there is place then or
/// not.
#[test]
fn a_refused_request_leaves_no_limit_of_a_trigger_reached_and_not_due() {
    in_turn(|| {
        // The thread's threshold is in the error bound from here on.
        let first = allocate(&BATCHED, 1).expect("no limit yet");
        free(&BATCHED, first, 1);
        heap().flush();
        let base = live();
        heap()
            .set_hard_limit(base + (10 << 20))
            .expect("above what is live");
        let policy = FixedLimit::new(base + 8_000).expect("above zero");
        let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("there is memory");
        let held = allocate(&BATCHED, 9_000).expect("far below the limit");
        assert_eq!(allocate(&BATCHED, 100 << 20), None);
        assert!(trigger.poll(), "9,000 bytes are live, and published");
        free(&BATCHED, held, 9_000);
    });
}

#[test]
fn a_request_below_the_limit_that_the_inner_allocator_refuses_leaves_no_trace() {
    for allocator in [&BATCHED as Allocator, &EXACT] {
        in_turn(|| {
            let kept = allocate(allocator, 10_000).expect("no limit yet");
            heap()
                .set_hard_limit(usize::MAX - 1)
                .expect("above what is live");
            let (before, held_back) = (heap().totals(), heap().error_bound());
            for _ in 0..2 {
                let huge = allocate(allocator, isize::MAX as usize - 64);
                assert_eq!(huge, None, "more than there is");
            }
            assert_eq!(heap().totals(), before, "nothing is counted");
            assert_eq!(heap().error_bound(), held_back, "nor held back");
            heap().flush();
            let (published, bound) = (heap().live_bytes(), heap().error_bound());
            assert!(
                published.abs_diff(live()) <= bound,
                "{published} bytes published of {} with an error bound of {bound}",
                live()
            );
            free(allocator, kept, 10_000);
        });
    }
}

#[test]
fn a_limit_below_what_may_be_live_is_an_error_and_changes_nothing() {
    in_turn(|| {
        let block = allocate(&BATCHED, 1 << 20).expect("no limit yet");
        let refused = heap().set_hard_limit(1 << 19);
        assert!(
            matches!(refused, Err(HardLimitError::BelowLive { requested, least, .. })
                if requested == 1 << 19 && least >= 1 << 20),
            "{refused:?}"
        );
        assert_eq!(heap().hard_limit(), None);
        let Err(HardLimitError::BelowLive { least, .. }) = refused else {
            unreachable!("as above");
        };
        let text =
            format!("a hard limit of 524288 bytes is below the {least} that may be live already");
        assert_eq!(refused.map_err(|error| error.to_string()), Err(text));
        heap()
            .set_hard_limit(least)
            .expect("the least that can be set");
        heap().set_hard_limit(8 << 20).expect("above what is live");
        assert!(heap().set_hard_limit(0).is_err());
        assert_eq!(
            heap().hard_limit(),
            Some(8 << 20),
            "the limit that stood goes on"
        );
        free(&BATCHED, block, 1 << 20);
    });
}

/// Sets a flag when it goes, however that is.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_limit_that_is_too_low_refuses_nobody_while_it_is_found_out() {
    in_turn(|| {
        let held = allocate(&EXACT, 1 << 20).expect("no limit yet");
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            for allocator in [&BATCHED as Allocator, &EXACT] {
                let ended = &ended;
                scope.spawn(move || {
                    while !ended.load(Relaxed) {
                        let block = allocate(allocator, 20_000).expect("no limit was ever set");
                        free(allocator, block, 20_000);
                    }
                });
            }
            let _ended = SetAtEnd(&ended);
            for _ in 0..20_000 {
                assert!(heap().set_hard_limit(1 << 19).is_err());
            }
        });
        assert_eq!(heap().hard_limit(), None);
        free(&EXACT, held, 1 << 20);
    });
}

#[test]
fn a_limit_that_was_set_stands_whatever_others_try_meanwhile() {
    in_turn(|| {
        let held = allocate(&EXACT, 1 << 20).expect("no limit yet");
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Relaxed) {
                    assert!(heap().set_hard_limit(1 << 19).is_err());
                }
            });
            let _ended = SetAtEnd(&ended);
            for _ in 0..100_000 {
                heap().set_hard_limit(8 << 20).expect("above what is live");
                assert_eq!(heap().hard_limit(), Some(8 << 20));
                heap().clear_hard_limit();
                assert_eq!(heap().hard_limit(), None);
            }
        });
        free(&EXACT, held, 1 << 20);
    });
}

#[test]
fn nothing_is_refused_earlier_than_documented() {
    for allocator in [&BATCHED as Allocator, &EXACT] {
        in_turn(|| {
            let limit = live() + (2 << 20);
            heap().set_hard_limit(limit).expect("above what is live");
            let mut blocks = Vec::new();
            while let Some(block) = allocate(allocator, 1000) {
                blocks.push(block);
                assert!(live() <= limit, "{} bytes live under {limit}", live());
            }
            let margin = 2 * heap().error_bound();
            assert!(
                live() + 1000 + margin > limit,
                "refused at {} of {limit} with an error bound of {}",
                live(),
                margin / 2
            );
            for block in blocks {
                free(allocator, block, 1000);
            }
        });
    }
}

/// Sixty-four threads allocate blocks of all sizes as fast as they can, free some, are refused often, and
/// a reader takes exact sums all along.
fn sixty_four_threads_keep_the_limit(allocator: Allocator) {
    const THREADS: usize = 64;
    in_turn(|| {
        let start = live();
        let limit = start + (8 << 20);
        // Others were higher.
        heap().reset_peak();
        heap().set_hard_limit(limit).expect("above what is live");
        let done = AtomicBool::new(false);
        let begin = Barrier::new(THREADS);
        let refusals: usize = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut highest = 0;
                while !done.load(Relaxed) {
                    // What was allocated up to the first sum, less all that was freed up to the second, was
                    // live between the two.
                    let first = heap().totals();
                    let second = heap().totals();
                    let freed = (second - first).bytes_deallocated;
                    highest = highest.max(first.live_bytes().saturating_sub(freed));
                }
                highest
            });
            let workers: Vec<_> = (0..THREADS)
                .map(|seed| {
                    let begin = &begin;
                    scope.spawn(move || {
                        begin.wait();
                        let mut state = seed as u64 + 1;
                        let mut refused = 0;
                        let mut blocks: Vec<(usize, usize)> = Vec::new();
                        for _ in 0..1500 {
                            state = state
                                .wrapping_mul(6_364_136_223_846_793_005)
                                .wrapping_add(1);
                            let bytes = 1 + (state >> 33) as usize % (1 << (4 + (state >> 60)));
                            match allocate(allocator, bytes) {
                                Some(block) => blocks.push((block, bytes)),
                                None => {
                                    refused += 1;
                                    for (block, bytes) in blocks.drain(blocks.len() / 2..) {
                                        free(allocator, block, bytes);
                                    }
                                }
                            }
                        }
                        for (block, bytes) in blocks {
                            free(allocator, block, bytes);
                        }
                        heap().flush();
                        refused
                    })
                })
                .collect();
            let refusals = workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .sum();
            done.store(true, Relaxed);
            let highest = reader.join().unwrap();
            assert!(highest <= limit, "{highest} bytes were live under {limit}");
            refusals
        });
        assert!(refusals > 0, "the threads came up against the limit");
        assert!(
            heap().peak_bytes() <= limit,
            "{} at the peak",
            heap().peak_bytes()
        );
        assert_eq!(live(), start, "everything was freed");
    });
}

#[test]
fn sixty_four_threads_keep_the_limit_in_batches() {
    sixty_four_threads_keep_the_limit(&BATCHED);
}

#[test]
fn sixty_four_threads_keep_the_limit_in_exact_counting() {
    sixty_four_threads_keep_the_limit(&EXACT);
}
