//! The runs in virtual time that the tables and plots are made of.

use tally_alloc::policy::{FixedLimit, Proportional, SquareRoot};

use crate::cost::SLOT_BYTES;
use crate::matching;
use crate::outcome::Outcome;
use crate::plot::{Series, Style};
use crate::settings::{SETTINGS, Setting};
use crate::sizing::{Flag, OneAccount, PerPool, Sizing};
use crate::worker::{self, Mode};
use crate::workload::Delivery;

/// The lower bound of every policy: the sizes of the default setting, since a heap smaller than that
/// is not what anybody wanted to save.
const MIN_SLOTS: usize = 8 << 20;
const MIN_CHUNKS: usize = 32 << 20;

/// The share of time that a byte must save, and the growth, of the policies as they are shown without
/// a search.
const C: f64 = SquareRoot::DEFAULT_C;
const GROWTH: f64 = 1.0;

/// A policy's way from its one free parameter to a sizing.
pub struct Policies;

impl Policies {
    /// [`SquareRoot`] for each pool. The parameter is `1 / c` in bytes, so that memory rises with it.
    #[must_use]
    pub fn square_root(bytes: f64) -> Box<dyn Sizing> {
        let slot = SLOT_BYTES as f64;
        Box::new(PerPool::new(
            SquareRoot::new(slot / bytes, MIN_SLOTS / SLOT_BYTES..=usize::MAX).expect("a price"),
            SquareRoot::new(1.0 / bytes, MIN_CHUNKS..=usize::MAX).expect("a price"),
        ))
    }

    /// [`SquareRoot`] for both pools together; the parameter is `1 / c` in bytes.
    #[must_use]
    pub fn square_root_together(bytes: f64) -> Box<dyn Sizing> {
        Box::new(OneAccount::new(
            SquareRoot::new(1.0 / bytes, MIN_SLOTS + MIN_CHUNKS..=usize::MAX).expect("a price"),
        ))
    }

    /// [`Proportional`] for each pool; the parameter is the growth.
    #[must_use]
    pub fn proportional(growth: f64) -> Box<dyn Sizing> {
        Box::new(PerPool::new(
            Proportional::new(growth, MIN_SLOTS / SLOT_BYTES..=usize::MAX).expect("a growth"),
            Proportional::new(growth, MIN_CHUNKS..=usize::MAX).expect("a growth"),
        ))
    }

    /// [`Proportional`] for both pools together; the parameter is the growth.
    #[must_use]
    pub fn proportional_together(growth: f64) -> Box<dyn Sizing> {
        Box::new(OneAccount::new(
            Proportional::new(growth, MIN_SLOTS + MIN_CHUNKS..=usize::MAX).expect("a growth"),
        ))
    }

    /// [`FixedLimit`] for both pools together, all that is under a ceiling; the parameter is the
    /// ceiling in bytes.
    #[must_use]
    pub fn ceiling(bytes: f64) -> Box<dyn Sizing> {
        Box::new(OneAccount::new(
            FixedLimit::new(bytes as usize).expect("a ceiling"),
        ))
    }

    /// [`FixedLimit`] for each pool, the ceiling shared out so that `slots` of it are theirs.
    #[must_use]
    pub fn ceiling_per_pool(bytes: f64, slots: f64) -> Box<dyn Sizing> {
        Box::new(PerPool::new(
            FixedLimit::new((bytes * slots) as usize / SLOT_BYTES).expect("a ceiling"),
            FixedLimit::new((bytes * (1.0 - slots)) as usize).expect("a ceiling"),
        ))
    }

    /// The policies whose mean memory is that of `outcome`, by name.
    #[must_use]
    pub fn at_mean_of(deliveries: &[Delivery], outcome: &Outcome) -> Vec<(String, Outcome)> {
        equal_mean(deliveries, outcome.mean_resident)
            .into_iter()
            .zip(["SquareRoot", "Proportional"])
            .filter_map(|(found, name)| Some((name.to_owned(), found?.1)))
            .collect()
    }
}

/// Runs a setting.
#[must_use]
pub fn setting(deliveries: &[Delivery], setting: &Setting, flag: Flag, mode: Mode) -> Outcome {
    worker::run(deliveries, mode, &mut setting.xs(flag))
}

/// A run and what it was.
#[derive(Clone, Debug)]
pub struct Run {
    /// The setting or policy.
    pub name: String,
    /// XS's flag rule; a dash for ours.
    pub flag: String,
    /// Run on or reloaded.
    pub mode: String,
    /// What it came to.
    pub outcome: Outcome,
}

/// Every setting under both flag rules and every policy, run on and reloaded.
#[must_use]
pub fn everything(deliveries: &[Delivery]) -> Vec<Run> {
    let modes = [(Mode::RunOn, "run on"), (Mode::Reloaded, "reloaded")];
    let mut runs = Vec::new();
    for one in &SETTINGS {
        for flag in [Flag::Shared, Flag::Own] {
            for (mode, mode_name) in modes {
                runs.push(Run {
                    name: one.name.to_owned(),
                    flag: flag.to_string(),
                    mode: mode_name.to_owned(),
                    outcome: setting(deliveries, one, flag, mode),
                });
            }
        }
    }
    let policies: [(&str, Plain<'_>); 5] = [
        ("SquareRoot, per pool", &|| Policies::square_root(1.0 / C)),
        ("SquareRoot, one account", &|| {
            Policies::square_root_together(1.0 / C)
        }),
        ("Proportional, per pool", &|| Policies::proportional(GROWTH)),
        ("Proportional, one account", &|| {
            Policies::proportional_together(GROWTH)
        }),
        ("FixedLimit 500 MB, one account", &|| {
            Policies::ceiling(500e6)
        }),
    ];
    for (name, make) in policies {
        for (mode, mode_name) in modes {
            runs.push(Run {
                name: name.to_owned(),
                flag: "-".to_owned(),
                mode: mode_name.to_owned(),
                outcome: worker::run(deliveries, mode, &mut *make()),
            });
        }
    }
    runs
}

/// A setting, and what policies make of the same memory.
#[derive(Clone, Debug)]
pub struct Match {
    /// The setting.
    pub setting: &'static str,
    /// The memory, in bytes.
    pub memory: f64,
    /// Its share of time collecting.
    pub share: f64,
    /// For each policy, the parameter and the run that comes closest from below; `None` where even its
    /// least memory is more.
    pub policies: Vec<Option<(f64, Outcome)>>,
}

/// The policies of [`for_equal_mean`].
pub const MEAN_COLUMNS: [&str; 5] = [
    "SquareRoot per pool",
    "Proportional per pool",
    "SquareRoot, one account",
    "Proportional, one account",
    "FixedLimit, one account",
];

/// The policies of [`for_equal_peak`].
pub const PEAK_COLUMNS: [&str; 5] = [
    "FixedLimit per pool",
    "FixedLimit, one account",
    "SquareRoot per pool",
    "SquareRoot, one account",
    "Proportional, one account",
];

/// From 1 MB of headroom to more than there is: `1 / c`, growth, and bytes.
const PRICES: (f64, f64) = (1e5, 1e14);
const GROWTHS: (f64, f64) = (0.001, 1_000.0);
const CEILINGS: (f64, f64) = (1e7, 1e10);

type Make<'a> = &'a dyn Fn(f64) -> Box<dyn Sizing>;
type Plain<'a> = &'a dyn Fn() -> Box<dyn Sizing>;

fn search(
    deliveries: &[Delivery],
    range: (f64, f64),
    target: f64,
    make: Make<'_>,
    memory: impl Fn(&Outcome) -> f64,
) -> Option<(f64, Outcome)> {
    let run = |x| worker::run(deliveries, Mode::RunOn, &mut *make(x));
    matching::at_most(range, target, run, memory)
}

fn equal_mean(deliveries: &[Delivery], mean: f64) -> Vec<Option<(f64, Outcome)>> {
    let policies: [((f64, f64), Make<'_>); 5] = [
        (PRICES, &Policies::square_root),
        (GROWTHS, &Policies::proportional),
        (PRICES, &Policies::square_root_together),
        (GROWTHS, &Policies::proportional_together),
        (CEILINGS, &Policies::ceiling),
    ];
    policies
        .into_iter()
        .map(|(range, make)| search(deliveries, range, mean, make, |o| o.mean_resident))
        .collect()
}

/// For each setting, policies whose mean resident memory is the same or less.
#[must_use]
pub fn for_equal_mean(deliveries: &[Delivery]) -> Vec<Match> {
    SETTINGS
        .iter()
        .map(|one| {
            let outcome = setting(deliveries, one, Flag::Own, Mode::RunOn);
            Match {
                setting: one.name,
                memory: outcome.mean_resident,
                share: outcome.share(),
                policies: equal_mean(deliveries, outcome.mean_resident),
            }
        })
        .collect()
}

/// For each setting, policies whose peak resident memory is the same or less.
#[must_use]
pub fn for_equal_peak(deliveries: &[Delivery]) -> Vec<Match> {
    let kept_slots: usize = deliveries.iter().map(|d| d.kept.slots * SLOT_BYTES).sum();
    let kept_chunks: usize = deliveries.iter().map(|d| d.kept.chunk_bytes).sum();
    let slots = kept_slots as f64 / (kept_slots + kept_chunks).max(1) as f64;
    let ceiling_per_pool = |bytes| Policies::ceiling_per_pool(bytes, slots);
    SETTINGS
        .iter()
        .map(|one| {
            let outcome = setting(deliveries, one, Flag::Own, Mode::RunOn);
            let peak = outcome.peak_resident as f64;
            let policies: [((f64, f64), Make<'_>); 5] = [
                (CEILINGS, &ceiling_per_pool),
                (CEILINGS, &Policies::ceiling),
                (PRICES, &Policies::square_root),
                (PRICES, &Policies::square_root_together),
                (GROWTHS, &Policies::proportional_together),
            ];
            Match {
                setting: one.name,
                memory: peak,
                share: outcome.share(),
                policies: policies
                    .into_iter()
                    .map(|(range, make)| {
                        search(deliveries, range, peak, make, |o| o.peak_resident as f64)
                    })
                    .collect(),
            }
        })
        .collect()
}

/// What memory buys: each policy over the range of its parameter.
#[must_use]
pub fn curves(deliveries: &[Delivery]) -> Vec<Series> {
    let policies: [(&str, (f64, f64), Make<'_>); 3] = [
        ("SquareRoot per pool", (1e6, 1e12), &Policies::square_root),
        (
            "Proportional per pool",
            (0.02, 8.0),
            &Policies::proportional,
        ),
        ("FixedLimit, one account", (3.2e8, 1e9), &Policies::ceiling),
    ];
    policies
        .into_iter()
        .map(|(name, (low, high), make)| {
            const STEPS: i32 = 60;
            let points = (0..=STEPS).map(|step| {
                let x = low * (high / low).powf(f64::from(step) / f64::from(STEPS));
                let outcome = worker::run(deliveries, Mode::RunOn, &mut *make(x));
                (
                    outcome.mean_resident / 1e6,
                    outcome.share() * 100.0,
                    String::new(),
                )
            });
            Series {
                name: name.to_owned(),
                style: Style::Line,
                points: points.collect(),
            }
        })
        .collect()
}
