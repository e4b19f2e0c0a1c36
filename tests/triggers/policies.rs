//! What passes between a trigger and its policy.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tally_alloc::policy::{
    Cycle, FixedLimit, Increment, Policy, Proportional, Resumable, SquareRoot, ThrashGuard,
};
use tally_alloc::{Measure, Trigger, heap};

use super::{KB, MB, NO_TIME, live};
use crate::support::block::Block;
use crate::support::claims;

claims![
    a_thrash_guard_widens_when_collecting_is_slow_and_narrows_when_it_is_quick,
    a_policy_may_look_at_its_own_trigger,
    a_policy_that_panics_leaves_the_trigger_armed_as_it_was,
    a_policy_goes_on_in_another_trigger_where_it_left_off,
    a_cycle_has_the_figures_of_before_and_after,
];

fn a_thrash_guard_widens_when_collecting_is_slow_and_narrows_when_it_is_quick() {
    let guarded = FixedLimit::new(live() + MB).expect("a valid policy");
    let policy = ThrashGuard::new(guarded);
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let at_rest = trigger.limit();
    let slow = Duration::from_secs(1_000_000);
    (0..3).for_each(|_| trigger.collected(slow));
    let wide = trigger.limit();
    assert!(
        wide > at_rest,
        "{wide} after three slow cycles, {at_rest} before"
    );
    assert_eq!(trigger.policy_state().level, 1);
    (0..3).for_each(|_| trigger.collected(NO_TIME));
    let narrow = trigger.limit();
    assert!(
        narrow < wide,
        "{narrow} after three quick cycles, {wide} before"
    );
    assert_eq!(trigger.policy_state().level, 0);
}

static WATCHED: OnceLock<Trigger<'static>> = OnceLock::new();

struct Curious;

impl Policy for Curious {
    fn initial_limit(&self) -> usize {
        1 << 40
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        let trigger = WATCHED.get().expect("set before the first cycle");
        assert!(!trigger.poll(), "a cycle is ending");
        let report = trigger.report();
        assert_eq!(report.limit, cycle.limit);
        let _ = trigger.announce(1);
        drop(Block::new(MB));
        trigger.limit() + trigger.headroom()
    }
}

fn a_policy_may_look_at_its_own_trigger() {
    let policy: Box<dyn Policy> = Box::new(Curious);
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    assert!(WATCHED.set(trigger).is_ok(), "set once");
    let trigger = WATCHED.get().expect("it was set");
    trigger.collected(NO_TIME);
    assert!(trigger.limit() > 1 << 40, "{trigger:?}");
}

/// Panics the first time it is asked.
struct Panics(usize, AtomicUsize);

impl Policy for Panics {
    fn initial_limit(&self) -> usize {
        self.0
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        assert_ne!(self.1.fetch_add(1, Relaxed), 0, "the first time");
        cycle.live_after + MB
    }
}

fn a_policy_that_panics_leaves_the_trigger_armed_as_it_was() {
    let limit = live() + MB;
    let policy = Panics(limit, AtomicUsize::new(0));
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let full = Block::new(2 * MB);
    assert!(trigger.poll(), "{trigger:?}");
    // This panic is meant; any other ends the process.
    let ends_the_process = take_hook();
    set_hook(Box::new(|_| ()));
    let ended = catch_unwind(AssertUnwindSafe(|| trigger.collected(NO_TIME)));
    set_hook(ends_the_process);
    assert!(ended.is_err(), "the policy panics");
    assert_eq!((trigger.limit(), trigger.report().cycles), (limit, 0));
    assert!(trigger.poll(), "due again: {trigger:?}");
    trigger.collected(NO_TIME);
    assert_eq!(trigger.report().cycles, 1);
    assert!(!trigger.poll(), "{trigger:?}");
    drop(full);
}

/// Runs a policy, moves its state to another of the same parameters, and runs both on: the limits are the
/// same in the two triggers.
fn moves<P: Resumable>(make: impl Fn() -> P) {
    let old = Trigger::new(heap(), Measure::LiveBytes, make()).expect("memory");
    let mut held = Vec::with_capacity(4_000);
    for _ in 0..20 {
        held.extend((0..100).map(|_| Block::new(KB)));
        old.collected(NO_TIME);
    }
    let state = old.policy_state();
    let mut policy = make();
    policy.resume(state).expect("a state of its own kind");
    let new = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    assert_eq!(new.policy_state(), state, "taken over as it was");
    assert_eq!(new.limit(), old.limit(), "goes on with the limit in force");
    drop(held);
}

fn a_policy_goes_on_in_another_trigger_where_it_left_off() {
    let start = live();
    moves(|| Increment::new(start + 64 * KB, 32 * KB).expect("a valid policy"));
    moves(|| Proportional::new(0.5, 64 * KB..=100 * MB).expect("a valid policy"));
    moves(|| SquareRoot::new(1e-3, 64 * KB..=100 * MB).expect("a valid policy"));
    moves(|| {
        let inner = FixedLimit::new(start + 64 * KB).expect("a valid policy");
        ThrashGuard::new(inner)
    });
}

/// Keeps the last cycle it was told of.
struct Notes(usize, std::sync::Arc<std::sync::Mutex<Cycle>>);

impl Policy for Notes {
    fn initial_limit(&self) -> usize {
        self.0
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        *self.1.lock().expect("no panic") = *cycle;
        cycle.live_after + MB
    }
}

fn a_cycle_has_the_figures_of_before_and_after() {
    let told = std::sync::Arc::default();
    let kept = Block::new(3 * MB);
    let start = live();
    let policy = Notes(start + MB, std::sync::Arc::clone(&told));
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let garbage = Block::new(MB);
    assert!(trigger.poll(), "{trigger:?}");
    drop(garbage);
    drop(kept);
    trigger.collected(Duration::from_millis(7));
    let cycle = *told.lock().expect("no panic");
    assert_eq!(cycle.live_before, start + MB);
    assert_eq!(cycle.live_after, start - 3 * MB);
    assert_eq!(cycle.allocated, MB);
    assert_eq!(cycle.limit, start + MB);
    assert_eq!(cycle.pause, Duration::from_millis(7));
}
