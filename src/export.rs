//! The figures of an account and of a trigger as gauges and counters of the `metrics` crate, which
//! has exporters to Prometheus and others.
//!
//! [`AccountMetrics`] and [`TriggerMetrics`] are made once, after the program has installed its recorder, and
//! describe and register what they export then. Each has a `record()`, to be called when the figures are about
//! to be looked at: at a scrape, or on an interval. `examples/prometheus.rs` is a whole program.
//!
//! # What is exported
//!
//! For an account, with the label `account`. All but the peak, the bound and the threshold come from one reading of the
//! [exact totals](crate::Heap::totals), so that live bytes are allocated bytes less deallocated bytes:
//!
//! | name | kind | what it is |
//! | --- | --- | --- |
//! | `tally_alloc_live_bytes` | gauge | bytes live, exact |
//! | `tally_alloc_live_blocks` | gauge | blocks live, exact |
//! | `tally_alloc_peak_bytes` | gauge | the highest published live bytes |
//! | `tally_alloc_error_bound_bytes` | gauge | by how much the peak, and published live bytes, may be off |
//! | `tally_alloc_threshold_bytes` | gauge | pending bytes at which a thread publishes |
//! | `tally_alloc_allocated_bytes_total` | counter | bytes allocated |
//! | `tally_alloc_deallocated_bytes_total` | counter | bytes deallocated |
//! | `tally_alloc_allocations_total` | counter | blocks allocated |
//! | `tally_alloc_deallocations_total` | counter | blocks deallocated |
//! | `tally_alloc_reallocations_total` | counter | blocks resized |
//! | `tally_alloc_shared_writes_total` | counter | writes to the cache line that threads share |
//!
//! For a trigger, with the label `trigger`, and `measure` ([`Measure::name`](crate::Measure::name)) that
//! says what limit and headroom are counted in:
//!
//! | name | kind | what it is |
//! | --- | --- | --- |
//! | `tally_alloc_trigger_limit` | gauge | the limit in force |
//! | `tally_alloc_trigger_headroom` | gauge | what is left below the limit, 0 when it is reached |
//! | `tally_alloc_trigger_collecting_ratio` | gauge | share of time spent collecting, from 0 to 1 |
//! | `tally_alloc_trigger_cycles_total` | counter | collections that have ended |
//!
//! The names follow the conventions of Prometheus and OpenMetrics, and are stable. Gauges are `f64`, as `metrics` has
//! it: exact up to 2^53. Counters are `u64`, also where the account's own are 32 bits wide and wrap, as long as less
//! than 4 GiB is allocated between two calls of `record()` there.
//!
//! # Recorders allocate
//!
//! They may, when handles are registered and when figures are recorded and rendered; and what they allocate is
//! counted like everything else. That is no harm, since nothing is recorded inside the allocator: threads that
//! allocate and publish know nothing of `metrics`, and pay nothing for it.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tally_alloc::export::AccountMetrics;
//! use tally_alloc::{Counter, heap};
//!
//! // The program has installed its recorder. Without one, what follows goes nowhere.
//! let cache = Arc::new(Counter::new());
//! let exported = (
//!     AccountMetrics::new(heap(), "heap"),
//!     AccountMetrics::new(Arc::clone(&cache), "cache"),
//! );
//! cache.add(100);
//!
//! // At each scrape, or every few seconds:
//! exported.0.record();
//! exported.1.record();
//! ```

use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Gauge, Label, SharedString, Unit};

use crate::policy::Policy;
use crate::trigger::Trigger;
use crate::watch::{Watch, Watched};
use crate::watermark::or_zero;

/// What there is to say of one exported figure.
type Described = (&'static str, Unit, &'static str);

const LIVE_BYTES: Described = (
    "tally_alloc_live_bytes",
    Unit::Bytes,
    "Bytes live, exact: requested and not yet given back",
);
const LIVE_BLOCKS: Described = ("tally_alloc_live_blocks", Unit::Count, "Blocks live, exact");
const PEAK_BYTES: Described = (
    "tally_alloc_peak_bytes",
    Unit::Bytes,
    "The highest published live bytes",
);
const ERROR_BOUND_BYTES: Described = (
    "tally_alloc_error_bound_bytes",
    Unit::Bytes,
    "Bytes by which the peak, and published live bytes, may be off",
);
const THRESHOLD_BYTES: Described = (
    "tally_alloc_threshold_bytes",
    Unit::Bytes,
    "Pending bytes at which a thread publishes",
);
const ALLOCATED_BYTES: Described = (
    "tally_alloc_allocated_bytes_total",
    Unit::Bytes,
    "Bytes allocated",
);
const DEALLOCATED_BYTES: Described = (
    "tally_alloc_deallocated_bytes_total",
    Unit::Bytes,
    "Bytes deallocated",
);
const ALLOCATIONS: Described = (
    "tally_alloc_allocations_total",
    Unit::Count,
    "Blocks allocated",
);
const DEALLOCATIONS: Described = (
    "tally_alloc_deallocations_total",
    Unit::Count,
    "Blocks deallocated",
);
const REALLOCATIONS: Described = (
    "tally_alloc_reallocations_total",
    Unit::Count,
    "Blocks resized",
);
const SHARED_WRITES: Described = (
    "tally_alloc_shared_writes_total",
    Unit::Count,
    "Writes to the cache line that all threads share",
);
const LIMIT: Described = (
    "tally_alloc_trigger_limit",
    Unit::Count,
    "The limit in force, in the trigger's measure",
);
const HEADROOM: Described = (
    "tally_alloc_trigger_headroom",
    Unit::Count,
    "What is left below the limit, in the trigger's measure",
);
const COLLECTING_RATIO: Described = (
    "tally_alloc_trigger_collecting_ratio",
    Unit::Count,
    "Share of time spent collecting, from 0 to 1",
);
const CYCLES: Described = (
    "tally_alloc_trigger_cycles_total",
    Unit::Count,
    "Collections that have ended",
);

fn gauge((name, unit, text): Described, labels: &[Label]) -> Gauge {
    metrics::describe_gauge!(name, unit, text);
    metrics::gauge!(name, labels.to_vec())
}

fn counter((name, unit, text): Described, labels: &[Label]) -> Counter {
    metrics::describe_counter!(name, unit, text);
    metrics::counter!(name, labels.to_vec())
}

/// Sets a gauge; what is above 2^53 is rounded.
fn set(gauge: &Gauge, figure: usize) {
    gauge.set(figure as f64);
}

/// A counter that goes on past the width of the figure it is told.
struct Widened {
    counter: Counter,
    total: u64,
    last: usize,
}

impl Widened {
    fn new(described: Described, labels: &[Label]) -> Self {
        Self::over(counter(described, labels))
    }

    const fn over(counter: Counter) -> Self {
        Self {
            counter,
            total: 0,
            last: 0,
        }
    }

    /// Takes in a figure that only grows, modulo its width.
    fn record(&mut self, now: usize) {
        self.total = self.total.wrapping_add(now.wrapping_sub(self.last) as u64);
        self.last = now;
        self.counter.absolute(self.total);
    }
}

/// The counters of an account, in the order of the table above.
struct AccountCounters {
    allocated_bytes: Widened,
    deallocated_bytes: Widened,
    allocations: Widened,
    deallocations: Widened,
    reallocations: Widened,
    shared_writes: Widened,
}

/// Exports an account, a [`Heap`](crate::Heap) or a [`Counter`](crate::Counter): the names are in the
/// [module's table](self#what-is-exported).
///
/// `A` is anything that leads to the account: a `&'static Heap`, a reference to a counter, an `Arc` of one.
///
/// # Accuracy
///
/// What is shown is what [`record`](Self::record) read last, and no figure of a counter goes back, from whichever threads it is
/// called. A recorder's reader that comes while `record` is under way may find some figures of before and some of after.
pub struct AccountMetrics<A> {
    account: A,
    live_bytes: Gauge,
    live_blocks: Gauge,
    peak_bytes: Gauge,
    error_bound_bytes: Gauge,
    threshold_bytes: Gauge,
    /// Held while a reading is taken and handed on, so that readings come in the order they were taken in.
    counters: Mutex<AccountCounters>,
}

impl<A: Deref<Target: Watch>> AccountMetrics<A> {
    /// Describes and registers the figures of `account` with the recorder that is installed now, under the label
    /// `account = name`. Records nothing yet.
    pub fn new(account: A, name: impl Into<SharedString>) -> Self {
        let labels = [Label::new("account", name)];
        Self {
            account,
            live_bytes: gauge(LIVE_BYTES, &labels),
            live_blocks: gauge(LIVE_BLOCKS, &labels),
            peak_bytes: gauge(PEAK_BYTES, &labels),
            error_bound_bytes: gauge(ERROR_BOUND_BYTES, &labels),
            threshold_bytes: gauge(THRESHOLD_BYTES, &labels),
            counters: Mutex::new(AccountCounters {
                allocated_bytes: Widened::new(ALLOCATED_BYTES, &labels),
                deallocated_bytes: Widened::new(DEALLOCATED_BYTES, &labels),
                allocations: Widened::new(ALLOCATIONS, &labels),
                deallocations: Widened::new(DEALLOCATIONS, &labels),
                reallocations: Widened::new(REALLOCATIONS, &labels),
                shared_writes: Widened::new(SHARED_WRITES, &labels),
            }),
        }
    }

    /// Reads the account and sets every figure. Takes time in proportion to the number of threads, as
    /// [`totals`](crate::Heap::totals) does.
    pub fn record(&self) {
        let account = &*self.account;
        // A recorder that panicked has left nothing of ours half done that the next reading does not mend.
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = account.sum().totals;
        let ledger = account.ledger();
        set(&self.live_bytes, or_zero(totals.live_bytes()));
        set(&self.live_blocks, or_zero(totals.live_blocks()));
        set(&self.peak_bytes, ledger.published.peak_bytes());
        set(&self.error_bound_bytes, ledger.terms.error_bound());
        set(&self.threshold_bytes, ledger.terms.threshold());
        counters.allocated_bytes.record(totals.bytes_allocated);
        counters.deallocated_bytes.record(totals.bytes_deallocated);
        counters.allocations.record(totals.allocations);
        counters.deallocations.record(totals.deallocations);
        counters.reallocations.record(totals.reallocations);
        counters.shared_writes.record(account.publishes());
    }
}

impl<A> fmt::Debug for AccountMetrics<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccountMetrics").finish_non_exhaustive()
    }
}

/// Exports what a [`Trigger`] says of itself: the names are in the [module's table](self#what-is-exported).
///
/// `T` is anything that leads to the trigger: a reference, an `Arc`.
pub struct TriggerMetrics<T> {
    trigger: T,
    limit: Gauge,
    headroom: Gauge,
    collecting_ratio: Gauge,
    /// Held while a report is taken and handed on, so that reports come in the order they were taken in.
    cycles: Mutex<Counter>,
}

impl<'a, P: Policy + 'a, T: Deref<Target = Trigger<'a, P>>> TriggerMetrics<T> {
    /// Describes and registers the figures of `trigger` with the recorder that is installed now, under the label
    /// `trigger = name`. Records nothing yet.
    pub fn new(trigger: T, name: impl Into<SharedString>) -> Self {
        let measure = trigger.report().measure;
        let named = Label::new("trigger", name);
        let measured = [named.clone(), Label::new("measure", measure.name())];
        let named = [named];
        Self {
            trigger,
            limit: gauge(LIMIT, &measured),
            headroom: gauge(HEADROOM, &measured),
            collecting_ratio: gauge(COLLECTING_RATIO, &named),
            cycles: Mutex::new(counter(CYCLES, &named)),
        }
    }

    /// Takes the trigger's report and sets every figure. Takes time in proportion to the number of threads, as
    /// [`Trigger::report`] does.
    pub fn record(&self) {
        let cycles = self.cycles.lock().unwrap_or_else(PoisonError::into_inner);
        let report = self.trigger.report();
        set(&self.limit, report.limit);
        set(&self.headroom, report.headroom);
        self.collecting_ratio.set(report.collecting_share());
        cycles.absolute(report.cycles);
    }
}

impl<T> fmt::Debug for TriggerMetrics<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TriggerMetrics").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::thread;

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::{AccountMetrics, Widened};
    use crate::mode::Exact;

    /// Panics when a counter is told to go back, which real recorders forgive.
    struct Strict;

    /// What a counter was last told.
    #[derive(Default)]
    struct Told(AtomicU64);

    impl CounterFn for Told {
        fn increment(&self, _by: u64) {
            panic!("counters are told absolute figures");
        }

        fn absolute(&self, figure: u64) {
            let before = self.0.swap(figure, Relaxed);
            assert!(before <= figure, "from {before} back to {figure}");
        }
    }

    impl Recorder for Strict {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Arc::new(Told::default()))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            panic!("{key} is no figure of ours")
        }
    }

    #[test]
    fn readings_from_several_threads_never_tell_a_counter_to_go_back() {
        let account = crate::counter::Counter::<Exact>::with_mode();
        let exported = metrics::with_local_recorder(&Strict, || AccountMetrics::new(&account, "a"));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        account.add(1);
                        exported.record();
                    }
                });
            }
        });
        let told = exported.counters.lock().expect("no recorder panicked");
        assert_eq!(
            told.allocated_bytes.total, 30_000,
            "the last reading has all"
        );
    }

    #[test]
    fn a_counter_goes_on_where_the_figure_it_is_told_wraps() {
        let told = Arc::new(Told::default());
        let mut widened = Widened::over(Counter::from_arc(Arc::clone(&told)));
        // 5 below the width of the figure; a total so small leaves the sum to check by hand.
        (widened.total, widened.last) = (7, usize::MAX - 4);
        widened.record(10);
        assert_eq!(told.0.load(Relaxed), 22, "15 more");
        widened.record(10);
        assert_eq!(told.0.load(Relaxed), 22, "nothing more");
    }
}
