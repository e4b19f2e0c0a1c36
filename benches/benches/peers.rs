//! Ours beside the crates that people would use instead, one process for each.
//!
//! `cargo bench -p tally-alloc-bench --features peers --bench peers`
//!
//! First the probes: each peer's live bytes against the truth, in the situations of
//! [`probes`](tally_alloc_bench::probes). Then the times: rounds go from process to process, so that a run of each
//! lies close to a run of the bare allocator in time. A process gets all of the machine while it runs; the others
//! wait for their next line.

#![allow(clippy::print_stdout, reason = "a command that prints tables")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::{Parser, ValueEnum as _};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tally_alloc_bench::probes::{Finding, Probe};
use tally_alloc_bench::report;
use tally_alloc_bench::rounds::{self, Comparison, Enough, Run};
use tally_alloc_bench::workload::{self, Size};

/// The programs over one inner allocator; the first is that allocator, uncounted.
struct Family {
    base: &'static str,
    programs: &'static [(&'static str, &'static str)],
}

macro_rules! programs {
    ($($name:literal: $program:literal),+ $(,)?) => {
        &[$(($name, env!(concat!("CARGO_BIN_EXE_peer-", $program)))),+]
    };
}

const FAMILIES: [Family; 3] = [
    Family {
        base: "system",
        programs: programs! {
            "system": "system",
            "batched": "batched",
            "exact": "exact",
            "one atomic": "one-atomic",
            "thresher": "thresher",
            "stats_alloc": "stats-alloc",
            "cap": "cap",
            "peak_alloc": "peak-alloc",
            "accounting-allocator": "accounting-allocator",
            "alloc_tracker": "alloc-tracker",
            "alloc-metrics": "alloc-metrics",
            "divan": "divan",
            "dhat": "dhat",
        },
    },
    Family {
        base: "jemalloc",
        programs: programs! {
            "jemalloc": "jemalloc",
            "batched over jemalloc": "batched-over-jemalloc",
        },
    },
    Family {
        base: "mimalloc",
        programs: programs! {
            "mimalloc": "mimalloc",
            "batched over mimalloc": "batched-over-mimalloc",
        },
    },
];

/// Compares ours with the crates that people would use instead: first each one's live bytes with the truth, then
/// the times, in rounds that go from process to process.
#[derive(Debug, Parser)]
#[command(name = "peers")]
struct Arguments {
    /// Tiny workloads and three rounds: shows that everything runs, measures nothing.
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// The full sizes, 7 rounds: hours, which dhat alone accounts for; leave it out with `--without dhat`.
    #[arg(long)]
    full: bool,

    /// Seconds for each workload and inner allocator [default: 2.4, two minutes in all].
    #[arg(long, value_name = "SECONDS", default_value_t = 2.4)]
    seconds: f64,

    /// Only workloads whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Leaves out a peer; can be given more than once.
    #[arg(long, value_name = "PEER")]
    without: Vec<String>,

    /// Only the probes, no times.
    #[arg(long)]
    probes: bool,

    /// Writes probes and times to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Serialize)]
struct Results {
    probes: Vec<Probed>,
    times: Vec<Comparison>,
}

#[derive(Debug, Serialize)]
struct Probed {
    peer: &'static str,
    probe: String,
    /// Absent when the peer crashed or hung.
    finding: Option<Finding>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut results = Results {
        probes: Vec::new(),
        times: Vec::new(),
    };
    println!("{}\n", probe_all(&arguments, &mut results.probes)?);
    if !arguments.probes {
        time_all(&arguments, &mut results.times)?;
    }
    if let Some(path) = &arguments.json {
        report::write_json(path, &results)?;
    }
    Ok(())
}

fn chosen(family: &Family, arguments: &Arguments) -> Vec<(&'static str, &'static str)> {
    let left_out = |name: &str| arguments.without.iter().any(|out| out == name);
    family
        .programs
        .iter()
        .filter(|(name, _)| !left_out(name))
        .copied()
        .collect()
}

/// Longer than any probe takes, dhat's included.
const PATIENCE: Duration = Duration::from_secs(60);

fn probe_all(arguments: &Arguments, results: &mut Vec<Probed>) -> anyhow::Result<Table> {
    let name = |probe: Probe| {
        let value = probe.to_possible_value();
        value
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    };
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    let mut header = vec!["bytes off".to_owned()];
    header.extend(Probe::ALL.map(name));
    table.set_header(header);
    for (peer, program) in FAMILIES.iter().flat_map(|family| chosen(family, arguments)) {
        let mut row = vec![peer.to_owned()];
        for probe in Probe::ALL {
            let finding = run_probe(program, &name(probe))?;
            row.push(match finding {
                None => "crashed or hung".to_owned(),
                Some(Finding { applies: false, .. }) => "no figure".to_owned(),
                Some(Finding { error, .. }) if error.abs() <= probe.tolerance() => {
                    "right".to_owned()
                }
                Some(Finding { error, .. }) => format!("{error:+}"),
            });
            results.push(Probed {
                peer,
                probe: name(probe),
                finding,
            });
        }
        table.add_row(row);
    }
    Ok(table)
}

/// Runs one probe in a process of its own; `None` when that crashed or hung.
fn run_probe(program: &str, probe: &str) -> anyhow::Result<Option<Finding>> {
    let mut child = Command::new(program)
        .args(["probe", probe])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output()?;
    Ok(serde_json::from_slice(&output.stdout).ok())
}

/// A peer's process, waiting for lines.
struct Served {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Served {
    fn start(program: &str) -> anyhow::Result<Self> {
        let mut process = Command::new(program)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let (Some(ask), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            bail!("both pipes were asked for");
        };
        Ok(Self {
            process,
            ask,
            answers: BufReader::new(answers),
        })
    }

    fn run(&mut self, size: Size, workload: &str) -> anyhow::Result<Run> {
        writeln!(self.ask, "{size} {workload}")?;
        self.ask.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let nanoseconds = line
            .trim()
            .parse()
            .with_context(|| format!("{workload}: no time came back"))?;
        Ok(Run {
            elapsed: Duration::from_nanos(nanoseconds),
            ..Run::default()
        })
    }

    fn stop(mut self) -> anyhow::Result<()> {
        drop(self.ask);
        ensure!(self.process.wait()?.success(), "a peer's process failed");
        Ok(())
    }
}

fn time_all(arguments: &Arguments, results: &mut Vec<Comparison>) -> anyhow::Result<()> {
    let (size, rounds, seconds) = match (arguments.smoke, arguments.full) {
        (true, _) => (Size::Smoke, 3, 0.0),
        (_, true) => (Size::Full, 7, 0.0),
        _ => (Size::Short, 3, arguments.seconds),
    };
    let enough = Enough {
        rounds,
        time: Duration::from_secs_f64(seconds),
    };
    let names: Vec<String> = workload::all(size)
        .iter()
        .map(|workload| workload.name())
        .filter(|name| name.contains(&arguments.only))
        .collect();
    ensure!(
        !names.is_empty(),
        "no workload has '{}' in its name",
        arguments.only
    );
    let bar = ProgressBar::new((names.len() * FAMILIES.len()) as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len}  {msg}").expect("a valid template"),
    );
    for family in &FAMILIES {
        let programs = chosen(family, arguments);
        let mut served = Vec::new();
        for (_, program) in &programs {
            served.push(Served::start(program)?);
        }
        let ways: Vec<String> = programs
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let mut rows = Vec::new();
        for name in &names {
            bar.set_message(format!("{name}, over {}", family.base));
            let run = |way: usize| served[way].run(size, name);
            rows.push(rounds::compare(name, &ways, enough, run, |_| bar.tick())?);
            bar.inc(1);
        }
        for peer in served {
            peer.stop()?;
        }
        bar.suspend(|| println!("{}\n", report::table(&rows, family.base)));
        results.extend(rows);
    }
    bar.finish_and_clear();
    println!(
        "Median ratio to the inner allocator [95 % interval]; {}.",
        report::circumstances()
    );
    Ok(())
}
