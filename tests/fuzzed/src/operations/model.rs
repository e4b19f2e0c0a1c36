//! The plain numbers, and what they say of each figure.

use tally_alloc::policy::{Cycle, Policy};
use tally_alloc::{Measure, Measured, Totals, Trigger, heap};

use super::subjects::Subjects;
use super::worker::Answer;
use super::{Act, THREADS};

/// A limit that is some way above what is live, and never given up.
struct Above {
    first: usize,
    step: usize,
}

impl Policy for Above {
    fn initial_limit(&self) -> usize {
        self.first
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        cycle.live_after.saturating_add(self.step)
    }
}

/// What can be read of an account.
#[derive(Clone, Copy, Debug)]
struct Seen {
    totals: Totals,
    live: usize,
    bound: usize,
    peak: usize,
}

impl Subjects {
    /// Returns the bounds, which may be read without a trace.
    fn bounds(&self) -> [usize; 3] {
        [
            self.batched.error_bound(),
            self.exact.error_bound(),
            heap().error_bound(),
        ]
    }

    fn seen(&self) -> [Seen; 3] {
        // The peak first: whoever reads the live bytes raises it, and it must not take that.
        let (batched, exact) = (&self.batched, &self.exact);
        let peaks = [
            batched.peak_bytes(),
            exact.peak_bytes(),
            heap().peak_bytes(),
        ];
        let seen = |totals, live, bound, peak| Seen {
            totals,
            live,
            bound,
            peak,
        };
        [
            seen(
                batched.totals(),
                batched.live_bytes(),
                batched.error_bound(),
                peaks[0],
            ),
            seen(
                exact.totals(),
                exact.live_bytes(),
                exact.error_bound(),
                peaks[1],
            ),
            seen(
                heap().totals(),
                heap().live_bytes(),
                heap().error_bound(),
                peaks[2],
            ),
        ]
    }
}

/// What there was since some moment.
#[derive(Clone, Copy, Debug)]
struct Since {
    /// The highest live bytes, in truth.
    truth: usize,
    /// The highest that were read.
    read: usize,
    /// The largest bound.
    bound: usize,
}

impl Since {
    fn of(seen: &Seen, truth: usize) -> Self {
        Self {
            truth,
            read: seen.live,
            bound: seen.bound,
        }
    }

    fn add(&mut self, bound: usize, truth: usize) {
        self.truth = self.truth.max(truth);
        self.bound = self.bound.max(bound);
    }

    fn read(&mut self, live: usize) {
        self.read = self.read.max(live);
    }

    /// Checks a peak of all this time.
    fn check(&self, peak: usize, exact: bool, what: &str) {
        assert!(peak >= self.read, "{what} is {peak}: {self:?}");
        assert!(
            peak.abs_diff(self.truth) <= self.bound,
            "{what} is {peak}: {self:?}"
        );
        assert!(!exact || peak == self.truth, "{what} is {peak}: {self:?}");
    }
}

/// A scope that is open.
#[derive(Clone, Copy, Debug)]
struct Opened {
    totals: Totals,
    own: Totals,
    since: [Since; 3],
}

pub(super) struct Model<'a> {
    subjects: &'a Subjects,
    triggers: [Trigger<'a, Above>; 3],
    /// The highest truth since each trigger was armed.
    armed: [usize; 3],
    /// What the process's account had before.
    before: Totals,
    totals: Totals,
    own: [Totals; THREADS],
    /// What the threads had done in the process's account before.
    own_before: [Totals; THREADS],
    scopes: [Vec<Opened>; THREADS],
    peaks: [Since; 3],
    seen: [Seen; 3],
    /// The bytes of the act before.
    last: usize,
}

/// The place of the exact counter among the three.
const EXACT: usize = 1;

impl<'a> Model<'a> {
    pub(super) fn new(
        subjects: &'a Subjects,
        limit: usize,
        step: usize,
        own_before: [Totals; THREADS],
    ) -> Self {
        heap().reset_peak();
        let (first, step) = (limit.max(1), step.max(1));
        let above = || Above { first, step };
        let seen = subjects.seen();
        let before = seen[2].totals;
        assert_eq!(
            before.live_bytes(),
            0,
            "something is left of the input before"
        );
        Self {
            subjects,
            triggers: [
                Trigger::new(&subjects.batched, Measure::LiveBytes, above()).expect("memory"),
                Trigger::new(&subjects.exact, Measure::LiveBytes, above()).expect("memory"),
                Trigger::new(heap(), Measure::LiveBytes, above()).expect("memory"),
            ],
            armed: [0; 3],
            before,
            totals: Totals::default(),
            own: [Totals::default(); THREADS],
            own_before,
            scopes: [const { Vec::new() }; THREADS],
            peaks: seen.map(|seen| Since::of(&seen, 0)),
            seen,
            last: 0,
        }
    }

    fn truth(&self) -> usize {
        self.totals.live_bytes()
    }

    pub(super) fn scopes(&self, thread: usize) -> usize {
        self.scopes[thread].len()
    }

    /// A thread has ended, and another has its number.
    pub(super) fn ended(&mut self, thread: usize) {
        self.own[thread] = Totals::default();
        self.own_before[thread] = Totals::default();
        self.scopes[thread].clear();
    }

    /// Takes note of what a thread has done.
    pub(super) fn did(&mut self, thread: usize, act: Act, look: bool) {
        for totals in [&mut self.totals, &mut self.own[thread]] {
            match act {
                Act::Allocate { size, .. } => {
                    totals.bytes_allocated = totals.bytes_allocated.wrapping_add(size);
                    totals.allocations += 1;
                }
                Act::Free { size } => {
                    totals.bytes_deallocated = totals.bytes_deallocated.wrapping_add(size);
                    totals.deallocations += 1;
                }
                Act::Resize { old, new } => {
                    let (grown, shrunk) = (new.saturating_sub(old), old.saturating_sub(new));
                    totals.bytes_allocated = totals.bytes_allocated.wrapping_add(grown);
                    totals.bytes_deallocated = totals.bytes_deallocated.wrapping_add(shrunk);
                    totals.reallocations += 1;
                }
                _ => (),
            }
        }
        self.last = match act {
            Act::Allocate { size, .. } | Act::Free { size } => size,
            Act::Resize { old, new } => old.abs_diff(new),
            _ => 0,
        };
        let (truth, bounds) = (self.truth(), self.subjects.bounds());
        self.armed = self.armed.map(|armed| armed.max(truth));
        if act == Act::CloseScope {
            self.scopes[thread].pop();
        }
        for since in self.since() {
            for (since, bound) in since.iter_mut().zip(bounds) {
                since.add(bound, truth);
            }
        }
        if !look {
            return;
        }
        let seen = self.subjects.seen();
        self.seen = seen;
        if act == Act::ResetPeak {
            self.peaks = seen.map(|seen| Since::of(&seen, truth));
        }
        if act == Act::OpenScope {
            self.scopes[thread].push(Opened {
                totals: self.totals,
                own: self.own[thread],
                since: seen.map(|seen| Since::of(&seen, truth)),
            });
        }
        for since in self.since() {
            for (since, seen) in since.iter_mut().zip(&seen) {
                since.read(seen.live);
            }
        }
    }

    /// Returns what there was since the reset of the peak, and since the opening of each scope.
    fn since(&mut self) -> impl Iterator<Item = &mut [Since; 3]> {
        let open = self.scopes.iter_mut().flatten();
        open.map(|scope| &mut scope.since).chain([&mut self.peaks])
    }

    /// Compares everything.
    pub(super) fn check(&self, thread: usize, act: Act, answer: &Answer) {
        let (truth, [batched, exact, process]) = (self.truth(), self.seen);
        for (seen, totals) in [
            (batched, batched.totals),
            (exact, exact.totals),
            (process, process.totals - self.before),
        ] {
            assert_eq!(totals, self.totals, "the totals after {act:?}");
            assert!(
                seen.live.abs_diff(truth) <= seen.bound,
                "the truth is {truth} after {act:?}: {seen:?}"
            );
        }
        assert_eq!(
            (exact.live, exact.bound),
            (truth, 0),
            "exact, after {act:?}"
        );
        for (place, (since, now)) in self.peaks.iter().zip(&self.seen).enumerate() {
            since.check(now.peak, place == EXACT, "the peak");
        }
        let own = self.own[thread];
        let in_process = answer.own[2] - self.own_before[thread];
        assert_eq!(
            [answer.own[0], answer.own[1], in_process],
            [own; 3],
            "the thread's own after {act:?}"
        );
        assert_eq!(answer.scoped.is_some(), self.scopes(thread) > 0);
        if let (Some(opened), Some(scoped)) = (self.scopes[thread].last(), &answer.scoped) {
            self.check_scope(thread, opened, scoped);
        }
    }

    fn check_scope(&self, thread: usize, opened: &Opened, scoped: &[Measured; 3]) {
        for (place, (measured, since)) in scoped.iter().zip(&opened.since).enumerate() {
            assert_eq!(
                measured.totals,
                self.totals - opened.totals,
                "a scope's totals"
            );
            let own = self.own[thread] - opened.own;
            assert_eq!(measured.thread_totals, own, "a scope's thread totals");
            since.check(measured.peak_bytes, place == EXACT, "a scope's peak");
        }
    }

    /// Polls all triggers, and ends the cycles of those that are due.
    pub(super) fn poll(&mut self) {
        let truth = self.truth();
        for (place, trigger) in self.triggers.iter().enumerate() {
            let limit = trigger.limit();
            let due = trigger.poll();
            assert!(
                !due || self.armed[place] >= limit,
                "due below the limit: {trigger:?}"
            );
            let bound = if place == EXACT {
                0
            } else {
                self.peaks[place].bound
            };
            let most = limit
                .saturating_add(bound.saturating_mul(2))
                .saturating_add(self.last);
            let reached = if place == EXACT {
                self.armed[place] >= limit
            } else {
                truth > most
            };
            assert!(
                due || !reached,
                "{truth} bytes are live, and not due: {trigger:?}"
            );
            if due {
                let cause = trigger.report().cause.expect("it fired");
                assert!(cause.figure >= cause.limit, "{cause:?}");
                trigger.collected(std::time::Duration::ZERO);
                self.armed[place] = truth;
            }
        }
    }
}
