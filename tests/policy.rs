//! Policies: what each promises, by example and for any cycle.

use std::time::Duration;

use proptest::prelude::*;
use tally_alloc::policy::{
    Clamped, Cycle, EveryBytes, FixedLimit, Increment, IncrementState, Parameter, Policy,
    PolicyError, Proportional, Rate, Resumable, SquareRoot, SquareRootState, ThrashGuard,
    ThrashGuardState,
};

const MB: usize = 1_000_000;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// One of each kind, with ordinary parameters.
fn every_policy() -> Vec<(&'static str, Box<dyn Policy>)> {
    let increment = || Increment::new(10 * MB, MB).unwrap();
    vec![
        ("fixed", Box::new(FixedLimit::new(10 * MB).unwrap())),
        ("increment", Box::new(increment())),
        (
            "proportional",
            Box::new(Proportional::new(1.0, 4 * MB..=usize::MAX).unwrap()),
        ),
        (
            "proportional under a ceiling",
            Box::new(Proportional::new(1.0, 4 * MB..=12 * MB).unwrap()),
        ),
        (
            "square root",
            Box::new(SquareRoot::new(SquareRoot::DEFAULT_C, 4 * MB..=usize::MAX).unwrap()),
        ),
        ("every byte", Box::new(EveryBytes::new(1).unwrap())),
        (
            "clamped",
            Box::new(Clamped::new(increment(), 4 * MB..=12 * MB).unwrap()),
        ),
        ("guarded", Box::new(ThrashGuard::new(increment()))),
        (
            "clamped and guarded",
            Box::new(
                Clamped::new(
                    ThrashGuard::new(EveryBytes::new(1).unwrap()),
                    1..=usize::MAX,
                )
                .unwrap(),
            ),
        ),
    ]
}

/// Allocates `blocks` of `size` that all stay live, from `live` on, and returns the cycles.
fn cycles_of_growth(policy: &mut dyn Policy, mut live: usize, size: usize, blocks: usize) -> usize {
    let mut limit = policy.initial_limit();
    let mut cycles = 0;
    for _ in 0..blocks {
        live += size;
        if live >= limit {
            cycles += 1;
            limit = policy.next_limit(&Cycle::new(live, live).with_limit(limit));
        }
    }
    cycles
}

#[test]
fn the_first_limit_is_the_one_asked_for() {
    let every = || EveryBytes::new(1_000).unwrap();
    let increment = Increment::new(1_000, 100).unwrap();
    assert_eq!(increment.reserve(), 1_000);
    let policies: [(usize, Box<dyn Policy>); 7] = [
        (1_000, Box::new(increment)),
        (1_000, Box::new(every())),
        (1_000, Box::new(FixedLimit::new(1_000).unwrap())),
        (
            3_000,
            Box::new(Proportional::new(1.0, 3_000..=usize::MAX).unwrap()),
        ),
        (
            3_000,
            Box::new(SquareRoot::new(1.0, 3_000..=usize::MAX).unwrap()),
        ),
        (
            3_000,
            Box::new(Clamped::new(every(), 3_000..=usize::MAX).unwrap()),
        ),
        (1_000, Box::new(ThrashGuard::new(every()))),
    ];
    let first: Vec<usize> = policies.iter().map(|(_, it)| it.initial_limit()).collect();
    let asked_for: Vec<usize> = policies.iter().map(|(limit, _)| *limit).collect();
    assert_eq!(first, asked_for);
}

#[test]
fn a_proportional_limit_leaves_a_share_of_what_is_live() {
    for (growth, limit) in [(0.5, 15 * MB), (1.0, 20 * MB), (3.0, 40 * MB)] {
        let mut policy = Proportional::new(growth, MB..=usize::MAX).unwrap();
        assert_eq!(policy.next_limit(&Cycle::new(20 * MB, 10 * MB)), limit);
    }
}

#[test]
fn live_above_the_limit_does_not_collect_at_every_allocation() {
    // 100,000 blocks of 16 bytes with 10 MB live: 1.6 MB, which a limit just above live would
    // answer with 100,000 cycles. By the least progress, 10 MB / 64 = 156 kB, it is ten.
    for (name, mut policy) in every_policy() {
        let cycles = cycles_of_growth(&mut *policy, 10 * MB, 16, 100_000);
        assert!(
            cycles <= 11,
            "{name}: {cycles} cycles in 1.6 MB of allocation at 10 MB live"
        );
    }
}

#[test]
fn live_around_the_limit_does_not_collect_at_every_allocation() {
    // Each collection frees what the last blocks were, and live stays between a byte below the
    // limit and 64 bytes above it.
    for (name, mut policy) in every_policy() {
        let base = 10 * MB - 32;
        let (mut live, mut limit, mut cycles) = (base, policy.initial_limit(), 0);
        for _ in 0..100_000 {
            live += 64;
            if live >= limit {
                cycles += 1;
                limit = policy.next_limit(&Cycle::new(live, base).with_limit(limit));
                live = base;
            }
        }
        // 6.4 MB in steps of at least 10 MB / 64; `Increment` may need a second at once.
        assert!(cycles <= 42, "{name}: {cycles} cycles in 6.4 MB");
    }
}

#[test]
fn a_request_larger_than_the_limit_is_answered_in_one_cycle() {
    const REQUEST: usize = 20 * MB;
    for (name, mut policy) in every_policy() {
        let cycle = Cycle::new(9 * MB, MB)
            .with_limit(10 * MB)
            .with_request(REQUEST);
        let limit = policy.next_limit(&cycle);
        let grants = cycle.fits(limit);
        let refuses = ["fixed", "proportional under a ceiling", "clamped"].contains(&name);
        assert_eq!(grants, !refuses, "{name} answered {limit} to 21 MB needed");
        // Granted or refused, the host that goes ahead all the same meets one cycle more at most.
        let mut after = 0;
        let mut limit = limit;
        let mut live = MB + REQUEST;
        for _ in 0..500 {
            if live >= limit {
                after += 1;
                limit = policy.next_limit(&Cycle::new(live, live).with_limit(limit));
            }
            live += 16;
        }
        assert!(
            after <= usize::from(!grants),
            "{name}: {after} cycles after"
        );
    }
}

#[test]
fn a_fixed_limit_makes_its_progress_when_the_heap_is_full() {
    let mut policy = FixedLimit::new(16_000).unwrap();
    assert_eq!(policy.next_limit(&Cycle::new(16_000, 15_000)), 16_000);
    assert_eq!(
        policy.next_limit(&Cycle::new(16_000, 15_900)),
        16_900,
        "1/16 by default"
    );
    let mut policy = policy.with_progress(3_000).unwrap();
    assert_eq!(policy.next_limit(&Cycle::new(16_000, 15_900)), 18_900);
    assert_eq!(
        policy.next_limit(&Cycle::new(18_900, 9_000)),
        16_000,
        "and comes back"
    );
}

#[test]
fn a_strike_survives_the_growth_it_led_to() {
    let mut policy = Increment::new(1_000, 100).unwrap();
    let limits = [950, 950, 1_010, 1_110].map(|live| policy.next_limit(&Cycle::new(live, live)));
    assert_eq!(
        limits,
        [1_000, 1_100, 1_200, 1_300],
        "low each time from the first on"
    );
}

#[test]
fn an_increment_waits_for_the_second_strike_in_a_row() {
    let mut policy = Increment::new(1_000, 100).unwrap();
    let limits: Vec<usize> = [901, 900, 901, 901, 901, 1_001, 1_101, 1_001, 1_100, 1_201]
        .into_iter()
        .map(|live| policy.next_limit(&Cycle::new(1_000, live)))
        .collect();
    assert_eq!(
        limits,
        [
            1_000, 1_000, 1_000, 1_100, 1_100, 1_100, 1_200, 1_200, 1_200, 1_300
        ],
        "low, room (clears), low, low: grows; room, low, low: grows; room, room, does not fit: grows"
    );
    assert_eq!(policy.growth_steps(), 3);
}

#[test]
fn an_increment_rounds_a_large_request_up_and_never_shrinks() {
    let mut policy = Increment::new(1_000, 100).unwrap();
    assert_eq!(
        policy.next_limit(&Cycle::new(1_000, 500).with_request(400)),
        1_000,
        "it fits"
    );
    assert_eq!(
        policy.next_limit(&Cycle::new(1_000, 700).with_request(350)),
        1_400,
        "350 is four steps"
    );
    assert_eq!(policy.next_limit(&Cycle::new(1_400, 0)), 1_400);
}

#[test]
fn the_share_of_time_is_flat_under_proportional_and_grows_under_increment() {
    // Virtual time: a byte allocated takes 1 ns, a live byte marked 1 ns; a tenth of what is
    // allocated stays.
    fn shares(policy: &mut dyn Policy) -> (f64, f64) {
        let (mut live, mut limit) = (20 * MB, policy.initial_limit());
        let mut shares = Vec::new();
        while live < 400 * MB {
            let room = limit.saturating_sub(live);
            let kept = live + room / 10;
            let (pause, mutator) = (kept as f64, room as f64);
            shares.push(pause / (pause + mutator).max(1.0));
            limit = policy.next_limit(
                &Cycle::new(limit, kept)
                    .with_allocated(room)
                    .with_pause(Duration::from_nanos(kept as u64))
                    .with_mutator(Duration::from_nanos(room as u64)),
            );
            live = kept;
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let n = shares.len();
        // The first cycle only reaches the lower bound.
        (mean(&shares[1..3]), mean(&shares[n - 3..]))
    }
    let (early, late) = shares(&mut Proportional::new(1.0, 40 * MB..=usize::MAX).unwrap());
    assert!(
        (late / early - 1.0).abs() < 0.02,
        "proportional: {early:.3} early, {late:.3} late"
    );
    let (early, late) = shares(&mut Increment::new(40 * MB, 20 * MB).unwrap());
    assert!(
        late > 0.9 && late > 1.3 * early,
        "increment: {early:.3} early, {late:.3} late"
    );
}

#[test]
fn the_square_root_is_the_formula_of_the_paper() {
    let mut policy = SquareRoot::new(1e-9, 1..=usize::MAX).unwrap();
    // L = 40 MB, g = 10 MB/s, s = 400 MB/s: sqrt(40e6 x 10e6 / (1e-9 x 400e6)) = 31.6 MB.
    let cycle = Cycle::new(50 * MB, 40 * MB)
        .with_allocated(20 * MB)
        .with_mutator(ms(2_000))
        .with_pause(ms(100));
    let headroom = policy.next_limit(&cycle) - 40 * MB;
    assert!(
        headroom.abs_diff(31_622_776) <= 1,
        "headroom {headroom} of 31,622,776"
    );
    // The default price, 1 % of the time for 100 MB, is a tenth of that: sqrt(10) times the headroom.
    let mut ordinary = SquareRoot::new(SquareRoot::DEFAULT_C, 1..=usize::MAX).unwrap();
    let headroom = ordinary.next_limit(&cycle) - 40 * MB;
    assert!(headroom.abs_diff(100_000_000) <= 1, "headroom {headroom}");
    // Four times the price is half the headroom.
    let mut dearer = SquareRoot::new(4e-9, 1..=usize::MAX).unwrap();
    let headroom = dearer.next_limit(&cycle) - 40 * MB;
    assert!(headroom.abs_diff(15_811_388) <= 1, "headroom {headroom}");
}

#[test]
fn the_square_root_takes_in_a_change_at_the_pace_of_its_smoothing() {
    let cycle = |allocated| {
        Cycle::new(50 * MB, 40 * MB)
            .with_allocated(allocated)
            .with_mutator(ms(1_000))
            .with_pause(ms(100))
    };
    let headroom = |smoothing| {
        let mut policy = SquareRoot::new(1e-9, 1..=usize::MAX)
            .unwrap()
            .with_smoothing(smoothing)
            .unwrap();
        policy.next_limit(&cycle(10 * MB));
        policy.next_limit(&cycle(40 * MB)) - 40 * MB
    };
    // g becomes 40, 25 and 17.5 MB/s.
    for (smoothing, expected) in [(0.0, 63_245_553), (0.5, 50_000_000), (0.75, 41_833_001)] {
        let headroom = headroom(smoothing);
        assert!(
            headroom.abs_diff(expected) <= 1,
            "smoothing {smoothing}: headroom {headroom}, not {expected}"
        );
    }
}

#[test]
fn the_square_root_doubles_until_both_rates_are_known() {
    let mut policy = SquareRoot::new(1e-9, 1..=usize::MAX).unwrap();
    let blind = Cycle::new(50, 40).with_allocated(50);
    assert_eq!(policy.next_limit(&blind), 80, "no times");
    assert_eq!(
        policy.next_limit(&blind.with_pause(ms(1))),
        80,
        "no mutator time"
    );
    // The bytes of the cycles whose time was not seen count once the clock moves: (12.5 + 12.5 + 25)
    // bytes over 25 ms, (10 + 10 + 20) over a pause of 2.25 ms.
    let limit = policy.next_limit(&blind.with_pause(ms(4)).with_mutator(ms(50)));
    assert_ne!(limit, 80, "both known");
}

#[test]
fn the_guard_widens_while_collecting_takes_longer_and_narrows_again() {
    let mut policy = ThrashGuard::new(EveryBytes::new(64).unwrap());
    let cycle = |pause, mutator| {
        Cycle::new(1_064, 1_000)
            .with_pause(ms(pause))
            .with_mutator(ms(mutator))
    };
    let mut headrooms = |pause, mutator, times: usize| -> Vec<usize> {
        (0..times)
            .map(|_| policy.next_limit(&cycle(pause, mutator)) - 1_000)
            .collect()
    };
    assert_eq!(
        headrooms(30, 10, 7),
        [64, 64, 128, 128, 128, 256, 256],
        "widens at every third slow cycle"
    );
    assert_eq!(
        headrooms(10, 20, 9),
        [256; 9],
        "neither slow nor quick: stays"
    );
    assert_eq!(
        headrooms(10, 40, 7),
        [256, 256, 128, 128, 128, 64, 64],
        "narrows"
    );
    assert_eq!(headrooms(10, 40, 6), [64; 6], "and stops where it began");
    assert_eq!(
        [
            headrooms(30, 10, 2),
            headrooms(10, 20, 1),
            headrooms(30, 10, 2)
        ]
        .concat(),
        [64; 5],
        "three in a row, not three in all"
    );
    assert_eq!(headrooms(0, 0, 9), [64; 9], "no time says nothing");
    headrooms(30, 10, 3);
    assert_eq!(
        [
            headrooms(10, 40, 2),
            headrooms(10, 20, 1),
            headrooms(10, 40, 2)
        ]
        .concat(),
        [128; 5],
        "the same for narrowing"
    );
}

#[test]
fn a_guard_widens_after_as_many_slow_cycles_as_it_was_told() {
    for strikes in [1, 2, 5] {
        let mut policy = ThrashGuard::new(EveryBytes::new(64).unwrap())
            .with_strikes(strikes)
            .unwrap();
        let slow = Cycle::new(1_064, 1_000)
            .with_pause(ms(2))
            .with_mutator(ms(1));
        for cycle in 1..=3 * strikes {
            policy.next_limit(&slow);
            assert_eq!(policy.level(), cycle / strikes, "{strikes} strikes");
        }
    }
}

#[test]
fn a_guard_reckons_with_a_time_too_short_to_measure_beside_one_that_is_not() {
    let mut policy = ThrashGuard::new(EveryBytes::new(64).unwrap())
        .with_strikes(1)
        .unwrap();
    let mut level = |pause, mutator| {
        let cycle = Cycle::new(1_064, 1_000);
        policy.next_limit(&cycle.with_pause(ms(pause)).with_mutator(ms(mutator)));
        policy.level()
    };
    assert_eq!(level(1, 0), 1, "slow");
    assert_eq!(level(0, 0), 1, "nothing is known");
    assert_eq!(level(0, 1), 0, "quick");
}

#[test]
fn a_guarded_heap_that_thrashes_comes_to_rest() {
    // Everything live, 1 ns to allocate a byte, 1 ns to mark one: with 1/64 of headroom the pause
    // is 64 times the program's own time.
    let mut policy = ThrashGuard::new(EveryBytes::new(1).unwrap());
    let live = 64 * MB;
    let (mut limit, mut slow) = (policy.initial_limit(), 0);
    for _ in 0..200 {
        let room = limit.saturating_sub(live).max(1);
        slow += usize::from(live > room);
        limit = policy.next_limit(
            &Cycle::new(limit, live)
                .with_pause(Duration::from_nanos(live as u64))
                .with_mutator(Duration::from_nanos(room as u64)),
        );
    }
    assert_eq!(
        policy.level(),
        6,
        "2^6 / 64: as much headroom as there is live"
    );
    // Three for each of the six levels.
    assert_eq!(slow, 18, "cycles slower than the program's own work");
}

#[test]
fn a_guard_widens_up_to_the_largest_number_and_not_past_it() {
    let mut policy = ThrashGuard::new(EveryBytes::new(usize::MAX / 3).unwrap());
    let thrashing = Cycle::new(20 * MB, 10 * MB)
        .with_pause(Duration::MAX)
        .with_mutator(ms(1));
    let limits: Vec<usize> = (0..9).map(|_| policy.next_limit(&thrashing)).collect();
    assert!(limits.is_sorted(), "{limits:?}");
    assert_eq!(limits[8], usize::MAX);
}

#[test]
fn a_guard_within_a_clamp_stays_under_the_ceiling() {
    let guarded = ThrashGuard::new(Proportional::new(1.0, MB..=usize::MAX).unwrap());
    let mut policy = Clamped::new(guarded, MB..=30 * MB).unwrap();
    let thrashing = Cycle::new(20 * MB, 10 * MB)
        .with_pause(ms(30))
        .with_mutator(ms(10));
    for _ in 0..30 {
        let limit = policy.next_limit(&thrashing);
        assert!(limit <= 30 * MB, "{limit}");
    }
    assert_eq!(policy.inner().level(), 10);
}

#[test]
fn parameters_that_mean_nothing_are_refused_by_type() {
    let zero = |parameter| move |error: PolicyError| matches!(error, PolicyError::Zero { parameter: p, .. } if p == parameter);
    let unfit = |parameter| move |error: PolicyError| matches!(error, PolicyError::OutOfRange { parameter: p, .. } if p == parameter);
    let any = || 1..=usize::MAX;

    assert!(zero(Parameter::Limit)(FixedLimit::new(0).unwrap_err()));
    let fixed = FixedLimit::new(1).unwrap();
    assert!(zero(Parameter::Progress)(
        fixed.with_progress(0).unwrap_err()
    ));
    assert!(zero(Parameter::Initial)(Increment::new(0, 1).unwrap_err()));
    assert!(zero(Parameter::Increment)(
        Increment::new(1, 0).unwrap_err()
    ));
    assert!(zero(Parameter::Interval)(EveryBytes::new(0).unwrap_err()));
    assert!(zero(Parameter::Growth)(
        Proportional::new(0.0, any()).unwrap_err()
    ));
    assert!(zero(Parameter::Growth)(
        Proportional::new(-0.0, any()).unwrap_err()
    ));
    assert!(zero(Parameter::Min)(
        Proportional::new(1.0, 0..=9).unwrap_err()
    ));
    assert!(zero(Parameter::C)(SquareRoot::new(0.0, any()).unwrap_err()));
    let guard = ThrashGuard::new(FixedLimit::new(1).unwrap());
    assert!(zero(Parameter::Strikes)(guard.with_strikes(0).unwrap_err()));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        assert!(unfit(Parameter::Growth)(
            Proportional::new(bad, any()).unwrap_err()
        ));
        assert!(unfit(Parameter::C)(
            SquareRoot::new(bad, any()).unwrap_err()
        ));
        let square_root = SquareRoot::new(1.0, any()).unwrap();
        assert!(unfit(Parameter::Smoothing)(
            square_root.with_smoothing(bad).unwrap_err()
        ));
    }
    let square_root = SquareRoot::new(1.0, any()).unwrap();
    assert!(unfit(Parameter::Smoothing)(
        square_root.with_smoothing(1.0).unwrap_err()
    ));
    #[allow(clippy::reversed_empty_ranges, reason = "what is to be refused")]
    let empty = || 10..=9;
    for error in [
        Proportional::new(1.0, empty()).unwrap_err(),
        SquareRoot::new(1.0, empty()).unwrap_err(),
        Clamped::new(FixedLimit::new(1).unwrap(), empty()).unwrap_err(),
    ] {
        assert!(
            matches!(
                error,
                PolicyError::MinAboveMax {
                    min: 10,
                    max: 9,
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            "the lower bound 10 is above the upper bound 9"
        );
    }
}

#[test]
fn an_error_names_the_parameter() {
    let error = EveryBytes::new(0).unwrap_err();
    assert_eq!(error.to_string(), "the interval must be above zero");
    let error = SquareRoot::new(-1.5, 1..=2).unwrap_err();
    assert_eq!(error.to_string(), "the c cannot be -1.5");
}

#[test]
fn a_cycle_is_what_it_was_made_of() {
    let cycle = Cycle::new(2, 3);
    assert_eq!((cycle.live_before, cycle.live_after), (2, 3));
    assert_eq!((cycle.allocated, cycle.request, cycle.limit), (0, 0, 0));
    assert_eq!((cycle.pause, cycle.mutator), (ms(0), ms(0)));
    let cycle = cycle
        .with_allocated(4)
        .with_request(5)
        .with_limit(6)
        .with_pause(ms(7))
        .with_mutator(ms(8));
    assert_eq!((cycle.live_before, cycle.live_after), (2, 3));
    assert_eq!((cycle.allocated, cycle.request, cycle.limit), (4, 5, 6));
    assert_eq!((cycle.pause, cycle.mutator), (ms(7), ms(8)));
}

#[test]
fn what_is_needed_fits_below_the_limit_and_not_at_it() {
    let cycle = Cycle::new(1_000, 700).with_request(100);
    assert_eq!(cycle.needed(), 800);
    assert!(cycle.fits(801) && !cycle.fits(800) && !cycle.fits(799));
    let most = cycle.with_request(usize::MAX);
    assert_eq!(most.needed(), usize::MAX);
    assert!(!most.fits(usize::MAX));
}

#[test]
fn a_state_that_no_policy_can_have_left_is_refused_and_changes_nothing() {
    let mut increment = Increment::new(7, 1).unwrap();
    let state = IncrementState {
        reserve: 0,
        low: true,
        growth_steps: 9,
    };
    increment.resume(state).unwrap_err();
    assert_eq!(increment.state().reserve, 7);

    let mut square_root = SquareRoot::new(1.0, 5..=9).unwrap();
    let before = square_root.state();
    for bytes in [f64::NAN, f64::INFINITY, -1.0] {
        let rate = Rate {
            bytes,
            seconds: 1.0,
        };
        let state = SquareRootState {
            collection: rate,
            ..before
        };
        square_root.resume(state).unwrap_err();
        assert_eq!(square_root.state(), before);
    }

    let mut guard = ThrashGuard::new(FixedLimit::new(7).unwrap());
    let state = ThrashGuardState {
        inner: 50,
        limit: 50,
        level: 99,
    };
    guard.resume(state).unwrap_err();
    assert_eq!((guard.level(), guard.initial_limit()), (0, 7));
}

fn any_size() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(usize::MAX),
        0..100_usize,
        0..100 * MB,
        any::<usize>(),
    ]
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0..10_000_000_u64).prop_map(Duration::from_nanos),
        any::<u64>().prop_map(Duration::from_nanos),
    ]
}

fn any_cycle() -> impl Strategy<Value = Cycle> {
    (
        (any_size(), any_size(), any_size()),
        (prop_oneof![3 => Just(0), 1 => any_size()], any_size()),
        (any_time(), any_time()),
    )
        .prop_map(
            |((before, after, allocated), (request, limit), (pause, mutator))| {
                Cycle::new(before, after)
                    .with_allocated(allocated)
                    .with_request(request)
                    .with_limit(limit)
                    .with_pause(pause)
                    .with_mutator(mutator)
            },
        )
}

/// A policy made of any valid parameters, twice the same.
macro_rules! resumes {
    ($cycles:expr, $then:expr, $make:expr) => {{
        let (mut old, mut new) = ($make, $make);
        for cycle in &$cycles {
            old.next_limit(cycle);
        }
        new.resume(old.state()).unwrap();
        prop_assert_eq!(new.state(), old.state());
        prop_assert_eq!(new.initial_limit(), old.initial_limit());
        for cycle in &$then {
            prop_assert_eq!(new.next_limit(cycle), old.next_limit(cycle));
        }
    }};
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn every_limit_leaves_the_least_progress_whatever_the_cycles(
        cycles in prop::collection::vec(any_cycle(), 1..16)
    ) {
        for (name, mut policy) in every_policy() {
            for cycle in &cycles {
                let limit = policy.next_limit(cycle);
                // `Increment` within may leave as little as a byte, once.
                let least = if name == "increment" || name == "guarded" { 1 } else { cycle.least_progress() };
                prop_assert!(
                    limit >= cycle.live_after.saturating_add(least),
                    "{}: limit {} after {:?}", name, limit, cycle
                );
            }
        }
    }

    #[test]
    fn a_cycle_without_a_request_always_fits(cycle in any_cycle()) {
        let cycle = cycle.with_request(0);
        prop_assume!(cycle.live_after < usize::MAX);
        for (name, mut policy) in every_policy() {
            let limit = policy.next_limit(&cycle);
            prop_assert!(cycle.fits(limit), "{}: {} after {:?}", name, limit, cycle);
        }
    }

    #[test]
    fn an_increment_grows_by_whole_steps_and_never_shrinks(
        initial in 1..10 * MB, increment in 1..MB, cycles in prop::collection::vec(any_cycle(), 1..16)
    ) {
        let mut policy = Increment::new(initial, increment).unwrap();
        let (mut reserve, mut steps) = (initial, 0);
        for cycle in &cycles {
            let next = policy.next_limit(cycle);
            prop_assert!(next >= reserve, "{} after {}", next, reserve);
            prop_assert!(next == usize::MAX || (next - reserve).is_multiple_of(increment));
            prop_assert!(next == reserve || policy.growth_steps() == steps + 1);
            (reserve, steps) = (next, policy.growth_steps());
        }
    }

    #[test]
    fn two_strikes_leave_a_whole_step(
        initial in 1..10 * MB, increment in 1..MB, live in 0..100 * MB
    ) {
        let mut policy = Increment::new(initial, increment).unwrap();
        policy.next_limit(&Cycle::new(live, live));
        let limit = policy.next_limit(&Cycle::new(live, live));
        let third = policy.next_limit(&Cycle::new(live, live));
        prop_assert!(limit > live, "{} with {} live", limit, live);
        prop_assert!(third - live >= increment, "{} free of a step of {}", third - live, increment);
    }

    #[test]
    fn the_square_root_headroom_does_not_shrink_when_allocation_quickens(
        live in MB..100 * MB, slow in MB..100 * MB, more in 0..100 * MB, pause in 1..1_000_u64, mutator in 1..10_000_u64
    ) {
        let limit = |allocated| {
            let mut policy = SquareRoot::new(SquareRoot::DEFAULT_C, 1..=usize::MAX).unwrap();
            policy.next_limit(
                &Cycle::new(live, live)
                    .with_allocated(allocated)
                    .with_pause(ms(pause))
                    .with_mutator(ms(mutator)),
            )
        };
        prop_assert!(limit(slow) <= limit(slow + more));
    }

    #[test]
    fn a_ceiling_is_kept_wherever_what_is_live_fits(
        cycle in any_cycle(), max in MB..100 * MB
    ) {
        let mut policies: Vec<Box<dyn Policy>> = vec![
            Box::new(Proportional::new(1.0, MB..=max).unwrap()),
            Box::new(SquareRoot::new(SquareRoot::DEFAULT_C, MB..=max).unwrap()),
            Box::new(Clamped::new(EveryBytes::new(MB).unwrap(), MB..=max).unwrap()),
        ];
        for policy in &mut policies {
            let limit = policy.next_limit(&cycle);
            let lowest = cycle.live_after.saturating_add(cycle.least_progress());
            prop_assert!(limit >= MB.max(lowest), "{} after {:?}", limit, cycle);
            prop_assert!(limit <= max.max(lowest), "{} over {} after {:?}", limit, max, cycle);
        }
    }

    #[test]
    fn a_policy_resumed_from_a_state_goes_on_as_the_old_one(
        before in prop::collection::vec(any_cycle(), 0..20),
        after in prop::collection::vec(any_cycle(), 0..20),
        size in 1..100 * MB,
    ) {
        resumes!(before, after, FixedLimit::new(size).unwrap());
        resumes!(before, after, EveryBytes::new(size).unwrap());
        resumes!(before, after, Increment::new(size, 4 * MB).unwrap());
        resumes!(before, after, Proportional::new(0.5, size..=usize::MAX).unwrap());
        resumes!(before, after, SquareRoot::new(1e-9, size..=usize::MAX).unwrap());
        resumes!(before, after, Clamped::new(Increment::new(size, MB).unwrap(), 1..=usize::MAX).unwrap());
        // A guard's strikes are not carried over: three slow cycles more at the most.
        resumes!(before, [], ThrashGuard::new(Increment::new(size, MB).unwrap()));
    }
}
