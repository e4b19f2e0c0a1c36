//! The `overhead` command: what counting costs on this machine.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use tally_alloc::heap;

use crate::plots;
use crate::report;
use crate::rounds::{self, Comparison, Enough, Run};
use crate::switch::{Switching, Way};
use crate::workload::{self, Size, Workload};

/// Measures what counting costs: every workload uncounted, in batches and exactly, in paired, interleaved
/// rounds of one process. Prints the median of each way's time as a ratio to the uncounted time of the same
/// round, with a 95 % bootstrap interval, and the writes to the shared cache line per million allocations and
/// reallocations, a figure without noise. `control` is uncounted once more: what no difference looks like here.
#[derive(Debug, Parser)]
#[command(name = "overhead")]
struct Arguments {
    /// A few seconds: tiny workloads, three rounds. Shows that everything runs, measures nothing.
    #[arg(long, conflicts_with = "full")]
    smoke: bool,

    /// The full sizes; first runs each workload once and says how long the whole will take.
    #[arg(long)]
    full: bool,

    /// Seconds for each workload, 24 of them [default: 4.5].
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,

    /// Batched at 1, 4, 16 and 64 KiB, one shared atomic, and a word of each thread's own, instead of batched at 16 KiB alone.
    #[arg(long)]
    all_ways: bool,

    /// Only workloads whose name contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Writes the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Writes the results to this file as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Puts the table into this file, between its lines `<!-- overhead:begin -->` and `<!-- overhead:end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Draws the ratio by threads, the ratio by threshold and the writes by threshold into this directory, as SVG.
    /// Needs results of `--all-ways`.
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,

    /// Reports what `--json` wrote to this file before, instead of measuring.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Fails unless batches write to the shared line at least 200 times less often than exact counting does,
    /// on mergesort and the trees.
    #[arg(long)]
    check: bool,

    /// Runs this one workload and prints its comparison as JSON: how the rows over another inner allocator
    /// are made.
    #[arg(long, hide = true, value_name = "WORKLOAD")]
    row: Option<String>,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// By how much less often batches must write to the shared line.
const FEWER_WRITES: f64 = 200.0;

/// The workloads that are measured over mimalloc too: those that are nearly all malloc and free.
const OVER_MIMALLOC: [&str; 6] = [
    "pair 64 B, 1 thread",
    "pair 64 B, 2 threads",
    "pair 64 B, 8 threads",
    "grow to 64 KiB, written, 1 thread",
    "tree_immutable",
    "tree_mutable",
];

/// Rounds at full size.
const FULL_ROUNDS: usize = 7;

impl Arguments {
    fn size(&self) -> Size {
        match (self.smoke, self.full) {
            (true, _) => Size::Smoke,
            (_, true) => Size::Full,
            _ => Size::Short,
        }
    }

    fn ways(&self) -> Vec<Way> {
        let mut ways = vec![Way::Uncounted, Way::Control];
        if self.all_ways {
            ways.extend([1, 4, 16, 64].map(|kib| Way::Batched(kib * 1024)));
            ways.extend([Way::Exact, Way::OneAtomic, Way::OwnWord]);
        } else {
            ways.extend([Way::Batched(16 * 1024), Way::Exact]);
        }
        ways
    }

    fn enough(&self) -> Enough {
        match self.size() {
            Size::Smoke => Enough {
                rounds: 3,
                time: Duration::ZERO,
            },
            Size::Short => Enough {
                rounds: 5,
                time: self.time(),
            },
            Size::Full => Enough {
                rounds: FULL_ROUNDS,
                time: Duration::ZERO,
            },
        }
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.unwrap_or(4.5))
    }
}

/// The bar of a measurement whose length is known beforehand.
struct Progress {
    bar: ProgressBar,
    /// Time that each row is given.
    row: Duration,
    rows_done: u32,
}

impl Progress {
    fn new(rows: usize, row: Duration) -> Self {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let length = (row * rows).as_millis();
        let bar = ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX));
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}");
        bar.set_style(style.expect("a valid template"));
        Self {
            bar,
            row,
            rows_done: 0,
        }
    }

    fn begin(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    fn advance(&self, within_row: Duration) {
        let done = self.row * self.rows_done + within_row.min(self.row);
        self.bar
            .set_position(u64::try_from(done.as_millis()).unwrap_or(u64::MAX));
    }

    fn end_row(&mut self) {
        self.rows_done += 1;
        self.advance(Duration::ZERO);
    }
}

/// Runs the command over `allocator`, the global allocator of this process. `over_mimalloc` is the path of the
/// same command over mimalloc, for the rows that need it.
///
/// # Errors
///
/// When a check fails or a result cannot be written.
pub fn main(allocator: &dyn Switching, over_mimalloc: Option<&str>) -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let workloads = workload::all(arguments.size());
    if let Some(name) = &arguments.row {
        let workload = workloads
            .iter()
            .find(|workload| workload.name() == *name)
            .with_context(|| format!("no workload is called {name}"))?;
        let row = measure(allocator, &arguments, &**workload, |_| ())?;
        serde_json::to_writer(io::stdout(), &row)?;
        return Ok(());
    }

    let (results, circumstances) = match &arguments.from {
        Some(path) => read(path)?,
        None => {
            let results = measure_all(allocator, &arguments, &workloads, over_mimalloc)?;
            (results, report::circumstances())
        }
    };
    let page = format!(
        "{}\n\nMedian ratio to uncounted [95 % interval]; {} to {} rounds; {circumstances}.",
        report::table(&results, "uncounted"),
        results.iter().map(|row| row.rounds).min().unwrap_or(0),
        results.iter().map(|row| row.rounds).max().unwrap_or(0),
    );
    writeln!(io::stdout().lock(), "{page}")?;
    if let Some(path) = &arguments.json {
        let measured = Measured {
            circumstances,
            results: results.clone(),
        };
        report::write_json(path, &measured)?;
    }
    if let Some(path) = &arguments.csv {
        report::write_csv(path, &results)?;
    }
    if let Some(path) = &arguments.markdown {
        report::write_markdown(path, "overhead", &page)?;
    }
    if let Some(directory) = &arguments.plots {
        plots::of_overhead(directory, &results)?;
    }
    if arguments.check {
        check(&results)?;
    }
    Ok(())
}

/// What is written as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    /// The machine and the day.
    circumstances: String,
    results: Vec<Comparison>,
}

fn read(path: &Path) -> anyhow::Result<(Vec<Comparison>, String)> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let measured: Measured = serde_json::from_str(&text)?;
    Ok((measured.results, measured.circumstances))
}

fn measure_all(
    allocator: &dyn Switching,
    arguments: &Arguments,
    workloads: &[Box<dyn Workload>],
    over_mimalloc: Option<&str>,
) -> anyhow::Result<Vec<Comparison>> {
    let chosen = |name: &str| name.contains(&arguments.only);
    let here: Vec<_> = workloads
        .iter()
        .map(|workload| &**workload)
        .filter(|workload| chosen(&workload.name()))
        .collect();
    let there: Vec<_> = OVER_MIMALLOC
        .iter()
        .filter(|name| over_mimalloc.is_some() && chosen(name))
        .collect();
    ensure!(
        !here.is_empty(),
        "no workload has '{}' in its name",
        arguments.only
    );

    let rows = here.len() + there.len();
    let row_time = match arguments.size() {
        Size::Full => full_time(allocator, arguments, &here)? / u32::try_from(rows)?,
        Size::Short => arguments.time(),
        Size::Smoke => Duration::from_millis(300),
    };
    let mut progress = Progress::new(rows, row_time);
    let mut results = Vec::new();
    for workload in here {
        progress.begin(&workload.name());
        results.push(measure(allocator, arguments, workload, |time| {
            progress.advance(time)
        })?);
        progress.end_row();
    }
    if let Some(program) = over_mimalloc {
        for name in there {
            progress.begin(&format!("{name}, over mimalloc"));
            results.push(row_of(program, name, arguments)?);
            progress.end_row();
        }
    }
    progress.bar.finish_and_clear();
    Ok(results)
}

fn measure(
    allocator: &dyn Switching,
    arguments: &Arguments,
    workload: &dyn Workload,
    progress: impl FnMut(Duration),
) -> anyhow::Result<Comparison> {
    let ways = arguments.ways();
    let names: Vec<String> = ways.iter().map(Way::to_string).collect();
    let run = |way: usize| Ok(run(allocator, ways[way], workload));
    let comparison = rounds::compare(&workload.name(), &names, arguments.enough(), run, progress);
    allocator.count(Way::Uncounted);
    comparison
}

/// Runs `workload` once, counted in one way.
pub fn run(allocator: &dyn Switching, way: Way, workload: &dyn Workload) -> Run {
    allocator.count(way);
    let (writes, totals) = (heap().shared_writes(), heap().totals());
    let elapsed = workload.run();
    let change = heap().totals() - totals;
    Run {
        elapsed,
        shared_writes: heap().shared_writes() - writes,
        requests: change.allocations + change.reallocations,
    }
}

/// Runs each workload once and says how long the full form will take.
fn full_time(
    allocator: &dyn Switching,
    arguments: &Arguments,
    workloads: &[&dyn Workload],
) -> anyhow::Result<Duration> {
    let mut err = io::stderr().lock();
    writeln!(
        err,
        "Each workload once, to see how long all of it will take:"
    )?;
    let mut once = Duration::ZERO;
    for workload in workloads {
        let time = run(allocator, Way::Uncounted, *workload).elapsed;
        writeln!(err, "  {}: {:.1} s", workload.name(), time.as_secs_f64())?;
        once += time;
    }
    let runs = u32::try_from(arguments.ways().len() * (FULL_ROUNDS + 1))?;
    // The rows over mimalloc are a third of the work; exact counting is several times as slow.
    let whole = once * runs * 3 / 2;
    writeln!(
        err,
        "About {:.0} minutes from here.",
        whole.as_secs_f64() / 60.0
    )?;
    Ok(whole)
}

/// Has another program measure one row.
fn row_of(program: &str, name: &str, arguments: &Arguments) -> anyhow::Result<Comparison> {
    let mut command = Command::new(program);
    command.args(["--row", name]).stderr(Stdio::inherit());
    for (flag, given) in [
        ("--smoke", arguments.smoke),
        ("--full", arguments.full),
        ("--all-ways", arguments.all_ways),
    ] {
        if given {
            command.arg(flag);
        }
    }
    if let Some(seconds) = arguments.seconds {
        command.args(["--seconds", &seconds.to_string()]);
    }
    let output = command
        .output()
        .with_context(|| format!("running {program}"))?;
    ensure!(output.status.success(), "{program} failed on {name}");
    let mut row: Comparison = serde_json::from_slice(&output.stdout)?;
    row.workload += ", over mimalloc";
    Ok(row)
}

/// Checks the figure that no noise touches.
fn check(results: &[Comparison]) -> anyhow::Result<()> {
    let batched = Way::Batched(16 * 1024).to_string();
    let exact = Way::Exact.to_string();
    for row in results {
        if !(row.workload.starts_with("mergesort") || row.workload.starts_with("tree")) {
            continue;
        }
        let writes = |name: &str| {
            let way = row.ways.iter().find(|way| way.way == *name)?;
            way.writes_per_million
        };
        let (Some(batched), Some(exact)) = (writes(&batched), writes(&exact)) else {
            bail!("{}: no writes were counted", row.workload);
        };
        ensure!(
            batched * FEWER_WRITES <= exact,
            "{}: {batched:.0} writes per million in batches, {exact:.0} exact: not {FEWER_WRITES} times fewer",
            row.workload
        );
    }
    Ok(())
}
