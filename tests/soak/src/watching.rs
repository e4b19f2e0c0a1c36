//! Triggers beside what must hold of them: each crossing goes to one thread, and none is lost.

use std::ops::Deref;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use fastrand::Rng;
use tally_alloc::policy::{
    Clamped, EveryBytes, FixedLimit, Increment, Policy, Proportional, SquareRoot, ThrashGuard,
};
use tally_alloc::{Measure, Trigger, Watch, heap};

use crate::allocator::TRUTH;
use crate::block::Block;
use crate::world::WIDEST;

/// A trigger, whether a thread has its crossing, and how often that was so.
pub(crate) struct Watching<'a> {
    trigger: Trigger<'a, Box<dyn Policy>>,
    measure: Measure,
    collecting: AtomicBool,
    fires: AtomicU64,
}

/// The limits that make sense for a measure: the least and the width of those above.
fn range(measure: Measure, live: usize) -> (usize, usize) {
    match measure {
        Measure::LiveBlocks => (1, 20_000),
        Measure::AllocatedBytes => (1, 4 << 20),
        _ => (live + 1, 8 << 20),
    }
}

/// Returns a measure and a policy for it, with what is live as a starting point.
fn policy(numbers: &mut Rng, live: usize) -> (Measure, Box<dyn Policy>) {
    let measure = [
        Measure::LiveBytes,
        Measure::LiveBlocks,
        Measure::AllocatedBytes,
    ][numbers.usize(0..3)];
    let (least, width) = range(measure, live);
    let first = least + numbers.usize(0..width);
    let step = 1 + numbers.usize(0..width / 8);
    let span = first..=first + numbers.usize(0..width);
    let good = "a valid parameter";
    let plain: Box<dyn Policy> = match numbers.u32(0..5) {
        0 => Box::new(FixedLimit::new(first).expect(good)),
        1 => Box::new(Increment::new(first, step).expect(good)),
        2 => Box::new(Proportional::new(numbers.f64() + 0.01, span.clone()).expect(good)),
        3 => Box::new(SquareRoot::new(SquareRoot::DEFAULT_C, span.clone()).expect(good)),
        _ => Box::new(EveryBytes::new(step).expect(good)),
    };
    let policy: Box<dyn Policy> = match numbers.u32(0..4) {
        0 => Box::new(ThrashGuard::new(plain)),
        1 => Box::new(Clamped::new(plain, span).expect(good)),
        _ => plain,
    };
    (measure, policy)
}

impl<'a> Watching<'a> {
    pub(crate) fn new(account: &'a impl Watch, live: usize, numbers: &mut Rng) -> Self {
        let (measure, policy) = policy(numbers, live);
        Self {
            trigger: Trigger::new(account, measure, policy).expect("memory for a trigger"),
            measure,
            collecting: AtomicBool::new(false),
            fires: AtomicU64::new(0),
        }
    }

    /// Collects if it falls to the caller, and returns whether it did.
    pub(crate) fn poll(&self, collect: impl FnOnce()) -> bool {
        let due = self.trigger.poll();
        if due {
            self.run(collect);
        }
        due
    }

    fn wait(&self, most: Duration, collect: impl FnOnce()) -> bool {
        let due = self.trigger.wait_timeout(most);
        if due {
            self.run(collect);
        }
        due
    }

    fn run(&self, collect: impl FnOnce()) {
        let taken = self.collecting.swap(true, SeqCst);
        assert!(
            !taken,
            "two threads were given the same crossing: {:?}",
            self.trigger
        );
        self.fires.fetch_add(1, SeqCst);
        let report = self.trigger.report();
        let cause = report.cause.expect("a trigger that fired has a cause");
        assert!(
            cause.figure >= cause.limit,
            "a trigger fired below its limit: {report:?}"
        );
        collect();
        self.collecting.store(false, SeqCst);
        self.trigger.collected(Duration::from_micros(50));
    }

    /// Checks, with nobody at work and after a publish, that no crossing was missed: that it is due if its figure,
    /// by the truth, is at the limit.
    pub(crate) fn check(&self, live_bytes: usize, live_blocks: usize) -> Result<()> {
        // Some policies leave less than what is live, and are due again at once, a few times.
        for _ in 0..64 {
            let limit = self.trigger.limit();
            let reached = match self.measure {
                Measure::LiveBytes => live_bytes >= limit,
                Measure::LiveBlocks => live_blocks >= limit,
                _ => self.trigger.headroom() == 0,
            };
            let due = self.poll(|| ());
            ensure!(
                due || !reached,
                "a crossing was missed: {live_bytes} bytes in {live_blocks} blocks are live, {:?}",
                self.trigger
            );
            if !due {
                break;
            }
        }
        let (cycles, fires) = (self.trigger.report().cycles, self.fires.load(SeqCst));
        ensure!(
            cycles == fires,
            "{cycles} cycles for {fires} crossings taken"
        );
        Ok(())
    }

    pub(crate) fn fires(&self) -> u64 {
        self.fires.load(SeqCst)
    }
}

/// A trigger of the heap, and the bytes that were allocated before it was last armed, at the least.
pub(crate) struct OfHeap {
    watching: Watching<'static>,
    allocated: AtomicUsize,
}

impl OfHeap {
    fn new(numbers: &mut Rng) -> Self {
        let totals = heap().totals();
        Self {
            watching: Watching::new(heap(), totals.live_bytes(), numbers),
            allocated: AtomicUsize::new(totals.bytes_allocated),
        }
    }

    /// Checks a crossing that the caller was given against the truth, which has each allocation before the account.
    fn collect(&self, collect: impl FnOnce()) {
        let cause = self.watching.trigger.report().cause.expect("it fired");
        match self.watching.measure {
            Measure::LiveBytes => assert!(
                TRUTH.peak_bytes() >= cause.limit,
                "it fired, {cause:?}, and there were never more than {} bytes live",
                TRUTH.peak_bytes()
            ),
            Measure::AllocatedBytes => {
                let since = TRUTH.totals().bytes_allocated - self.allocated.load(SeqCst);
                assert!(
                    since >= cause.limit,
                    "it fired, {cause:?}, after {since} bytes"
                );
            }
            _ => (),
        }
        collect();
        self.allocated
            .store(heap().totals().bytes_allocated, SeqCst);
    }

    pub(crate) fn poll(&self, collect: impl FnOnce()) -> bool {
        self.watching.poll(|| self.collect(collect))
    }

    pub(crate) fn wait(&self, most: Duration, collect: impl FnOnce()) -> bool {
        self.watching.wait(most, || self.collect(collect))
    }
}

/// The triggers of the heap that there are.
pub(crate) struct Watchings(Mutex<Vec<Arc<OfHeap>>>);

/// How many triggers of the heap there are at once.
const TRIGGERS: usize = 6;

impl Watchings {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::with_capacity(TRIGGERS)))
    }

    /// Puts a new trigger in the place of an old one.
    pub(crate) fn exchange(&self, numbers: &mut Rng) {
        let new = Arc::new(OfHeap::new(numbers));
        let mut all = self.0.lock().expect("a panic ends the process");
        let old = if all.len() < TRIGGERS {
            all.push(new);
            None
        } else {
            let place = numbers.usize(0..TRIGGERS);
            Some(std::mem::replace(&mut all[place], new))
        };
        drop(all);
        drop(old);
    }

    /// Returns one of them.
    pub(crate) fn any(&self, numbers: &mut Rng) -> Option<Arc<OfHeap>> {
        let all = self.0.lock().expect("a panic ends the process");
        numbers.choice(all.deref()).cloned()
    }

    /// Checks all of them, with nobody at work.
    pub(crate) fn check(&self) -> Result<()> {
        let all = self.0.lock().expect("a panic ends the process").clone();
        // As large as a threshold can be, so that it is published at once.
        let _publish = Block::new(WIDEST);
        let truth = TRUTH.totals();
        for one in &all {
            one.watching
                .check(truth.live_bytes(), truth.live_blocks())?;
        }
        Ok(())
    }
}
