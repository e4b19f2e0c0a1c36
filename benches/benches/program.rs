//! What counting does to a real program: the code size and the run time of `ripgrep`, built from its published
//! source, as it is and with two lines that install the allocator.
//!
//! `cargo bench -p tally-alloc-bench --bench program`
//!
//! Cargo fetches the source and builds both with the profile that ripgrep is released with. The two programs then
//! search the same directory in turns, and each pair of runs gives a ratio. With one thread, since the order in
//! which several meet files is not the same twice, and with all.

#![allow(clippy::print_stdout, reason = "a command that prints tables")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use object::{Object as _, ObjectSection as _};
use tally_alloc_bench::published::{Form, RIPGREP, succeed};
use tally_alloc_bench::report;
use tally_alloc_bench::rounds::{self, Comparison, Enough, Run};

const TEXT_BAR: f64 = 1.01;
const TIME_BAR: f64 = 1.01;

/// Builds ripgrep twice, with the system allocator and with it counted, and compares code size and run time.
#[derive(Debug, Parser)]
#[command(name = "program")]
struct Arguments {
    /// A directory to search [default: the sources of ripgrep and of all that it depends on].
    #[arg(long, value_name = "DIRECTORY")]
    search: Option<PathBuf>,

    /// What to search it for.
    #[arg(long, default_value = r"\w+_alloc\w*|fn \w+<")]
    pattern: String,

    /// Seconds of runs for each number of threads.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    seconds: f64,

    /// Three rounds: shows that everything runs, measures nothing but the code size.
    #[arg(long)]
    smoke: bool,

    /// Fails if the code grows by more than 1 %, or, without `--smoke`, the time by surely more than that.
    #[arg(long)]
    check: bool,

    /// Puts the table into this file, between its lines `<!-- program:begin -->` and `<!-- program:end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let build = |form| RIPGREP.copy(directory, form, "")?.build();
    let programs = [build(Form::Published)?, build(Form::Counted)?];
    let [plain, counted] = [text_size(&programs[0])?, text_size(&programs[1])?];
    let growth = counted as f64 / plain as f64;

    let searched = match &arguments.search {
        Some(chosen) => chosen.clone(),
        None => RIPGREP.vendor(directory)?,
    };
    let times = [1, 0]
        .map(|threads| compare(&arguments, &programs, &searched, threads))
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;

    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header([
        &*format!("ripgrep {}", RIPGREP.version),
        "system",
        "counted in batches",
    ]);
    table.add_row([
        "`.text`, bytes".to_owned(),
        plain.to_string(),
        format!("{counted} ({:+.2} %)", (growth - 1.0) * 100.0),
    ]);
    for time in &times {
        table.add_row([
            time.workload.clone(),
            format!("{:.1} ms", time.base_nanoseconds / 1e6),
            format!("× {}", report::ratio(time.ways[0].ratio)),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let page = format!(
        "{table}\n\nMedian ratio [95 % interval] of {} to {} rounds; {}.",
        times.iter().map(|time| time.rounds).min().unwrap_or(0),
        times.iter().map(|time| time.rounds).max().unwrap_or(0),
        report::circumstances()
    );
    println!("{page}");
    if let Some(path) = &arguments.markdown {
        report::write_markdown(path, "program", &page)?;
    }
    if arguments.check {
        ensure!(growth <= TEXT_BAR, "the code has grown by {growth:.4}");
        for time in &times {
            let ratio = time.ways[0].ratio;
            ensure!(
                arguments.smoke || ratio.low <= TIME_BAR,
                "{}: {}",
                time.workload,
                report::ratio(ratio)
            );
        }
    }
    Ok(())
}

/// Returns the size of a program's code, in bytes.
fn text_size(program: &Path) -> anyhow::Result<u64> {
    let bytes = fs::read(program)?;
    let file = object::File::parse(&*bytes)?;
    let section = file
        .section_by_name(".text")
        .or_else(|| file.section_by_name("__text"))
        .context("a program has code")?;
    Ok(section.size())
}

/// Lets the programs search in turns; 0 threads is as many as ripgrep takes by itself.
fn compare(
    arguments: &Arguments,
    programs: &[PathBuf; 2],
    searched: &Path,
    threads: usize,
) -> anyhow::Result<Comparison> {
    let enough = Enough {
        rounds: if arguments.smoke { 3 } else { 15 },
        time: Duration::from_secs_f64(if arguments.smoke {
            0.0
        } else {
            arguments.seconds
        }),
    };
    let search = |program: &Path| {
        let mut command = Command::new(program);
        command
            .args(["--no-config", "--no-ignore", "--line-number", "--threads"])
            .arg(threads.to_string())
            .arg("--regexp")
            .arg(&arguments.pattern)
            .arg(searched)
            .stdin(Stdio::null());
        command
    };
    let mut found = Vec::new();
    for program in programs {
        let mut lines: Vec<String> = String::from_utf8_lossy(&search(program).output()?.stdout)
            .lines()
            .map(str::to_owned)
            .collect();
        lines.sort();
        found.push(lines);
    }
    ensure!(!found[0].is_empty(), "nothing was found");
    ensure!(found[0] == found[1], "the programs find different lines");

    let bar = ProgressBar::new_spinner()
        .with_style(ProgressStyle::with_template("{spinner} {msg}").expect("a valid template"));
    let name = match threads {
        0 => "search, its own choice of threads".to_owned(),
        1 => "search, 1 thread".to_owned(),
        _ => format!("search, {threads} threads"),
    };
    bar.set_message(name.clone());
    let ways = ["system", "counted"].map(String::from);
    let run = |way: usize| {
        let mut command = search(&programs[way]);
        command.stdout(Stdio::null());
        let begin = Instant::now();
        succeed(&mut command)?;
        Ok(Run {
            elapsed: begin.elapsed(),
            ..Run::default()
        })
    };
    let comparison = rounds::compare(&name, &ways, enough, run, |_| bar.tick());
    bar.finish_and_clear();
    comparison
}
