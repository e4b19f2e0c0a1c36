//! The account against a reference: whatever threads do in whatever order, the totals are what a plain
//! count says.
//!
//! The allocator is used by hand and not installed, so nothing but the scripts below is counted. The
//! account is the process's, so scripts run one at a time.

#![allow(unsafe_code, reason = "calls the allocator's methods by hand")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tally_alloc::{Batched, Exact, TallyAlloc, Totals, heap};

static BATCHED: TallyAlloc<System, Batched> = TallyAlloc::new(System);
static EXACT: TallyAlloc<System, Exact> = TallyAlloc::new(System);

const THREADS: usize = 3;
const DEFAULT_THRESHOLD: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Batched,
    Exact,
}

impl Mode {
    fn allocator(self) -> &'static (dyn GlobalAlloc + Sync) {
        match self {
            Self::Batched => &BATCHED,
            Self::Exact => &EXACT,
        }
    }
}

/// What one thread does once.
#[derive(Clone, Debug)]
enum Step {
    Allocate {
        size: usize,
        align: usize,
        zeroed: bool,
    },
    /// To the size it has when `size` is `None`.
    Reallocate {
        block: Index,
        size: Option<usize>,
    },
    /// Any block there is: most often one that another thread allocated.
    Deallocate {
        block: Index,
    },
    Flush,
    SetThreshold(usize),
    ResetPeak,
    /// The thread ends; the next step that names it starts another.
    End,
}

#[derive(Clone, Debug)]
struct Act {
    thread: usize,
    mode: Mode,
    step: Step,
    /// Whether anybody looks after it. Looking keeps the peak up, which must not depend on that.
    looked_at: bool,
}

/// Sizes on both sides of every threshold that comes up.
fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 1..=64_usize,
        3 => 1..=5_000_usize,
        1 => 1..=300_000_usize,
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let align = (0..=7_u32).prop_map(|shift| 1 << shift);
    prop_oneof![
        6 => (sizes(), align, any::<bool>())
            .prop_map(|(size, align, zeroed)| Step::Allocate { size, align, zeroed }),
        3 => (any::<Index>(), proptest::option::of(sizes()))
            .prop_map(|(block, size)| Step::Reallocate { block, size }),
        5 => any::<Index>().prop_map(|block| Step::Deallocate { block }),
        1 => Just(Step::Flush),
        1 => prop_oneof![0..=2_usize, 16..=200_usize, Just(4096), Just(DEFAULT_THRESHOLD), Just(1 << 20)]
            .prop_map(Step::SetThreshold),
        1 => Just(Step::ResetPeak),
        1 => Just(Step::End),
    ]
}

fn acts(modes: impl Strategy<Value = Mode>) -> impl Strategy<Value = Vec<Act>> {
    let act =
        (0..THREADS, modes, steps(), any::<bool>()).prop_map(|(thread, mode, step, looked_at)| {
            Act {
                thread,
                mode,
                step,
                looked_at,
            }
        });
    vec(act, 1..120)
}

/// A block that the allocator handed out.
#[derive(Debug)]
struct Block {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: a block may be used and freed on any thread; whoever holds the value is the only one that does.
unsafe impl Send for Block {}

impl Block {
    fn allocate(mode: Mode, layout: Layout, zeroed: bool) -> Self {
        let layout = black_box(layout);
        let allocator = mode.allocator();
        let start = if zeroed {
            // SAFETY: no size here is zero.
            unsafe { allocator.alloc_zeroed(layout) }
        } else {
            // SAFETY: no size here is zero.
            unsafe { allocator.alloc(layout) }
        };
        assert!(!start.is_null(), "no memory for {layout:?}");
        Self {
            start: black_box(start),
            layout,
        }
    }

    fn reallocate(self, mode: Mode, size: usize) -> Self {
        // SAFETY: the block is live, of this layout, from the same inner allocator, and the size is neither
        // zero nor anywhere near the largest.
        let start = unsafe {
            mode.allocator()
                .realloc(self.start, self.layout, black_box(size))
        };
        assert!(!start.is_null(), "no memory for {size} bytes");
        let layout = Layout::from_size_align(size, self.layout.align()).expect("a small size");
        Self {
            start: black_box(start),
            layout,
        }
    }

    fn deallocate(self, mode: Mode) {
        // SAFETY: the block is live, of this layout, and from the same inner allocator.
        unsafe { mode.allocator().dealloc(black_box(self.start), self.layout) };
    }
}

/// What the reference counts.
fn count_allocation(totals: &mut Totals, size: usize) {
    totals.bytes_allocated += size;
    totals.allocations += 1;
}

fn count_reallocation(totals: &mut Totals, old: usize, new: usize) {
    totals.bytes_allocated += new.saturating_sub(old);
    totals.bytes_deallocated += old.saturating_sub(new);
    totals.reallocations += 1;
}

fn count_deallocation(totals: &mut Totals, size: usize) {
    totals.bytes_deallocated += size;
    totals.deallocations += 1;
}

/// Work for a thread; it answers with what there is to hold on to, and its own totals.
type Work = Box<dyn FnOnce() -> Option<Block> + Send>;

struct Worker {
    work: Sender<Work>,
    done: Receiver<(Option<Block>, Totals)>,
    thread: JoinHandle<()>,
    reference: Totals,
}

impl Worker {
    fn start() -> Self {
        let (work, orders) = mpsc::channel::<Work>();
        let (answers, done) = mpsc::channel();
        let thread = thread::spawn(move || {
            for order in orders {
                let answer = (order(), heap().thread_totals());
                answers.send(answer).expect("somebody waits for it");
            }
        });
        Self {
            work,
            done,
            thread,
            reference: Totals::default(),
        }
    }

    fn run(
        &self,
        work: impl FnOnce() -> Option<Block> + Send + 'static,
    ) -> (Option<Block>, Totals) {
        self.work.send(Box::new(work)).expect("the thread runs");
        self.done.recv().expect("the thread runs")
    }

    fn end(self) {
        drop(self.work);
        self.thread.join().expect("no step panics");
    }
}

/// Some threads, the blocks they hold between them, and the reference.
struct World {
    workers: [Option<Worker>; THREADS],
    blocks: Vec<Block>,
    base: Totals,
    reference: Totals,
    /// The highest live bytes since the peak was reset.
    peak: usize,
    /// The largest threshold that was in force.
    threshold: usize,
}

impl World {
    fn new() -> Self {
        heap()
            .set_threshold(DEFAULT_THRESHOLD)
            .expect("below the maximum");
        heap().reset_peak();
        let base = heap().totals();
        assert_eq!(heap().error_bound(), 0, "no thread is left");
        assert_eq!(heap().live_bytes(), base.live_bytes(), "all is published");
        Self {
            workers: [const { None }; THREADS],
            blocks: Vec::new(),
            base,
            reference: Totals::default(),
            peak: base.live_bytes(),
            threshold: DEFAULT_THRESHOLD,
        }
    }

    fn truth(&self) -> usize {
        self.base
            .live_bytes()
            .strict_add_signed(self.reference.net_bytes())
    }

    /// Has a thread do something, and counts it in the references by `count`.
    fn have(
        &mut self,
        thread: usize,
        count: impl Fn(&mut Totals),
        work: impl FnOnce() -> Option<Block> + Send + 'static,
    ) {
        let worker = self.workers[thread].get_or_insert_with(Worker::start);
        let (block, own) = worker.run(work);
        count(&mut self.reference);
        count(&mut worker.reference);
        assert_eq!(own, worker.reference, "the thread's own totals");
        self.blocks.extend(block);
        self.peak = self.peak.max(self.truth());
    }

    fn act(&mut self, act: Act) {
        let Act {
            thread, mode, step, ..
        } = act;
        match step {
            Step::Allocate {
                size,
                align,
                zeroed,
            } => {
                let layout = Layout::from_size_align(size, align).expect("a small size");
                self.have(
                    thread,
                    |totals| count_allocation(totals, size),
                    move || Some(Block::allocate(mode, layout, zeroed)),
                );
            }
            Step::Reallocate { block, size } => {
                let Some(block) = self.take(&block) else {
                    return;
                };
                let old = block.layout.size();
                let new = size.unwrap_or(old);
                self.have(
                    thread,
                    |totals| count_reallocation(totals, old, new),
                    move || Some(block.reallocate(mode, new)),
                );
            }
            Step::Deallocate { block } => {
                if let Some(block) = self.take(&block) {
                    self.deallocate(thread, mode, block);
                }
            }
            Step::Flush => self.have(
                thread,
                |_| (),
                || {
                    heap().flush();
                    None
                },
            ),
            Step::SetThreshold(bytes) => {
                heap().set_threshold(bytes).expect("below the maximum");
                self.threshold = self.threshold.max(bytes);
            }
            Step::ResetPeak => {
                heap().reset_peak();
                self.peak = self.truth();
            }
            Step::End => {
                if let Some(worker) = self.workers[thread].take() {
                    worker.end();
                }
            }
        }
    }

    fn deallocate(&mut self, thread: usize, mode: Mode, block: Block) {
        let size = block.layout.size();
        self.have(
            thread,
            |totals| count_deallocation(totals, size),
            move || {
                block.deallocate(mode);
                None
            },
        );
    }

    fn take(&mut self, which: &Index) -> Option<Block> {
        (!self.blocks.is_empty()).then(|| self.blocks.swap_remove(which.index(self.blocks.len())))
    }

    /// Nothing is under way: compares everything.
    fn check(&self) {
        assert_eq!(heap().totals() - self.base, self.reference, "the totals");
        let (truth, live, bound) = (self.truth(), heap().live_bytes(), heap().error_bound());
        assert!(
            live.abs_diff(truth) <= bound,
            "{truth} bytes are live, {live} published, bound {bound}"
        );
        let threads = self.workers.iter().flatten().count();
        let most = threads * (self.threshold - 1);
        assert!(bound <= most, "bound {bound} with {threads} threads");
        let peak = heap().peak_bytes();
        assert!(peak >= live, "peak {peak} with {live} live");
        let off = THREADS * (self.threshold - 1);
        assert!(
            peak.abs_diff(self.peak) <= off,
            "peak {peak}, {} reached, at most {off} off",
            self.peak
        );
    }

    /// As above where every operation is published.
    fn check_exact(&self) {
        self.check();
        assert_eq!(heap().error_bound(), 0, "the bound in exact mode");
        assert_eq!(
            heap().live_bytes(),
            self.truth(),
            "live bytes in exact mode"
        );
        assert_eq!(heap().peak_bytes(), self.peak, "the peak in exact mode");
    }

    /// Frees what is left, ends the threads and returns what the account says happened.
    fn end(mut self, mode: Mode) -> Totals {
        while let Some(block) = self.blocks.pop() {
            self.deallocate(self.blocks.len() % THREADS, mode, block);
        }
        for worker in self.workers.iter_mut().filter_map(Option::take) {
            worker.end();
        }
        self.check();
        assert_eq!(self.reference.net_bytes(), 0, "all blocks were freed");
        assert_eq!(
            heap().live_bytes(),
            self.base.live_bytes(),
            "all is published"
        );
        assert_eq!(heap().error_bound(), 0, "no thread is left");
        heap().totals() - self.base
    }
}

/// A failed case leaves no thread behind for the next.
impl Drop for World {
    fn drop(&mut self) {
        for worker in self.workers.iter_mut().filter_map(Option::take) {
            worker.end();
        }
        for block in self.blocks.drain(..) {
            thread::spawn(move || block.deallocate(Mode::Exact))
                .join()
                .expect("a free does not panic");
        }
        let _ = heap().set_threshold(DEFAULT_THRESHOLD);
    }
}

fn play(acts: &[Act], mode: Mode) -> Totals {
    let mut world = World::new();
    for act in acts {
        world.act(Act {
            mode,
            ..act.clone()
        });
        match mode {
            _ if !act.looked_at => {}
            Mode::Batched => world.check(),
            Mode::Exact => world.check_exact(),
        }
    }
    world.end(mode)
}

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// One step after another, on whichever thread: all figures are right after any, and both modes
    /// count the same.
    #[test]
    fn every_figure_is_right_after_any_step_in_both_modes(acts in acts(Just(Mode::Batched))) {
        let _alone = alone();
        let batched = play(&acts, Mode::Batched);
        let exact = play(&acts, Mode::Exact);
        prop_assert_eq!(batched, exact, "the modes differ");
    }

    /// Threads that go back and forth between the modes lose nothing either.
    #[test]
    fn every_figure_is_right_after_any_step_in_mixed_modes(
        acts in acts(prop_oneof![Just(Mode::Batched), Just(Mode::Exact)]),
    ) {
        let _alone = alone();
        let mut world = World::new();
        for act in acts {
            let looked_at = act.looked_at;
            world.act(act);
            if looked_at {
                world.check();
            }
        }
        world.end(Mode::Batched);
    }

    /// All threads at once, handing blocks round; when they are done, the totals are what they did.
    #[test]
    fn totals_are_right_after_threads_ran_freely(
        scripts in [acts(any_mode()), acts(any_mode()), acts(any_mode())],
    ) {
        let _alone = alone();
        let (before, reference) = run_freely(scripts);
        let change = heap().totals() - before;
        prop_assert_eq!(change, reference, "the totals");
        prop_assert_eq!(heap().live_bytes(), heap().totals().live_bytes(), "all is published");
        prop_assert_eq!(heap().error_bound(), 0, "no thread is left");
        prop_assert!(heap().peak_bytes() >= heap().live_bytes());
    }
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Batched), Just(Mode::Exact)]
}

/// Runs the scripts side by side on one heap of blocks while a reader sums; returns the totals before and
/// what the threads counted themselves.
fn run_freely(scripts: [Vec<Act>; THREADS]) -> (Totals, Totals) {
    heap()
        .set_threshold(DEFAULT_THRESHOLD)
        .expect("below the maximum");
    let before = heap().totals();
    let blocks = Arc::new(Mutex::new(Vec::<Block>::new()));
    let start = Arc::new(Barrier::new(THREADS));
    let threads = scripts.map(|script| {
        let (blocks, start) = (blocks.clone(), start.clone());
        thread::spawn(move || {
            start.wait();
            let mut counted = Totals::default();
            for act in script {
                perform(act, &blocks, &mut counted);
            }
            counted
        })
    });
    watch(before, &threads);
    let mut reference = Totals::default();
    for thread in threads {
        add(&mut reference, thread.join().expect("no step panics"));
    }
    let left = std::mem::take(&mut *blocks.lock().expect("no step panics"));
    let sweep = thread::spawn(move || {
        let mut counted = Totals::default();
        for block in left {
            count_deallocation(&mut counted, block.layout.size());
            block.deallocate(Mode::Batched);
        }
        counted
    });
    add(&mut reference, sweep.join().expect("a free does not panic"));
    (before, reference)
}

fn perform(act: Act, blocks: &Mutex<Vec<Block>>, counted: &mut Totals) {
    let mode = act.mode;
    let take = |which: Index| {
        let mut blocks = blocks.lock().expect("no step panics");
        (!blocks.is_empty()).then(|| {
            let which = which.index(blocks.len());
            blocks.swap_remove(which)
        })
    };
    let keep = |block| blocks.lock().expect("no step panics").push(block);
    match act.step {
        Step::Allocate {
            size,
            align,
            zeroed,
        } => {
            let layout = Layout::from_size_align(size, align).expect("a small size");
            count_allocation(counted, size);
            keep(Block::allocate(mode, layout, zeroed));
        }
        Step::Reallocate { block, size } => {
            if let Some(block) = take(block) {
                let old = block.layout.size();
                let new = size.unwrap_or(old);
                count_reallocation(counted, old, new);
                keep(block.reallocate(mode, new));
            }
        }
        Step::Deallocate { block } => {
            if let Some(block) = take(block) {
                count_deallocation(counted, block.layout.size());
                block.deallocate(mode);
            }
        }
        Step::Flush => heap().flush(),
        Step::SetThreshold(bytes) => heap().set_threshold(bytes).expect("below the maximum"),
        Step::ResetPeak => heap().reset_peak(),
        // Threads end at their scripts' ends.
        Step::End => {}
    }
}

/// Until the threads are done: no field goes back, and what was live before stays in the live bytes.
fn watch(before: Totals, threads: &[JoinHandle<Totals>]) {
    let mut last = before;
    while threads.iter().any(|thread| !thread.is_finished()) {
        let now = heap().totals();
        for (was, is) in [
            (last.bytes_allocated, now.bytes_allocated),
            (last.bytes_deallocated, now.bytes_deallocated),
            (last.allocations, now.allocations),
            (last.deallocations, now.deallocations),
            (last.reallocations, now.reallocations),
        ] {
            assert!(is >= was, "a field went from {was} to {is}");
        }
        let (live, kept) = (now.live_bytes(), before.live_bytes());
        assert!(
            live >= kept,
            "{live} bytes shown live, {kept} are throughout"
        );
        last = now;
    }
}

fn add(sum: &mut Totals, more: Totals) {
    sum.bytes_allocated += more.bytes_allocated;
    sum.bytes_deallocated += more.bytes_deallocated;
    sum.allocations += more.allocations;
    sum.deallocations += more.deallocations;
    sum.reallocations += more.reallocations;
}
