//! The growing heap on a real engine: QuickJS, counted by `TallyAlloc`, collected by a trigger. Five
//! settings tuned by hand, and policies with the same mean or the same peak memory, in interleaved
//! rounds.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tally_alloc::TallyAlloc;
use tally_alloc::policy::{FixedLimit, Increment, Policy, Proportional, SquareRoot};
use tally_alloc_replay::engine::{self, SCALE, Work};
use tally_alloc_replay::outcome::Outcome;
use tally_alloc_replay::plot::{self, Frame, Series, Style};
use tally_alloc_replay::settings::{SETTINGS, Setting};
use tally_alloc_replay::table;

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

/// Grows the heap of a JavaScript engine under hand-tuned settings and under policies.
#[derive(Parser)]
struct Arguments {
    /// Interleaved rounds; figures are medians over them.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Deliveries per run.
    #[arg(long, default_value_t = Work::FULL.deliveries)]
    deliveries: usize,
    /// Folder for the plots.
    #[arg(long, default_value = "target/policies")]
    out: PathBuf,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A policy and its one parameter.
#[derive(Clone, Copy, Debug)]
enum Candidate {
    Setting(Setting),
    /// `1 / c`, in bytes.
    SquareRoot(f64),
    Growth(f64),
    Ceiling(usize),
}

impl Candidate {
    fn run(self, work: Work) -> Result<Outcome> {
        let (min, _) = SETTINGS[0].together();
        let range = min / SCALE..=usize::MAX;
        let policy: Box<dyn Policy> = match self {
            Self::Setting(setting) => {
                let (initial, increment) = setting.together();
                Box::new(Increment::new(initial / SCALE, increment / SCALE)?)
            }
            Self::SquareRoot(bytes) => Box::new(SquareRoot::new(1.0 / bytes, range)?),
            Self::Growth(growth) => Box::new(Proportional::new(growth, range)?),
            Self::Ceiling(bytes) => Box::new(FixedLimit::new(bytes)?),
        };
        engine::run(policy, work)
    }
}

/// The runs of one candidate, a round each.
struct Rounds {
    candidate: Candidate,
    outcomes: Vec<Outcome>,
}

impl Rounds {
    const fn of(candidate: Candidate) -> Self {
        Self {
            candidate,
            outcomes: Vec::new(),
        }
    }

    fn median(&self, figure: impl Fn(&Outcome) -> f64) -> f64 {
        median(self.outcomes.iter().map(figure).collect())
    }

    fn share(&self) -> f64 {
        self.median(Outcome::share)
    }

    fn mean(&self) -> f64 {
        self.median(|outcome| outcome.mean_resident)
    }

    fn peak(&self) -> f64 {
        self.median(|outcome| outcome.peak_resident as f64)
    }

    /// A figure as a part of `other`'s, round by round.
    fn against(&self, other: &Self, figure: impl Fn(&Outcome) -> f64) -> String {
        let rounds = self.outcomes.iter().zip(&other.outcomes);
        let ratios = rounds.map(|(a, b)| figure(a) / figure(b).max(f64::MIN_POSITIVE));
        format!("{:.2}", median(ratios.collect()))
    }

    /// The cells of a policy beside a setting.
    fn cells_beside(&self, setting: &Self, memory: f64) -> Vec<String> {
        vec![
            table::megabytes(memory),
            table::percent(self.share()),
            self.against(setting, |outcome| outcome.collecting.as_secs_f64()),
            self.against(setting, |outcome| outcome.marked as f64),
        ]
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => 0.0,
        n if n % 2 == 1 => figures[n / 2],
        n => f64::midpoint(figures[n / 2 - 1], figures[n / 2]),
    }
}

/// The most tries in a search for equal memory.
const TRIES: usize = 5;

/// Finds the parameter at which the mean memory is `target`, or as little below it as a few tries
/// find. `make` turns a parameter into a candidate whose headroom grows as its `root`-th root: a try
/// is corrected by what its headroom was off, and once there is one on either side the next is between
/// them. `live` is the mean of what is live.
fn equal_mean(
    work: Work,
    (target, live): (f64, f64),
    (first, root): (f64, i32),
    make: impl Fn(f64) -> Candidate,
    bar: &ProgressBar,
) -> Result<Candidate> {
    let (mut parameter, mut below, mut above) = (first, None, None);
    for _ in 0..TRIES {
        let mean = make(parameter).run(work)?.mean_resident;
        bar.inc(1);
        if mean <= 1.005 * target {
            if below.is_none_or(|(_, most)| mean > most) {
                below = Some((parameter, mean));
            }
            if mean > 0.98 * target {
                break;
            }
        } else if above.is_none_or(|(_, least)| mean < least) {
            above = Some((parameter, mean));
        }
        parameter = if let (Some((low, _)), Some((high, _))) = (below, above) {
            f64::sqrt(low * high)
        } else {
            let headroom = |mean: f64| (mean - live).max(0.02 * live);
            parameter * (headroom(target) / headroom(mean)).powi(root)
        };
    }
    Ok(make(
        below.or(above).map_or(first, |(parameter, _)| parameter),
    ))
}

/// A setting and what stands beside it.
struct Match {
    setting: Rounds,
    square_root: Rounds,
    proportional: Rounds,
    ceiling: Rounds,
}

impl Match {
    fn all(&mut self) -> [&mut Rounds; 4] {
        [
            &mut self.setting,
            &mut self.square_root,
            &mut self.proportional,
            &mut self.ceiling,
        ]
    }
}

fn matches(work: Work, rounds: usize, bar: &ProgressBar) -> Result<Vec<Match>> {
    // What is live in the mean: half of what it ends with, nearly, by a run that collects often.
    let often = Candidate::Growth(0.05).run(work)?;
    let live = often.mean_resident / 1.06;
    let mut matches = Vec::new();
    for setting in SETTINGS {
        let outcome = Candidate::Setting(setting).run(work)?;
        bar.inc(1);
        let target = (outcome.mean_resident, live);
        let spare = (outcome.mean_resident - live).max(0.02 * live);
        matches.push(Match {
            setting: Rounds::of(Candidate::Setting(setting)),
            square_root: Rounds::of(equal_mean(
                work,
                target,
                // The formula turned round, for an engine that allocates 300 MB/s and pauses for 3 ms.
                (spare * spare / 1e6, 2),
                Candidate::SquareRoot,
                bar,
            )?),
            proportional: Rounds::of(equal_mean(
                work,
                target,
                (spare / live, 1),
                Candidate::Growth,
                bar,
            )?),
            // What a delivery allocates can come on top before the worker polls.
            ceiling: Rounds::of(Candidate::Ceiling(
                (outcome.peak_resident as f64 * 0.99) as usize,
            )),
        });
    }
    for _ in 0..rounds {
        for row in &mut matches {
            for candidate in row.all() {
                candidate.outcomes.push(candidate.candidate.run(work)?);
                bar.inc(1);
            }
        }
    }
    Ok(matches)
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let work = Work {
        deliveries: arguments.deliveries,
        ..Work::FULL
    };
    let runs = SETTINGS.len() * (1 + 2 * TRIES + 4 * arguments.rounds);
    let bar = ProgressBar::new(runs as u64).with_style(ProgressStyle::with_template(
        "{bar:30} {pos}/{len} runs, {elapsed} elapsed, {eta} left",
    )?);
    let matches = matches(work, arguments.rounds, &bar)?;
    bar.finish_and_clear();

    println!(
        "QuickJS, {} deliveries, settings divided by {SCALE}, medians of {} interleaved rounds, \
         processor time.\n",
        work.deliveries, arguments.rounds
    );
    let mut rows = Vec::new();
    for row in &matches {
        let Candidate::Setting(setting) = row.setting.candidate else {
            continue;
        };
        rows.push(overview(setting.name, &row.setting));
    }
    for (name, rounds) in [
        ("SquareRoot, mean of the default", &matches[0].square_root),
        (
            "Proportional, mean of the default",
            &matches[0].proportional,
        ),
        ("FixedLimit, peak of the default", &matches[0].ceiling),
        ("SquareRoot, mean of 2x/16x", &matches[1].square_root),
        ("Proportional, mean of 2x/16x", &matches[1].proportional),
    ] {
        rows.push(overview(name, rounds));
    }
    let header = [
        "setting or policy",
        "collections",
        "time collecting",
        "first 3 tenths",
        "last 3 tenths",
        "marked MB, first 3",
        "last 3",
        "growth steps",
        "reserved MB",
        "mean resident MB",
        "peak resident MB",
    ];
    println!("{}\n", table::of(&header, rows));

    println!(
        "Ratios are to the setting, round by round: of the time collecting, and of the bytes that"
    );
    println!("all collections together found live, which no noise touches.\n");
    println!("## For equal mean resident memory\n");
    let rows = matches.iter().map(|row| {
        let mut cells = vec![name(&row.setting)];
        cells.push(table::megabytes(row.setting.mean()));
        cells.push(table::percent(row.setting.share()));
        for policy in [&row.square_root, &row.proportional] {
            cells.extend(policy.cells_beside(&row.setting, policy.mean()));
        }
        cells
    });
    let header = [
        "setting",
        "MB",
        "time collecting",
        "SquareRoot: MB",
        "time collecting",
        "ratio",
        "marked, ratio",
        "Proportional: MB",
        "time collecting",
        "ratio",
        "marked, ratio",
    ];
    println!("{}\n", table::of(&header, rows.collect()));

    println!("## For equal peak resident memory\n");
    let rows = matches.iter().map(|row| {
        let mut cells = vec![
            name(&row.setting),
            table::megabytes(row.setting.peak()),
            table::percent(row.setting.share()),
        ];
        cells.extend(row.ceiling.cells_beside(&row.setting, row.ceiling.peak()));
        cells
    });
    let header = [
        "setting",
        "MB",
        "time collecting",
        "FixedLimit: MB",
        "time collecting",
        "ratio",
        "marked, ratio",
    ];
    println!("{}\n", table::of(&header, rows.collect()));

    std::fs::create_dir_all(&arguments.out)?;
    plots(&arguments.out, &matches)
}

fn name(rounds: &Rounds) -> String {
    match rounds.candidate {
        Candidate::Setting(setting) => setting.name.to_owned(),
        other => format!("{other:?}"),
    }
}

fn overview(name: &str, rounds: &Rounds) -> Vec<String> {
    let marked = |tenths: std::ops::Range<usize>| {
        let sum = |o: &Outcome| o.marked_in_tenths[tenths.clone()].iter().sum::<u64>() as f64;
        table::megabytes(rounds.median(sum))
    };
    vec![
        name.to_owned(),
        format!("{:.0}", rounds.median(|o| o.collections as f64)),
        table::percent(rounds.share()),
        table::percent(rounds.median(|o| o.mean_of_tenths(0..3))),
        table::percent(rounds.median(|o| o.mean_of_tenths(7..10))),
        marked(0..3),
        marked(7..10),
        format!("{:.0}", rounds.median(|o| o.growth_steps as f64)),
        table::megabytes(rounds.median(|o| o.reserved as f64)),
        table::megabytes(rounds.mean()),
        table::megabytes(rounds.peak()),
    ]
}

fn plots(out: &std::path::Path, matches: &[Match]) -> Result<()> {
    let against_memory = |label: &str, style, pick: &dyn Fn(&Match) -> &Rounds| {
        let mut points: Vec<_> = matches
            .iter()
            .map(pick)
            .map(|rounds| (rounds.mean() / 1e6, rounds.share() * 100.0, name(rounds)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series {
            name: label.to_owned(),
            style,
            points,
        }
    };
    let series = [
        against_memory("SquareRoot", Style::Line, &|row| &row.square_root),
        against_memory("Proportional", Style::Line, &|row| &row.proportional),
        against_memory("FixedLimit", Style::Line, &|row| &row.ceiling),
        against_memory("tuned by hand", Style::Points, &|row| &row.setting),
    ];
    let most = |pick: &dyn Fn(&(f64, f64, String)) -> f64| {
        let all = series.iter().flat_map(|one| &one.points).map(pick);
        all.fold(0.0, f64::max) * 1.1
    };
    let frame = Frame {
        title: "What memory buys: QuickJS under a trigger",
        x: "mean resident memory (MB)",
        y: "share of processor time collecting (%)",
        x_max: most(&|point| point.0),
        y_max: most(&|point| point.1),
    };
    let path = out.join("policies-quickjs.svg");
    plot::draw(&path, &frame, &series)?;
    println!("wrote {}", path.display());

    let over_time = |label: &str, rounds: &Rounds| Series {
        name: label.to_owned(),
        style: Style::Line,
        points: (0..10)
            .map(|tenth| {
                let share = rounds.median(|outcome| outcome.tenths[tenth]);
                (
                    f64::from(tenth as u8) * 10.0 + 5.0,
                    share * 100.0,
                    String::new(),
                )
            })
            .collect(),
    };
    let series = [
        over_time("SquareRoot", &matches[0].square_root),
        over_time("Proportional", &matches[0].proportional),
        over_time("Increment, the default", &matches[0].setting),
    ];
    let frame = Frame {
        title: "Time collecting as the live heap of QuickJS grows, for equal mean memory",
        x: "part of the run (%)",
        y: "share of processor time collecting (%)",
        x_max: 100.0,
        y_max: 100.0,
    };
    let path = out.join("policies-quickjs-over-time.svg");
    plot::draw(&path, &frame, &series)?;
    println!("wrote {}", path.display());
    Ok(())
}
