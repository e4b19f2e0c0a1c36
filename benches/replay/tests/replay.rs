//! The replay in virtual time, as claims. Every figure is the same on every machine.

use tally_alloc_replay::outcome::Outcome;
use tally_alloc_replay::settings::SETTINGS;
use tally_alloc_replay::sizing::Flag;
use tally_alloc_replay::virtual_time::{self, Policies};
use tally_alloc_replay::worker::{self, Mode};
use tally_alloc_replay::workload::{self, Delivery};

fn deliveries() -> Vec<Delivery> {
    workload::deliveries(workload::SEED, workload::DELIVERIES)
}

fn setting(deliveries: &[Delivery], name: &str, flag: Flag, mode: Mode) -> Outcome {
    let setting = SETTINGS.iter().find(|setting| setting.name == name);
    virtual_time::setting(deliveries, setting.expect("a setting"), flag, mode)
}

#[test]
fn a_replay_is_the_same_every_time() {
    let runs = || -> Vec<Outcome> {
        virtual_time::everything(&deliveries())
            .into_iter()
            .map(|run| run.outcome)
            .collect()
    };
    assert_eq!(runs(), runs());
}

#[test]
fn the_default_setting_slows_to_half_speed_as_its_heap_grows() {
    let deliveries = deliveries();
    for flag in [Flag::Shared, Flag::Own] {
        for mode in [Mode::RunOn, Mode::Reloaded] {
            let outcome = setting(&deliveries, "default", flag, mode);
            let share = outcome.share();
            assert!(
                (0.45..0.60).contains(&share),
                "{flag} flag, {mode:?}: {share:.3}"
            );
            let (first, last) = (outcome.tenths[0], outcome.tenths[9]);
            assert!(
                last > 3.0 * first,
                "{flag} flag, {mode:?}: {first:.3} to {last:.3}"
            );
        }
    }
}

#[test]
fn the_tuned_settings_reside_where_people_said() {
    let deliveries = deliveries();
    // "about 700 MB"
    let peak = setting(&deliveries, "16x, 32x", Flag::Own, Mode::RunOn).peak_resident;
    assert!(
        (600_000_000..800_000_000).contains(&peak),
        "16x, 32x: {peak}"
    );
    // "400-500 MB over 12,000 deliveries"
    let peak = setting(&deliveries, "6x, 32x", Flag::Own, Mode::RunOn).peak_resident;
    assert!(
        (400_000_000..500_000_000).contains(&peak),
        "6x, 32x: {peak}"
    );
}

#[test]
fn proportional_holds_its_share_flat_while_the_live_heap_grows_manyfold() {
    let deliveries = deliveries();
    let outcome = worker::run(&deliveries, Mode::RunOn, &mut *Policies::proportional(1.0));
    let (low, high) = outcome.tenths[1..]
        .iter()
        .fold((1.0_f64, 0.0_f64), |(low, high), &share| {
            (low.min(share), high.max(share))
        });
    assert!(
        high < 1.6 * low,
        "from {low:.3} to {high:.3}: {:?}",
        outcome.tenths
    );
}

#[test]
fn square_root_lets_its_share_grow_as_the_root_and_no_faster() {
    let deliveries = deliveries();
    let outcome = worker::run(&deliveries, Mode::RunOn, &mut *Policies::square_root(1e9));
    // From the second tenth to the last the live heap grows from about 50 to 340 MB: its root 2.6
    // times. A collection more or less in a tenth moves the share by a third.
    let ratio = outcome.tenths[9] / outcome.tenths[1];
    assert!(
        (1.2..3.5).contains(&ratio),
        "{ratio:.2} times: {:?}",
        outcome.tenths
    );
}

#[test]
fn for_equal_mean_memory_square_root_collects_less_than_every_setting() {
    for row in virtual_time::for_equal_mean(&deliveries()) {
        for (column, name) in [(0, "per pool"), (2, "one account")] {
            let (_, outcome) = row.policies[column].as_ref().expect("as little memory");
            assert!(
                outcome.mean_resident <= row.memory,
                "{}: more memory",
                row.setting
            );
            assert!(
                outcome.share() < row.share,
                "{}, {name}: {:.4} against {:.4} at {:.0} MB",
                row.setting,
                outcome.share(),
                row.share,
                row.memory / 1e6
            );
            let (_, proportional) = row.policies[column + 1].as_ref().expect("as little memory");
            // Where a run has a dozen collections, one more or less is all there is to see.
            if proportional.collections > 40 {
                assert!(
                    outcome.share() < proportional.share(),
                    "{}, {name}: {:.4}, Proportional {:.4}",
                    row.setting,
                    outcome.share(),
                    proportional.share()
                );
            }
        }
    }
}

#[test]
fn for_equal_peak_memory_a_ceiling_collects_less_than_every_setting() {
    for row in virtual_time::for_equal_peak(&deliveries()) {
        let (_, outcome) = row.policies[1].as_ref().expect("as little memory");
        assert!(
            outcome.peak_resident as f64 <= row.memory,
            "{}: more memory",
            row.setting
        );
        assert!(
            outcome.share() < row.share,
            "{}: {:.4} against {:.4} at {:.0} MB",
            row.setting,
            outcome.share(),
            row.share,
            row.memory / 1e6
        );
    }
}

#[test]
fn a_reloaded_worker_goes_on_with_the_reserve_it_had() {
    let deliveries = deliveries();
    for one in &SETTINGS {
        let [on, reloaded] = [Mode::RunOn, Mode::Reloaded]
            .map(|mode| virtual_time::setting(&deliveries, one, Flag::Own, mode));
        assert_eq!(
            (on.reserved, on.growth_steps),
            (reloaded.reserved, reloaded.growth_steps),
            "{}: the snapshot's collection is one of hundreds",
            one.name
        );
    }
}
