//! Policies under figures that no heap would give them.
//!
//! Whatever the parameters and the cycles: nothing panics, a limit is above what is live and as documented for its policy,
//! what a policy carries over is taken up again, and a trigger always has a limit.

mod drive;
mod triggered;

use arbitrary::Arbitrary;
use tally_alloc::policy::{
    Clamped, Cycle, EveryBytes, FixedLimit, Increment, IncrementState, Policy, PolicyError,
    Proportional, Rate, Resumable, SquareRoot, SquareRootState, ThrashGuard,
};

use crate::figures::{Amount, Fraction, Time};
use drive::{Promise, drive};

/// An input.
#[derive(Arbitrary, Debug)]
pub struct Input {
    plain: Plain,
    wrapped: Wrapped,
    cycles: Vec<Stretch>,
    state: State,
    triggered: triggered::Input,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Plain {
    Fixed(Amount, Option<Amount>),
    Increment(Amount, Amount),
    Proportional(Fraction, Amount, Amount),
    SquareRoot(Fraction, Option<Fraction>, Amount, Amount),
    Every(Amount),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Wrapped {
    Plain,
    Clamped(Amount, Amount),
    Guarded(Option<Strikes>),
    Both(Option<Strikes>, Amount, Amount),
}

/// How many slow cycles it takes to widen.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Strikes {
    Few(bool),
    Any(u32),
}

impl Strikes {
    fn get(self) -> u32 {
        match self {
            Self::Few(two) => 1 + u32::from(two),
            Self::Any(strikes) => strikes,
        }
    }
}

/// One cycle.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Stretch {
    live_before: Amount,
    live_after: Amount,
    allocated: Amount,
    request: Option<Amount>,
    limit: Amount,
    pause: Time,
    mutator: Time,
}

impl Stretch {
    fn cycle(&self) -> Cycle {
        Cycle::new(self.live_before.get(), self.live_after.get())
            .with_allocated(self.allocated.get())
            .with_request(self.request.map_or(0, Amount::get))
            .with_limit(self.limit.get())
            .with_pause(self.pause.get())
            .with_mutator(self.mutator.get())
    }
}

/// Figures of a state that nobody has left.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct State {
    limit: Amount,
    low: bool,
    steps: u64,
    rates: [Fraction; 4],
    level: u8,
}

/// A policy whose state can be made up.
trait Stateful: Policy + Resumable + Clone {
    /// Returns the state that the figures make, and whether a policy may have left it.
    fn made_up(state: &State) -> (Self::State, bool);
}

impl Stateful for FixedLimit {
    fn made_up(state: &State) -> (usize, bool) {
        (state.limit.get(), state.limit.get() > 0)
    }
}

impl Stateful for EveryBytes {
    fn made_up(state: &State) -> (usize, bool) {
        (state.limit.get(), state.limit.get() > 0)
    }
}

impl Stateful for Proportional {
    fn made_up(state: &State) -> (usize, bool) {
        (state.limit.get(), state.limit.get() > 0)
    }
}

impl Stateful for Increment {
    fn made_up(state: &State) -> (IncrementState, bool) {
        let made = IncrementState {
            reserve: state.limit.get(),
            low: state.low,
            growth_steps: state.steps,
        };
        (made, made.reserve > 0)
    }
}

impl Stateful for SquareRoot {
    fn made_up(state: &State) -> (SquareRootState, bool) {
        let [a, b, c, d] = state.rates.map(Fraction::get);
        let rate = |bytes, seconds| {
            let mut rate = Rate::default();
            (rate.bytes, rate.seconds) = (bytes, seconds);
            rate
        };
        let made = SquareRootState {
            limit: state.limit.get(),
            allocation: rate(a, b),
            collection: rate(c, d),
        };
        let good = [a, b, c, d]
            .iter()
            .all(|mean| mean.is_finite() && *mean >= 0.0);
        (made, good && made.limit > 0)
    }
}

impl<P: Stateful> Stateful for Clamped<P> {
    fn made_up(state: &State) -> (P::State, bool) {
        P::made_up(state)
    }
}

impl<P: Stateful> Stateful for ThrashGuard<P> {
    fn made_up(state: &State) -> (Self::State, bool) {
        let (inner, good) = P::made_up(state);
        // Made from one that a policy has left, since the fields of a state are all there is.
        let made = tally_alloc::policy::ThrashGuardState {
            inner,
            limit: state.limit.get(),
            level: u32::from(state.level),
        };
        (
            made,
            good && made.limit > 0 && made.level <= ThrashGuard::<P>::MAX_LEVEL,
        )
    }
}

/// Takes the policy if its parameters are good, which must be what it says.
fn made<P>(policy: Result<P, PolicyError>, good: bool) -> Option<P> {
    assert_eq!(policy.is_ok(), good, "whether the parameters are good");
    if let Err(error) = &policy {
        assert!(!error.to_string().is_empty());
    }
    policy.ok()
}

fn is_range(min: usize, max: usize) -> bool {
    0 < min && min <= max
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// Makes the policy and lets it go through the cycles.
pub fn run(input: &Input) {
    match input.plain {
        Plain::Fixed(limit, progress) => {
            let (limit, progress) = (limit.get(), progress.map(Amount::get));
            let policy = FixedLimit::new(limit).and_then(|policy| match progress {
                Some(progress) => policy.with_progress(progress),
                None => Ok(policy),
            });
            if let Some(policy) = made(policy, limit > 0 && progress != Some(0)) {
                wrap(input, policy, Promise::at_least(limit));
            }
        }
        Plain::Increment(initial, increment) => {
            let (initial, increment) = (initial.get(), increment.get());
            let policy = Increment::new(initial, increment);
            if let Some(policy) = made(policy, initial > 0 && increment > 0) {
                let promise = Promise::at_least(initial).granting();
                wrap(input, policy, promise.with_any_progress());
            }
        }
        Plain::Proportional(growth, min, max) => {
            let (growth, min, max) = (growth.get(), min.get(), max.get());
            let policy = Proportional::new(growth, min..=max);
            if let Some(policy) = made(policy, is_positive(growth) && is_range(min, max)) {
                wrap(input, policy, Promise::within(min, max));
            }
        }
        Plain::SquareRoot(c, smoothing, min, max) => {
            let (c, min, max) = (c.get(), min.get(), max.get());
            let smoothing = smoothing.map(Fraction::get);
            let policy = SquareRoot::new(c, min..=max).and_then(|policy| match smoothing {
                Some(smoothing) => policy.with_smoothing(smoothing),
                None => Ok(policy),
            });
            let smooth = smoothing.is_none_or(|it| (0.0..1.0).contains(&it));
            if let Some(policy) = made(policy, is_positive(c) && is_range(min, max) && smooth) {
                wrap(input, policy, Promise::within(min, max));
            }
        }
        Plain::Every(interval) => {
            let policy = EveryBytes::new(interval.get());
            if let Some(policy) = made(policy, interval.get() > 0) {
                wrap(input, policy, Promise::at_least(1).granting());
            }
        }
    }
}

fn guard<P: Policy>(policy: P, strikes: Option<Strikes>) -> Option<ThrashGuard<P>> {
    let guarded = ThrashGuard::new(policy);
    match strikes.map(Strikes::get) {
        None => Some(guarded),
        Some(strikes) => made(guarded.with_strikes(strikes), strikes > 0),
    }
}

fn wrap<P>(input: &Input, plain: P, promise: Promise)
where
    P: Stateful + Send + 'static,
    P::State: drive::Saved,
{
    match input.wrapped {
        Wrapped::Plain => all(input, plain, promise, None),
        Wrapped::Clamped(min, max) => {
            let (min, max) = (min.get(), max.get());
            let clamped = Clamped::new(plain, min..=max);
            if let Some(clamped) = made(clamped, is_range(min, max)) {
                all(input, clamped, Promise::within(min, max), None);
            }
        }
        Wrapped::Guarded(strikes) => {
            if let Some(guarded) = guard(plain.clone(), strikes) {
                all(input, guarded, promise.widened(), Some(Box::new(plain)));
            }
        }
        Wrapped::Both(strikes, min, max) => {
            let (min, max) = (min.get(), max.get());
            let Some(guarded) = guard(plain, strikes) else {
                return;
            };
            if let Some(clamped) = made(Clamped::new(guarded, min..=max), is_range(min, max)) {
                all(input, clamped, Promise::within(min, max), None);
            }
        }
    }
}

fn all<P>(input: &Input, policy: P, promise: Promise, within: Option<Box<dyn Policy>>)
where
    P: Stateful + Send + 'static,
    P::State: drive::Saved,
{
    let cycles: Vec<Cycle> = input.cycles.iter().map(Stretch::cycle).collect();
    triggered::run(&input.triggered, policy.clone());
    let (state, good) = P::made_up(&input.state);
    drive(policy.clone(), promise, &cycles, within);
    let mut resumed = policy;
    let before = (resumed.initial_limit(), resumed.growth_steps());
    let outcome = resumed.resume(state);
    assert_eq!(outcome.is_ok(), good, "{state:?}: {outcome:?}");
    if outcome.is_err() {
        let after = (resumed.initial_limit(), resumed.growth_steps());
        assert_eq!(before, after, "a refused state has changed the policy");
    }
    // What it carries over may be anything, so of its reserve no least is known.
    drive(resumed, promise.with_any_reserve(), &cycles, None);
}
