//! What is saved with serde comes back as it was, under names that stay; what no account, trigger or policy can
//! have left is an error where it is read.
#![cfg(feature = "serde")]
#![allow(missing_docs, reason = "an integration test")]

use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::value::{Error as PlainError, MapDeserializer};
use serde::de::{Deserialize, DeserializeOwned, IntoDeserializer};
use serde_json::{Value, json};
use tally_alloc::policy::{
    Clamped, Cycle, EveryBytes, FixedLimit, Increment, IncrementState, Policy, Proportional, Rate,
    Resumable, SquareRoot, SquareRootState, ThrashGuard, ThrashGuardState,
};
use tally_alloc::{Cause, Counter, Evidence, Exact, Measure, Report, Totals, Trigger};

/// Writes `it`, checks that reading it gives the same, and returns what was written.
fn written<T: Serialize + DeserializeOwned + PartialEq + Debug>(it: &T) -> Value {
    let text = serde_json::to_string(it).expect("it can be written");
    let back: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(&back, it, "{text}");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Returns why `T` refuses `value`.
fn refusal<T: DeserializeOwned + Debug>(value: Value) -> String {
    let text = value.to_string();
    let read: Result<T, serde_json::Error> = serde_json::from_value(value);
    read.expect_err(&text).to_string()
}

proptest! {
    #[test]
    fn totals_come_back(figures in any::<[usize; 5]>()) {
        let mut totals = Totals::default();
        [
            totals.bytes_allocated,
            totals.bytes_deallocated,
            totals.allocations,
            totals.deallocations,
            totals.reallocations,
        ] = figures;
        let value = written(&totals);
        prop_assert_eq!(value, json!({
            "bytes_allocated": figures[0],
            "bytes_deallocated": figures[1],
            "allocations": figures[2],
            "deallocations": figures[3],
            "reallocations": figures[4],
        }));
    }

    #[test]
    fn states_come_back(
        limit in 1..usize::MAX,
        low: bool,
        growth_steps: u64,
        level in 0..=16_u32,
        means in prop::array::uniform4(0.0..f64::MAX),
    ) {
        let increment = IncrementState { reserve: limit, low, growth_steps };
        let value = written(&increment);
        prop_assert_eq!(value, json!({ "reserve": limit, "low": low, "growth_steps": growth_steps }));
        written(&ThrashGuardState { inner: increment, limit, level });
        let [a, b, c, d] = means;
        written(&SquareRootState {
            limit,
            allocation: Rate { bytes: a, seconds: b },
            collection: Rate { bytes: c, seconds: d },
        });
    }

    /// Whatever the bytes: an error or a value, no panic.
    #[test]
    fn what_is_not_a_state_is_an_error(text in r#"[-{}\[\]":,a-z_0-9.eE ]{0,60}"#) {
        let _ = serde_json::from_str::<Totals>(&text);
        let _ = serde_json::from_str::<Report>(&text);
        let _ = serde_json::from_str::<SquareRootState>(&text);
        let _ = serde_json::from_str::<ThrashGuardState<IncrementState>>(&text);
    }
}

#[test]
fn a_report_comes_back_under_names_that_stay() {
    let account = Counter::<Exact>::with_mode();
    let policy = FixedLimit::new(1_000).expect("a limit");
    let trigger = Trigger::new(&account, Measure::LiveBytes, policy).expect("memory");
    assert_eq!(written(&trigger.report())["cause"], Value::Null);

    account.add(1_000_000);
    assert!(trigger.poll(), "the limit is reached");
    account.sub(1_000_000);
    trigger.collected(Duration::new(3, 500));
    let mut value = written(&trigger.report());
    let mutating = value["mutating"].take();
    assert!(
        mutating["secs"].is_u64() && mutating["nanos"].is_u64(),
        "{mutating}"
    );
    assert_eq!(
        value,
        json!({
            "measure": "live_bytes",
            "cycles": 1,
            "collecting": { "secs": 3, "nanos": 500 },
            "mutating": null,
            "bytes_allocated": 1_000_000,
            "limit": 1_000,
            "headroom": 1_000,
            "growth_steps": 0,
            "cause": { "limit": 1_000, "figure": 1_000_000, "evidence": "published" },
        })
    );
}

#[test]
fn a_measure_and_an_evidence_are_written_as_their_names() {
    for measure in [
        Measure::LiveBytes,
        Measure::LiveBlocks,
        Measure::AllocatedBytes,
    ] {
        assert_eq!(written(&measure), measure.name());
    }
    for evidence in [Evidence::Published, Evidence::Sum, Evidence::Request] {
        assert_eq!(written(&evidence), evidence.name());
    }
}

#[test]
fn each_policy_goes_on_from_what_was_written() {
    fn check<P: Policy + Resumable<State: Serialize + DeserializeOwned>>(make: impl Fn() -> P) {
        let mut old = make();
        for live in [9_000, 9_500, 9_900] {
            let cycle = Cycle::new(10_000, live)
                .with_allocated(5_000)
                .with_pause(Duration::from_millis(3))
                .with_mutator(Duration::from_millis(2));
            old.next_limit(&cycle);
        }
        let value = written(&old.state());
        let mut new = make();
        let state = serde_json::from_value(value).expect("it was written");
        new.resume(state).expect("it can be resumed from");
        assert_eq!(
            new.initial_limit(),
            make_resumed(&make, old.state()),
            "{:?}",
            old.state()
        );
    }
    /// The limit that a policy resumes with when the state was not written in between.
    fn make_resumed<P: Resumable>(make: impl Fn() -> P, state: P::State) -> usize {
        let mut policy = make();
        policy.resume(state).expect("it can be resumed from");
        policy.initial_limit()
    }
    let increment = || Increment::new(10_000, 1_000).expect("parameters");
    check(increment);
    check(|| FixedLimit::new(10_000).expect("a limit"));
    check(|| EveryBytes::new(10_000).expect("an interval"));
    check(|| Proportional::new(1.0, 1..=1 << 30).expect("parameters"));
    check(|| SquareRoot::new(SquareRoot::DEFAULT_C, 1..=1 << 30).expect("parameters"));
    check(|| ThrashGuard::new(increment()));
    check(|| Clamped::new(ThrashGuard::new(increment()), 1..=1 << 30).expect("a range"));
}

#[test]
fn what_no_policy_can_have_left_is_an_error() {
    let rate = json!({ "bytes": 1.0, "seconds": 1.0 });
    let square_root = |limit: i64, allocation: Value| {
        let collection = &rate;
        refusal::<SquareRootState>(
            json!({ "limit": limit, "allocation": allocation, "collection": collection }),
        )
    };
    let negative = json!({ "bytes": -1.0, "seconds": 1.0 });
    for (why, expected) in [
        (square_root(0, rate.clone()), "the limit must be above zero"),
        (square_root(-1, rate.clone()), "invalid value: integer `-1`"),
        (square_root(1, negative), "the rate cannot be -1"),
        (
            square_root(1, json!({ "bytes": null, "seconds": 1.0 })),
            "invalid type: null",
        ),
        (
            square_root(1, json!({ "bytes": 1.0 })),
            "missing field `seconds`",
        ),
        (
            refusal::<IncrementState>(json!({ "reserve": 0, "low": false, "growth_steps": 0 })),
            "the limit must be above zero",
        ),
        (
            refusal::<ThrashGuardState<usize>>(json!({ "inner": 1, "limit": 0, "level": 0 })),
            "the limit must be above zero",
        ),
        (
            refusal::<ThrashGuardState<usize>>(json!({ "inner": 1, "limit": 1, "level": 17 })),
            "the level cannot be 17",
        ),
        (
            refusal::<Totals>(json!({ "bytes_allocated": -1 })),
            "invalid value: integer `-1`",
        ),
        (
            refusal::<Measure>(json!("dead_bytes")),
            "unknown variant `dead_bytes`",
        ),
        (
            refusal::<Cause>(json!({ "limit": 1, "figure": 1.5, "evidence": "sum" })),
            "invalid type: floating point `1.5`",
        ),
    ] {
        assert!(why.contains(expected), "{why:?} does not say {expected:?}");
    }
}

/// JSON has no word for them; other formats do.
#[test]
fn what_is_not_a_finite_number_is_no_rate() {
    for (bytes, shown) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (-f64::MIN_POSITIVE, "-0.000"),
    ] {
        let fields = [("bytes", bytes), ("seconds", 1.0)];
        let map = MapDeserializer::<_, PlainError>::new(fields.into_iter());
        let why = Rate::deserialize(map.into_deserializer())
            .expect_err(shown)
            .to_string();
        assert!(
            why.starts_with(&format!("the rate cannot be {shown}")),
            "{why}"
        );
    }
}

#[test]
fn fields_of_a_later_version_are_passed_over() {
    let mut value = written(&Totals::default());
    value["collected"] = json!("later");
    let totals: Totals = serde_json::from_value(value).expect("the rest is there");
    assert_eq!(totals, Totals::default());
}
