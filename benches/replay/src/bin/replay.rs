//! The replay in virtual time: tables on standard output, plots beside them. The same on every
//! machine.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use tally_alloc_replay::plot::{self, Frame, Series, Style};
use tally_alloc_replay::virtual_time::{self, Policies};
use tally_alloc_replay::{settings::SETTINGS, sizing::Flag, table, worker::Mode, workload};

/// Replays a growing heap under five hand-tuned settings and under the policies.
#[derive(Parser)]
struct Arguments {
    /// Seed of the deliveries.
    #[arg(long, default_value_t = workload::SEED)]
    seed: u64,
    /// Number of deliveries.
    #[arg(long, default_value_t = workload::DELIVERIES)]
    deliveries: usize,
    /// Folder for the plots.
    #[arg(long, default_value = "target/policies")]
    out: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let deliveries = workload::deliveries(arguments.seed, arguments.deliveries);
    println!(
        "{} deliveries, seed {}; times from a cost model.\n",
        arguments.deliveries, arguments.seed
    );

    println!("## Every setting and policy\n");
    let rows = virtual_time::everything(&deliveries)
        .into_iter()
        .map(|run| {
            let mut row = vec![run.name, run.flag, run.mode];
            row.extend(table::cells(&run.outcome));
            row
        })
        .collect();
    let mut header = vec!["setting or policy", "flag", "mode"];
    header.extend(table::COLUMNS);
    println!("{}\n", table::of(&header, rows));

    for (title, rows) in [
        (
            "For equal mean resident memory",
            virtual_time::for_equal_mean(&deliveries),
        ),
        (
            "For equal peak resident memory",
            virtual_time::for_equal_peak(&deliveries),
        ),
    ] {
        println!("## {title}\n");
        let rows = rows
            .into_iter()
            .map(|row| {
                let mut cells = vec![
                    row.setting.to_owned(),
                    table::megabytes(row.memory),
                    table::percent(row.share),
                ];
                cells.extend(row.policies.into_iter().map(|found| {
                    found.map_or_else(
                        || "cannot".to_owned(),
                        |(_, outcome)| table::percent(outcome.share()),
                    )
                }));
                cells
            })
            .collect();
        let mut header = vec!["setting (own flags, run on)", "MB", "time collecting"];
        header.extend(if title.contains("mean") {
            virtual_time::MEAN_COLUMNS
        } else {
            virtual_time::PEAK_COLUMNS
        });
        println!("{}\n", table::of(&header, rows));
    }

    std::fs::create_dir_all(&arguments.out)?;
    let mut series: Vec<Series> = virtual_time::curves(&deliveries);
    series.push(Series {
        name: "tuned by hand".to_owned(),
        style: Style::Points,
        points: SETTINGS
            .iter()
            .map(|setting| {
                let outcome = virtual_time::setting(&deliveries, setting, Flag::Own, Mode::RunOn);
                (
                    outcome.mean_resident / 1e6,
                    outcome.share() * 100.0,
                    setting.name.to_owned(),
                )
            })
            .collect(),
    });
    let path = arguments.out.join("policies-replay.svg");
    let frame = Frame {
        title: "What memory buys: replay of 12,000 deliveries in virtual time",
        x: "mean resident memory (MB)",
        y: "share of time collecting (%)",
        x_max: 800.0,
        y_max: 60.0,
    };
    plot::draw(&path, &frame, &series)?;
    println!("wrote {}", path.display());

    let default = virtual_time::setting(&deliveries, &SETTINGS[0], Flag::Own, Mode::RunOn);
    let lines = Policies::at_mean_of(&deliveries, &default)
        .into_iter()
        .chain([("Increment, the default".to_owned(), default)])
        .map(|(name, outcome)| Series {
            name,
            style: Style::Line,
            points: outcome
                .tenths
                .iter()
                .enumerate()
                .map(|(tenth, share)| (tenth as f64 * 10.0 + 5.0, share * 100.0, String::new()))
                .collect(),
        })
        .collect::<Vec<_>>();
    let path = arguments.out.join("policies-over-time.svg");
    let frame = Frame {
        title: "Time collecting as the live heap grows, for equal mean memory",
        x: "part of the run (%)",
        y: "share of time collecting (%)",
        x_max: 100.0,
        y_max: 80.0,
    };
    plot::draw(&path, &frame, &lines)?;
    println!("wrote {}", path.display());
    Ok(())
}
