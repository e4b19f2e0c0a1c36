//! The work, each part of which ends by comparing every figure with the truth.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Counter, Measure, Trigger, heap};

use crate::block::Block;
use crate::fork::in_a_fork;
use crate::pthread::{on_a_pthread, on_pthreads};
use crate::truth;

/// The stack of a foreign thread: little, but enough for code that was not optimised.
const STACK: usize = 64 * 1024;

/// In the environment where the standard library is a shared object, which the compiler gives an allocator of its own.
const STD_IS_SHARED: &str = "SHAPES_STD_IS_SHARED";

/// What an exit handler ends the program with if a figure is wrong.
const WRONG: i32 = 3;

/// Does everything once. Panics, or aborts, when a figure is wrong.
pub(crate) fn all() {
    what_the_standard_library_allocates();
    four_methods();
    threads_that_come_and_go();
    foreign_threads();
    late_destructors();
    blocks_that_are_handed_over();
    a_trigger();
    a_counter();
    a_hard_limit();
    a_fork();
}

/// Checks every figure of the account. No operation may be under way.
#[track_caller]
pub(crate) fn assert_exact(after: &str) {
    let (totals, truth) = (heap().totals(), truth());
    assert_eq!(
        totals, truth,
        "totals (left) and truth (right) after {after}"
    );
    let (live, bound) = (heap().live_bytes(), heap().error_bound());
    assert!(
        live.abs_diff(truth.live_bytes()) <= bound,
        "published {live}, bound {bound} bytes after {after}: {truth:?}"
    );
}

/// Joins threads for good: a scope does not wait until their thread-locals are gone.
fn on_threads(threads: usize, act: impl Fn(usize) + Clone + Send + 'static) {
    let started: Vec<_> = (0..threads)
        .map(|index| {
            let act = act.clone();
            thread::spawn(move || act(index))
        })
        .collect();
    for thread in started {
        thread.join().expect("it ends well");
    }
}

/// A block that compiled code of the standard library asks for, and that is freed here.
fn what_the_standard_library_allocates() {
    let before = heap().thread_totals();
    let directory = std::env::current_dir().expect("there is one");
    drop(black_box(directory));
    let change = heap().thread_totals() - before;
    if std::env::var_os(STD_IS_SHARED).is_none() {
        assert!(change.allocations > 0, "{change:?}");
        assert_eq!((change.net_bytes(), change.net_blocks()), (0, 0));
    } else {
        // The library has an allocator of its own: the block is seen when it is freed, and not before.
        assert_eq!((change.allocations, change.deallocations), (0, 1));
    }
}

fn four_methods() {
    for size in [1, 15, 16, 17, 1000, 16_383, 16_384, 100_000, 3 << 20] {
        let mut zeroed = Block::zeroed(size);
        assert!(zeroed.bytes().iter().all(|&byte| byte == 0));
        let mut block = Block::new(size);
        assert!(block.resize(2 * size));
        assert!(block.resize(size.div_ceil(2)));
        assert!(block.resize(size));
        block.fill(1);
        for align in [8, 64, 4096] {
            drop(black_box(Block::aligned(size, align).expect("memory")));
        }
    }
    assert!(Block::aligned(isize::MAX as usize - 4095, 1).is_none());
    let mut text = String::new();
    for number in 0..10_000 {
        text.push_str(&number.to_string());
    }
    drop(black_box(text));
    assert_exact("the four methods");
}

fn threads_that_come_and_go() {
    for round in 0..20 {
        on_threads(8, move |index| {
            let kept: Vec<Vec<u8>> = (0..100).map(|n| vec![1; n * 7 + index + round]).collect();
            drop(black_box(kept));
            heap().flush();
        });
    }
    assert_exact("threads that came and went");
}

fn foreign_threads() {
    for _ in 0..5 {
        on_pthreads(16, STACK, &|index| {
            let mut block = Block::new(1000 + index);
            assert!(block.resize(20_000));
        });
    }
    assert_exact("foreign threads");
}

/// Works on when its thread ends.
struct Last(RefCell<Vec<Block>>);

impl Drop for Last {
    fn drop(&mut self) {
        let mut kept = self.0.borrow_mut();
        kept.push(Block::new(777));
        kept.push(Block::zeroed(20_000));
        assert!(kept[0].resize(9000));
    }
}

thread_local! {
    static LAST: Last = const { Last(RefCell::new(Vec::new())) };
}

fn hold() {
    LAST.with(|last| last.0.borrow_mut().push(Block::new(5000)));
}

fn late_destructors() {
    on_threads(8, |_| hold());
    on_pthreads(8, STACK, &|_| hold());
    // Nothing before its destructor.
    on_pthreads(8, STACK, &|_| LAST.with(|_| ()));
    assert_exact("late destructors");
}

fn blocks_that_are_handed_over() {
    let (give, take) = sync_channel::<Vec<u8>>(16);
    let taker = thread::spawn(move || take.iter().map(|block| block.len()).sum::<usize>());
    let mut given = 0;
    for size in 0..5000 {
        let block = vec![1; size % 300];
        given += block.len();
        give.send(block).expect("the taker takes all");
    }
    drop(give);
    assert_eq!(taker.join().expect("it ends well"), given);
    assert_exact("blocks that were handed over");
}

fn a_trigger() {
    const ROOM: usize = 4 << 20;
    let limit = heap().totals().live_bytes() + ROOM;
    let policy = FixedLimit::new(limit).expect("above zero");
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("there is memory");
    thread::scope(|scope| {
        let collector = scope.spawn(|| {
            trigger.wait();
            trigger.collected(Duration::from_micros(1));
        });
        assert!(!trigger.poll(), "{} bytes are left", trigger.headroom());
        let grown: Vec<Block> = (0..9).map(|_| Block::new(ROOM / 8)).collect();
        collector.join().expect("it ends well");
        drop(grown);
    });
    assert_eq!(trigger.report().cycles, 1);
    drop(trigger);
    assert_exact("a trigger");
}

fn a_counter() {
    static COUNTER: Counter = Counter::new();
    let start = COUNTER.totals();
    on_threads(4, |index| {
        for round in 0..1000 {
            COUNTER.add(round + index);
            COUNTER.resize(round + index, round);
            COUNTER.sub(round);
        }
        COUNTER.add(100);
    });
    on_pthreads(4, STACK, &|_| COUNTER.sub(100));
    let change = COUNTER.totals() - start;
    assert_eq!((change.net_bytes(), change.net_blocks()), (0, 0));
    assert_eq!((change.allocations, change.reallocations), (4004, 4000));
    assert_exact("a counter");
}

fn a_hard_limit() {
    let limit = heap().totals().live_bytes() + heap().error_bound() + (1 << 20);
    heap().set_hard_limit(limit).expect("above what is live");
    assert!(Block::aligned(2 << 20, 1).is_none(), "above the limit");
    drop(Block::aligned(1 << 19, 1).expect("below the limit"));
    heap().clear_hard_limit();
    assert_exact("a hard limit");
}

fn a_fork() {
    let kept = Block::new(15_000);
    let status = in_a_fork(|| {
        assert_exact("a fork, in the child");
        drop(kept);
        on_a_pthread(&|_| hold());
        assert_exact("a thread of the child");
        let status = in_a_fork(|| {
            drop(black_box(vec![1_u8; 20_000]));
            assert_exact("a fork, in the grandchild");
        });
        assert_eq!(status, 0, "the grandchild's wait status");
    });
    assert_eq!(status, 0, "the child's wait status");
    assert_exact("a fork");
}

extern "C" fn check_at_exit() {
    let mut block = Block::new(1000);
    let resized = block.resize(50_000);
    drop(block);
    if !resized || heap().totals() != truth() {
        // SAFETY: ends the process.
        unsafe { libc::_exit(WRONG) };
    }
}

/// Has the main thread's destructors and an exit handler work and check as well.
pub(crate) fn at_exit_too() {
    hold();
    // SAFETY: the handler has the signature asked for.
    let registered = unsafe { libc::atexit(check_at_exit) };
    assert_eq!(registered, 0, "atexit");
}
