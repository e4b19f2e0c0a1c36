//! What publishing costs on machines larger than this one: the model of [`scaling`](tally_alloc_bench::scaling),
//! with its figures measured here, and checked against what can be measured here.
//!
//! `cargo bench -p tally-alloc-bench --bench scaling`
//!
//! The workload is the model's worst case: each thread fills 1 MiB with blocks of 64 bytes, then frees them all.
//! The base is batched counting with a threshold that is never reached, so that the ratios are those of publishing
//! alone. A threshold of one block, at 1 and 2 threads, gives the two costs; all other rows are predictions.

#![allow(clippy::print_stdout, reason = "a command that prints tables")]

use std::alloc::System;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use tally_alloc::MAX_THRESHOLD;
use tally_alloc_bench::interval::Interval;
use tally_alloc_bench::plots::{self, Frame, Scale, Series};
use tally_alloc_bench::rounds::{self, Comparison, Enough, Run};
use tally_alloc_bench::scaling::{Machine, Program};
use tally_alloc_bench::switch::{Switch, Switching as _, Way};
use tally_alloc_bench::{lanes, report};

#[global_allocator]
static GLOBAL: Switch<System> = Switch::new();

/// Measures an uncontended and a contended publish, says what a model makes of them for 1 to 512 threads, and how
/// well the model does on this machine.
#[derive(Debug, Parser)]
#[command(name = "scaling")]
struct Arguments {
    /// Three short rounds: shows that everything runs, measures nothing.
    #[arg(long)]
    smoke: bool,

    /// Seconds for each of four numbers of threads.
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    seconds: f64,

    /// Puts the tables into this file, between its lines `<!-- scaling:begin -->` and `<!-- scaling:end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Draws `scaling.svg` into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

const BLOCK: usize = 64;
const BLOCKS: usize = (1 << 20) / BLOCK;
/// Operations of one thread in one filling and emptying.
const OPERATIONS: usize = 2 * BLOCKS;

const THREADS: [usize; 4] = [1, 2, 4, 8];
/// The first is one block: every operation publishes.
const MEASURED: [usize; 5] = [BLOCK, 256, 1024, 4 * 1024, 16 * 1024];

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (machine, check) = measure(&arguments)?;
    let page = format!(
        "An uncontended publish takes {:.1} ns, a contended one {:.1} ns; {}.\n\n{check}\n\n{}\n\n{}",
        machine.uncontended,
        machine.contended,
        report::circumstances(),
        lost(machine),
        advice(machine),
    );
    println!("{page}");
    if let Some(path) = &arguments.markdown {
        report::write_markdown(path, "scaling", &page)?;
    }
    if let Some(directory) = &arguments.plots {
        plot(&directory.join("scaling.svg"), machine)?;
    }
    Ok(())
}

/// Fills and empties on each of `threads` threads.
fn fill_and_empty(threads: usize, times: usize) -> Duration {
    let (elapsed, freed) = lanes::run(threads, |_| {
        let mut blocks: Vec<Box<[u8; BLOCK]>> = Vec::with_capacity(BLOCKS);
        let mut freed = 0;
        for _ in 0..times {
            blocks.extend((0..BLOCKS).map(|_| black_box(Box::new([1; BLOCK]))));
            freed += blocks.len();
            blocks.clear();
        }
        freed
    });
    assert_eq!(freed, vec![BLOCKS * times; threads], "blocks freed");
    elapsed
}

/// Returns what this machine's publishes cost, and a table of predictions beside measurements.
fn measure(arguments: &Arguments) -> anyhow::Result<(Machine, Table)> {
    let (times, enough) = if arguments.smoke {
        let enough = Enough {
            rounds: 3,
            time: Duration::ZERO,
        };
        (2, enough)
    } else {
        let enough = Enough {
            rounds: 5,
            time: Duration::from_secs_f64(arguments.seconds),
        };
        (20, enough)
    };
    let mut ways = vec![Way::Batched(MAX_THRESHOLD)];
    ways.extend(MEASURED.map(Way::Batched));
    let names: Vec<String> = ways.iter().map(Way::to_string).collect();
    let bar = ProgressBar::new(THREADS.len() as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len}  {msg}").expect("a valid template"),
    );
    let mut rows = Vec::new();
    for threads in THREADS {
        bar.set_message(format!("{threads} threads"));
        let run = |way: usize| {
            GLOBAL.count(ways[way]);
            Ok(Run {
                elapsed: fill_and_empty(threads, times),
                ..Run::default()
            })
        };
        let name = threads.to_string();
        rows.push(rounds::compare(&name, &names, enough, run, |_| bar.tick())?);
        bar.inc(1);
    }
    GLOBAL.count(Way::Uncounted);
    bar.finish_and_clear();

    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    ensure!(processors > 1, "one processor has nobody to contend with");
    let program = |row: &Comparison, threads: usize| {
        // Threads beyond the processors take turns.
        let running = threads.min(processors) as f64 / threads as f64;
        let operation = row.base_nanoseconds * running / (OPERATIONS * times) as f64;
        Program {
            rate: 1e9 / (2.0 * operation),
            mean: BLOCK as f64,
        }
    };
    let lost = |row: &Comparison, way: usize| 1.0 - 1.0 / row.ways[way].ratio.median.max(1.0);
    let [alone, together, ..] = &rows[..] else {
        unreachable!("a row for each number of threads")
    };
    let found = |row: &Comparison, threads: usize| (program(row, threads), lost(row, 0));
    let machine = Machine::that_loses(BLOCK, found(alone, 1), found(together, 2));

    let mut table = table(["threads", "threshold", "ratio, model", "ratio, measured"]);
    for (row, threads) in rows.iter().zip(THREADS) {
        for (way, threshold) in MEASURED.into_iter().enumerate() {
            let running = threads.min(processors);
            let share = machine.share_lost(program(row, threads), running, threshold);
            let fitted = threshold == BLOCK && threads <= 2;
            table.add_row([
                threads.to_string(),
                bytes(threshold),
                format!(
                    "{:.3}{}",
                    1.0 / (1.0 - share),
                    if fitted { " (fitted)" } else { "" }
                ),
                report::ratio(row.ways[way].ratio),
            ]);
        }
    }
    Ok((machine, table))
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn bytes(count: usize) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..0x10_0000 => format!("{} KiB", count >> 10),
        _ => format!("{} MiB", count >> 20),
    }
}

/// A line between sockets takes about this much longer.
const ACROSS: f64 = 4.0;

fn across_sockets(machine: Machine) -> Machine {
    Machine {
        contended: machine.contended * ACROSS,
        ..machine
    }
}

/// Programs from those that do nothing but allocate to those that rarely do.
const PROGRAMS: [(&str, Program); 3] = [
    (
        "10 M/s of 64 B",
        Program {
            rate: 10e6,
            mean: 64.0,
        },
    ),
    (
        "1 M/s of 128 B",
        Program {
            rate: 1e6,
            mean: 128.0,
        },
    ),
    (
        "10 k/s of 32 KiB",
        Program {
            rate: 1e4,
            mean: 32_768.0,
        },
    ),
];

const THRESHOLDS: [usize; 5] = [1, 1 << 10, 4 << 10, 16 << 10, 64 << 10];

fn threads() -> impl Iterator<Item = usize> {
    (0..10).map(|power| 1 << power)
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let places = if percent >= 10.0 {
        0
    } else if percent >= 0.1 {
        1
    } else {
        3
    };
    format!("{percent:.places$} %")
}

/// The share of time lost by the program that allocates most.
fn lost(machine: Machine) -> String {
    let (name, program) = PROGRAMS[0];
    let mut table = table([
        "threads",
        "every operation",
        "1 KiB",
        "4 KiB",
        "16 KiB",
        "64 KiB",
        "16 KiB, sockets",
        "64 KiB, sockets",
    ]);
    for threads in threads() {
        let mut row = vec![threads.to_string()];
        row.extend(
            THRESHOLDS.map(|threshold| percent(machine.share_lost(program, threads, threshold))),
        );
        row.extend([16 << 10, 64 << 10].map(|threshold| {
            percent(across_sockets(machine).share_lost(program, threads, threshold))
        }));
        table.add_row(row);
    }
    format!(
        "Share of time lost to publishing, by threshold, each thread allocating {name} and freeing it in phases of \
         their own; *sockets*: a contended publish takes {ACROSS:.0} times as long:\n\n{table}"
    )
}

/// The smallest threshold that loses at most one part in a hundred.
fn advice(machine: Machine) -> String {
    let names = PROGRAMS.map(|(name, _)| name);
    let mut table = table([
        "threads",
        names[0],
        names[1],
        names[2],
        "10 M/s of 64 B, sockets",
        "error bound there",
    ]);
    for threads in threads() {
        let smallest =
            |machine: Machine, program: Program| machine.threshold_for(program, threads, 0.01);
        let show = |threshold: Option<usize>| threshold.map_or("none".to_owned(), bytes);
        let mut row = vec![threads.to_string()];
        row.extend(PROGRAMS.map(|(_, program)| show(smallest(machine, program))));
        let last = smallest(across_sockets(machine), PROGRAMS[0].1);
        row.push(show(last));
        row.push(show(last.map(|threshold| threshold * threads)));
        table.add_row(row);
    }
    format!("Smallest threshold, from 1 KiB, that loses at most 1 % of the time:\n\n{table}")
}

fn plot(path: &std::path::Path, machine: Machine) -> anyhow::Result<()> {
    let (name, program) = PROGRAMS[0];
    let series: Vec<Series> = THRESHOLDS
        .iter()
        .map(|&threshold| Series {
            name: if threshold == 1 {
                "every operation".to_owned()
            } else {
                bytes(threshold)
            },
            points: threads()
                .map(|threads| {
                    let lost = machine.share_lost(program, threads, threshold) * 100.0;
                    let exactly = Interval {
                        median: lost,
                        low: lost,
                        high: lost,
                    };
                    (threads as f64, exactly)
                })
                .collect(),
        })
        .collect();
    let frame = Frame {
        title: &format!("Model: time lost to publishing, threads allocating {name}"),
        x: "threads, each on a processor of its own",
        y: "time lost, %",
        scale: Scale::Logarithmic,
        y_min: 0.01,
        y_max: Some(100.0),
    };
    plots::draw(path, &frame, &series).context("the scaling plot")
}
