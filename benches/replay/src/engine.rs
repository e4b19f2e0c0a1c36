//! A worker on a real engine: QuickJS, on a heap that `TallyAlloc` counts, collected when a trigger
//! says so.
//!
//! QuickJS counts references and leaves cycles to a collector, which it starts by a threshold of its
//! own. Here that threshold is switched off: between two deliveries the worker polls a [`Trigger`] on
//! the process's live bytes, and runs the collector when it is due.
//!
//! QuickJS puts small objects into arenas of a page, and gives an arena back when it is empty. What the
//! allocator counts is thus pages in use: an object that stays keeps the rest of its page live. It is
//! the figure that matters to whoever pays for the memory, and 4 to 97 % above the engine's own.

use std::error::Error;
use std::time::Duration;

use rquickjs::{Context, Function, Runtime};
use rustix::time::{ClockId, clock_gettime};
use tally_alloc::policy::{Cycle, Policy};
use tally_alloc::{Measure, Trigger, heap};

use crate::outcome::{Outcome, Sample};

/// Workers on a real engine are this many times smaller than those of the settings, so that a run
/// takes half a second.
pub const SCALE: usize = 32;

/// How much a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Deliveries.
    pub deliveries: usize,
    /// Pairs of objects that a delivery makes and drops.
    pub dropped: usize,
    /// Pairs that it makes and keeps for ever.
    pub kept: usize,
}

impl Work {
    /// A run in which the live heap grows from 0.5 MB to 10, and ten times as much is dropped: the
    /// heap of the replay in virtual time on this module's [`SCALE`].
    pub const FULL: Self = Self {
        deliveries: 1_600,
        dropped: 40,
        kept: 11,
    };
}

/// The processor time that this process has used: the machine's other work does not count.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        now.tv_sec.try_into().unwrap_or(0),
        now.tv_nsec.try_into().unwrap_or(0),
    )
}

/// Gives a policy the processor time between two collections instead of the time on the clock: on a
/// machine with other work to do the two differ, by a factor that comes and goes, and a policy that
/// goes by the allocation rate follows it.
struct OnProcessorTime<P> {
    inner: P,
    last: Duration,
}

impl<P: Policy> Policy for OnProcessorTime<P> {
    fn initial_limit(&self) -> usize {
        self.inner.initial_limit()
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        let now = processor_time();
        let mutator = (now - self.last).saturating_sub(cycle.pause);
        self.last = now;
        self.inner.next_limit(&cycle.with_mutator(mutator))
    }

    fn growth_steps(&self) -> u64 {
        self.inner.growth_steps()
    }
}

/// Runs a worker whose collections `policy` starts. Memory is what the process has live, by its
/// allocator; times are processor time.
///
/// # Errors
///
/// When the engine fails, or what it kept is not what it should have.
pub fn run<P: Policy>(policy: P, work: Work) -> Result<Outcome, Box<dyn Error>> {
    // Before anything is measured, so that nothing of ours is allocated during the run.
    let mut samples = Vec::with_capacity(work.deliveries);
    let runtime = Runtime::new()?;
    runtime.set_gc_threshold(usize::MAX);
    let context = Context::full(&runtime)?;
    let policy = OnProcessorTime {
        inner: policy,
        last: processor_time(),
    };
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy)?;
    context.with(|ctx| -> Result<(), Box<dyn Error>> {
        ctx.eval::<(), _>(include_str!("engine.js"))?;
        let deliver: Function<'_> = ctx.globals().get("deliver")?;
        let mut sample = Sample::default();
        let begun = processor_time();
        for _ in 0..work.deliveries {
            deliver.call::<_, ()>((work.dropped, work.kept))?;
            let live = heap().totals().live_bytes();
            sample.resident = sample.resident.max(live);
            if trigger.poll() {
                let begun = processor_time();
                ctx.run_gc();
                let pause = processor_time() - begun;
                trigger.collected(pause);
                sample.collections += 1;
                sample.collecting += pause;
                sample.live = heap().totals().live_bytes();
                sample.marked += sample.live as u64;
            }
            sample.mutating = (processor_time() - begun).saturating_sub(sample.collecting);
            samples.push(sample);
        }
        let sum: u64 = ctx.eval::<f64, _>("checksum()")? as u64;
        let expected = checksum(work);
        if sum != expected {
            return Err(format!("the kept objects add up to {sum}, not {expected}").into());
        }
        // What is live in the end, for a run that has not just collected.
        ctx.run_gc();
        if let Some(last) = samples.last_mut() {
            last.live = heap().totals().live_bytes();
        }
        Ok(())
    })?;
    let report = trigger.report();
    Ok(Outcome::new(&samples, report.limit, report.growth_steps))
}

/// What `checksum()` in the script comes to.
fn checksum(work: Work) -> u64 {
    let mut sum = 0;
    for delivery in 0..work.deliveries {
        for pair in work.dropped..work.dropped + work.kept {
            let serial = 2 * (delivery * (work.dropped + work.kept) + pair) as u64;
            // The pair's first serial, and the one after both.
            sum += serial + serial + 2;
        }
    }
    sum
}
