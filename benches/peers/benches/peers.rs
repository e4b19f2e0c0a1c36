//! Ours beside the crates that people would use instead, one process for each.
//!
//! `cargo bench -p tally-alloc-peers --bench peers`
//!
//! First the probes: each peer's live bytes against the truth, in the situations of
//! [`probes`](tally_alloc_bench::probes), and the instructions that it adds. Then the times: rounds go from process
//! to process, so that a run of each lies close to a run of the bare allocator in time. A process gets all of the
//! machine while it runs; the others wait for their next line. Beside each ratio stands whether the figure that it
//! is the price of is right.

#![allow(clippy::print_stdout, reason = "a command that prints tables")]

use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::{Parser, ValueEnum as _};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tally_alloc_bench::callgrind;
use tally_alloc_bench::child::{Form, Operation};
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
        &[$(($name, env!(concat!("CARGO_BIN_EXE_", $program)))),+]
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
            "own word": "own-word",
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

    /// The full sizes, 7 rounds: hours.
    #[arg(long)]
    full: bool,

    /// Seconds for each workload and peer [default: 0.4, two minutes in all].
    #[arg(long, value_name = "SECONDS", default_value_t = 0.4)]
    seconds: f64,

    /// Only workloads whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Leaves out a peer; can be given more than once.
    #[arg(long, value_name = "PEER")]
    without: Vec<String>,

    /// Only the probes and the instructions, no times.
    #[arg(long)]
    probes: bool,

    /// Fails if one of ours is wrong, or, without `--smoke`, if a peer that is right is faster than ours in batches
    /// over the same inner allocator, beyond the intervals.
    #[arg(long)]
    check: bool,

    /// Puts the tables into this file, between its lines `<!-- peers:begin -->` and `<!-- peers:end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Writes probes and times to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What one peer was found to be.
#[derive(Debug, Serialize)]
struct Peer {
    name: &'static str,
    /// The inner allocator.
    over: &'static str,
    /// By probe, in the order of [`Probe::ALL`]; absent where the peer crashed or hung. Resident bytes are those
    /// beyond the inner allocator's.
    findings: Vec<(String, Option<Finding>)>,
    verdict: Verdict,
    /// Instructions that it adds to a malloc and free of 64 bytes, inlined; absent without valgrind.
    instructions_added: Option<f64>,
}

/// What the probes say of a peer's live bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
enum Verdict {
    /// The truth, every time.
    Right,
    /// Not in these probes.
    Wrong(Vec<String>),
    /// It has no such figure.
    NoFigure,
    /// It counts nothing: what the others are compared with.
    Uncounted,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right => f.write_str("right"),
            Self::Wrong(probes) => write!(f, "**wrong** ({})", probes.join(", ")),
            Self::NoFigure => f.write_str("no figure"),
            Self::Uncounted => f.write_str("uncounted"),
        }
    }
}

#[derive(Debug, Serialize)]
struct Results {
    peers: Vec<Peer>,
    times: Vec<Timed>,
}

/// The times of one family.
#[derive(Debug, Serialize)]
struct Timed {
    over: &'static str,
    rows: Vec<Comparison>,
}

const OURS: &str = "batched";

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let peers = examine_all(&arguments)?;
    let mut page = format!("{}\n", probe_table(&peers));
    println!("{page}");
    let mut results = Results {
        peers,
        times: Vec::new(),
    };
    if !arguments.probes {
        results.times = time_all(&arguments)?;
        let times = report_times(&results);
        println!("{times}");
        page.push('\n');
        page.push_str(&times);
    }
    if let Some(path) = &arguments.json {
        report::write_json(path, &results)?;
    }
    if let Some(path) = &arguments.markdown {
        report::write_markdown(path, "peers", &page)?;
    }
    if arguments.check {
        check(&results, arguments.smoke)?;
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

/// Only probed: it records a backtrace for each block, under a lock, and takes minutes where others take a tenth of a
/// second. Its instructions say enough.
const UNTIMED: &str = "dhat";

/// Longer than any probe takes, dhat's included.
const PATIENCE: Duration = Duration::from_secs(60);

fn name_of(probe: Probe) -> String {
    let value = probe.to_possible_value();
    value
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

fn examine_all(arguments: &Arguments) -> anyhow::Result<Vec<Peer>> {
    let with_valgrind = callgrind::is_installed();
    if !with_valgrind {
        eprintln!("instructions are left out: valgrind is not installed");
    }
    let pair = |program| callgrind::cost(program, Operation::Pair, Form::Inlined);
    let programs: usize = FAMILIES.iter().map(|family| family.programs.len()).sum();
    let bar = progress(programs);
    let mut peers = Vec::new();
    for family in &FAMILIES {
        let (_, base) = family.programs[0];
        let inner = probe_all(base)?;
        let bare = with_valgrind.then(|| pair(base)).transpose()?;
        for (name, program) in chosen(family, arguments) {
            bar.set_message(format!("{name}, probed"));
            let mut findings = probe_all(program)?;
            for (index, probe) in Probe::ALL.into_iter().enumerate() {
                if let (true, (_, Some(finding))) = (is_resident(probe), &mut findings[index]) {
                    finding.error -= inner[index].1.map_or(0, |inner| inner.error);
                }
            }
            let added = |bare: f64| Ok::<_, anyhow::Error>(pair(program)? - bare);
            peers.push(Peer {
                name,
                over: family.base,
                verdict: verdict(name == family.base && name != "jemalloc", &findings),
                findings,
                instructions_added: bare.map(added).transpose()?,
            });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(peers)
}

fn probe_all(program: &str) -> anyhow::Result<Vec<(String, Option<Finding>)>> {
    Probe::ALL
        .into_iter()
        .map(|probe| Ok((name_of(probe), run_probe(program, &name_of(probe))?)))
        .collect()
}

/// Returns whether a probe is about resident bytes, and not about the peer's figure.
fn is_resident(probe: Probe) -> bool {
    matches!(probe, Probe::Zeroed | Probe::Resized)
}

fn is_right(probe: Probe, finding: Option<Finding>) -> bool {
    finding.is_some_and(|found| found.error.abs() <= probe.tolerance())
}

fn verdict(uncounted: bool, findings: &[(String, Option<Finding>)]) -> Verdict {
    if uncounted {
        return Verdict::Uncounted;
    }
    if findings
        .iter()
        .any(|(_, finding)| finding.is_some_and(|found| !found.applies))
    {
        return Verdict::NoFigure;
    }
    let wrong: Vec<String> = Probe::ALL
        .iter()
        .zip(findings)
        .filter(|(probe, (_, finding))| !is_resident(**probe) && !is_right(**probe, *finding))
        .map(|(_, (name, _))| name.clone())
        .collect();
    if wrong.is_empty() {
        Verdict::Right
    } else {
        Verdict::Wrong(wrong)
    }
}

/// One row a peer: how far off its live bytes are in each probe, in bytes, and the instructions that it adds.
fn probe_table(peers: &[Peer]) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    let mut header = vec!["bytes off".to_owned()];
    header.extend(Probe::ALL.map(name_of));
    header.push("instructions added".to_owned());
    table.set_header(header);
    for peer in peers {
        let mut row = vec![peer.name.to_owned()];
        for (probe, (_, finding)) in Probe::ALL.into_iter().zip(&peer.findings) {
            row.push(match finding {
                None => "crashed or hung".to_owned(),
                Some(Finding { applies: false, .. }) => "no figure".to_owned(),
                Some(_) if !is_right(probe, *finding) && is_resident(probe) => {
                    "touches them".to_owned()
                }
                Some(_) if is_resident(probe) => "as inner".to_owned(),
                Some(_) if is_right(probe, *finding) => "right".to_owned(),
                Some(Finding { error, .. }) => format!("{error:+}"),
            });
        }
        row.push(
            peer.instructions_added
                .map_or_else(String::new, |added| format!("{added:.1}")),
        );
        table.add_row(row);
    }
    to_the_right(&mut table, 1);
    table
}

fn to_the_right(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Workloads beside each other in a table of times: as many as a page is wide.
const COLUMNS: usize = 4;

/// The times: for each inner allocator, tables of a few workloads with one row a peer, and at the end which peers
/// are right and faster than ours.
fn report_times(results: &Results) -> String {
    let mut page = String::new();
    for timed in &results.times {
        for rows in timed.rows.chunks(COLUMNS) {
            let mut table = Table::new();
            table.load_preset(ASCII_MARKDOWN);
            let mut header = vec![format!("over {}", timed.over), "live bytes".to_owned()];
            header.extend(rows.iter().map(|row| row.workload.clone()));
            table.set_header(header);
            let ways = rows.first().map_or(&[][..], |row| &row.ways);
            for (index, way) in ways.iter().enumerate() {
                let mut cells = vec![way.way.clone(), verdict_of(results, &way.way)];
                cells.extend(rows.iter().map(|row| report::ratio(row.ways[index].ratio)));
                table.add_row(cells);
            }
            to_the_right(&mut table, 2);
            page += &format!("{table}\n\n");
        }
    }
    let rounds = results.times.iter().flat_map(|timed| &timed.rows);
    let rounds: Vec<usize> = rounds.map(|row| row.rounds).collect();
    page += &format!(
        "Median ratio to the inner allocator [95 % interval]; {} to {} rounds; {}.\n\n",
        rounds.iter().min().unwrap_or(&0),
        rounds.iter().max().unwrap_or(&0),
        report::circumstances()
    );
    let faster = faster_and_right(results);
    page += "Peers whose live bytes are right and that add less than ours in batches, beyond the intervals: ";
    page += &if faster.is_empty() {
        "none.".to_owned()
    } else {
        faster.join("; ") + "."
    };
    page
}

fn verdict_of(results: &Results, name: &str) -> String {
    let peer = results.peers.iter().find(|peer| peer.name == name);
    peer.map_or_else(String::new, |peer| peer.verdict.to_string())
}

fn faster_and_right(results: &Results) -> Vec<String> {
    let mut found = Vec::new();
    let right = |name: &str| {
        let mut peers = results.peers.iter();
        peers.any(|peer| peer.name == name && peer.verdict == Verdict::Right)
    };
    for row in results.times.iter().flat_map(|timed| &timed.rows) {
        let Some(ours) = row.ways.iter().find(|way| way.way.starts_with(OURS)) else {
            continue;
        };
        let faster = row
            .ways
            .iter()
            .filter(|way| !way.way.starts_with(OURS) && right(&way.way))
            .filter(|way| way.ratio.high < ours.ratio.low);
        found.extend(faster.map(|way| format!("{} on {}", way.way, row.workload)));
    }
    found
}

fn check(results: &Results, smoke: bool) -> anyhow::Result<()> {
    for peer in &results.peers {
        let ours = peer.name.starts_with(OURS) || peer.name == "exact";
        ensure!(
            !ours || peer.verdict == Verdict::Right,
            "{}: {}",
            peer.name,
            peer.verdict
        );
    }
    let faster = faster_and_right(results);
    ensure!(
        smoke || faster.is_empty(),
        "right and faster: {}",
        faster.join("; ")
    );
    Ok(())
}

fn progress(steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}  {msg}");
    ProgressBar::new(steps as u64).with_style(style.expect("a valid template"))
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

fn time_all(arguments: &Arguments) -> anyhow::Result<Vec<Timed>> {
    let (size, rounds, seconds) = match (arguments.smoke, arguments.full) {
        (true, _) => (Size::Smoke, 3, 0.0),
        (_, true) => (Size::Full, 7, 0.0),
        _ => (Size::Short, 3, arguments.seconds),
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
    let bar = progress(names.len() * FAMILIES.len());
    let mut times = Vec::new();
    for family in &FAMILIES {
        let mut programs = chosen(family, arguments);
        programs.retain(|(name, _)| *name != UNTIMED);
        let enough = Enough {
            rounds,
            time: Duration::from_secs_f64(seconds * programs.len() as f64),
        };
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
        times.push(Timed {
            over: family.base,
            rows,
        });
    }
    bar.finish_and_clear();
    Ok(times)
}
