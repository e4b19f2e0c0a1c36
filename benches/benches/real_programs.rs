//! Real programs with the allocator installed: their own tests, and their account to the byte and block beside what
//! valgrind's memcheck counts in the same run.
//!
//! `cargo bench -p tally-alloc-bench --bench real_programs`
//!
//! Cargo fetches `ripgrep`, `fd-find` and `jaq` as they were published, each gets two lines that install the
//! allocator, and code that tells the account at the very end (`real_programs/at_exit.rs`). Then each runs its own
//! test suite, and works on this repository's own text under valgrind. Everything that memcheck counts and the account
//! does not has to be found in valgrind's own records ([`memcheck`]); a single byte that is not is
//! an error.
//!
//! Needs valgrind and, the first time, some minutes to build the programs.

#![allow(clippy::print_stdout, reason = "a command that prints tables")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use tally_alloc_bench::memcheck::{self, Account, Blocks, Line, Stacks};
use tally_alloc_bench::published::{Copy, FD, Form, JAQ, Program, RIPGREP, Tested};
use tally_alloc_bench::{callgrind, report};

/// Tells the account at the program's end.
const AT_EXIT: &str = include_str!("real_programs/at_exit.rs");

/// How often a run is repeated whose trace has a torn line.
const TRIES: usize = 5;

/// A program at work.
struct Work {
    program: Program,
    name: &'static str,
    arguments: &'static [&'static str],
    input: Option<&'static str>,
}

/// Done in a directory with this repository's sources, and `lines.json` with the lines of the library.
const WORK: [Work; 5] = [
    Work {
        program: RIPGREP,
        name: "1 thread",
        arguments: &[
            "--no-config",
            "--threads=1",
            "-n",
            r"\w+_alloc\w*|fn \w+<",
            ".",
        ],
        input: None,
    },
    Work {
        program: RIPGREP,
        name: "4 threads",
        arguments: &[
            "--no-config",
            "--threads=4",
            "-n",
            r"\w+_alloc\w*|fn \w+<",
            ".",
        ],
        input: None,
    },
    Work {
        program: FD,
        name: "1 thread",
        arguments: &["--threads=1", "--no-ignore", "--hidden", "--extension=rs"],
        input: None,
    },
    Work {
        program: FD,
        name: "4 threads",
        arguments: &["--threads=4", "--no-ignore", "--hidden", "--extension=rs"],
        input: None,
    },
    Work {
        program: JAQ,
        name: "1 thread",
        arguments: &[
            "--null-input",
            "[inputs] | group_by(.file) | map({file: .[0].file, lines: length, \
             words: (map(.text | split(\" \") | length) | add), longest: max_by(.text | length).text})",
        ],
        input: Some("lines.json"),
    },
];

/// What is copied from the repository to be worked on.
const TEXT: [&str; 3] = ["src", "tests", "examples"];

/// Runs real programs with the allocator installed: their own tests, and a job under valgrind.
#[derive(Debug, Parser)]
#[command(name = "real_programs")]
struct Arguments {
    /// Leaves out the programs' own tests.
    #[arg(long)]
    no_tests: bool,

    /// Only this program: ripgrep, fd-find or jaq.
    #[arg(long, value_name = "PACKAGE")]
    only: Option<String>,

    /// Puts the tables into this file, between its lines `<!-- real-programs:begin -->` and
    /// `<!-- real-programs:end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if !callgrind::is_installed() {
        bail!("this needs valgrind");
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real_programs");
    let text = text(&directory)?;

    let mut tests = table([
        "program",
        "its own tests passed",
        "left out by it",
        "failed",
        "of these without us as well",
    ]);
    let mut figures = table([
        "program",
        "figure",
        "memcheck",
        "counted",
        "resized",
        "outside",
        "left unexplained",
    ]);
    let mut outside = table([
        "program",
        "asked for by",
        "blocks",
        "bytes",
        "bytes never freed",
    ]);
    let mut unexplained = Vec::new();
    for program in [RIPGREP, FD, JAQ] {
        if arguments
            .only
            .as_ref()
            .is_some_and(|only| only != program.package)
        {
            continue;
        }
        let counted = copy(&program, Form::Counted)?;
        let name = format!("{} {}", program.package, program.version);
        if !arguments.no_tests {
            eprintln!("{name}: its own tests");
            let tested = counted.test()?;
            let plain = if tested.failed.is_empty() {
                Tested::default()
            } else {
                copy(&program, Form::Published)?.test()?
            };
            let (known, new): (Vec<_>, Vec<_>) = tested
                .failed
                .iter()
                .partition(|failed| plain.failed.contains(failed));
            for failed in &new {
                unexplained.push(format!("{name}: {failed} fails with us only"));
            }
            tests.add_row([
                name.clone(),
                tested.passed.to_string(),
                tested.ignored.to_string(),
                tested.failed.len().to_string(),
                known.len().to_string(),
            ]);
        }
        let executable = counted.build()?;
        for work in WORK
            .iter()
            .filter(|work| work.program.package == program.package)
        {
            eprintln!("{name}: at work under valgrind, {}", work.name);
            let (lines, by_function) = run(work, &executable, &text, &directory)?;
            let run = format!("{name}, {}", work.name);
            for line in &lines {
                figures.add_row(row(&run, line));
                if line.difference() != 0 {
                    unexplained.push(format!("{run}: {} {}", line.difference(), line.figure));
                }
            }
            for (function, blocks) in &by_function {
                outside.add_row([
                    run.clone(),
                    format!("`{function}`"),
                    blocks.allocated.to_string(),
                    blocks.bytes.to_string(),
                    blocks.live_bytes.to_string(),
                ]);
            }
        }
    }
    right_align(&mut tests, 1);
    right_align(&mut figures, 2);
    right_align(&mut outside, 2);
    let mut page = String::new();
    if !arguments.no_tests {
        page = format!("{tests}\n\n");
    }
    page += &format!(
        "{figures}\n\nThe blocks outside:\n\n{outside}\n\n{}.",
        versions()?
    );
    println!("{page}");
    if let Some(path) = &arguments.markdown {
        report::write_markdown(path, "real-programs", &page)?;
    }
    ensure!(
        unexplained.is_empty(),
        "unexplained: {}",
        unexplained.join("; ")
    );
    Ok(())
}

fn copy(program: &Program, form: Form) -> anyhow::Result<Copy> {
    let more = match form {
        Form::Published => "",
        Form::Counted => AT_EXIT,
    };
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Stacks are made of symbols.
    Ok(program.copy(directory, form, more)?.with_symbols())
}

/// Copies the text to work on to a directory of its own, so that a name's length is the same on every machine.
fn text(directory: &Path) -> anyhow::Result<PathBuf> {
    #[derive(Serialize)]
    struct TextLine<'a> {
        file: &'a str,
        number: usize,
        text: &'a str,
    }
    let root = directory.join("text");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let mut json = String::new();
    let mut left: Vec<String> = TEXT.map(String::from).into();
    while let Some(name) = left.pop() {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&name);
        let to = root.join(&name);
        if from.is_dir() {
            fs::create_dir_all(to)?;
            for entry in fs::read_dir(from)? {
                let inner = entry?.file_name();
                left.push(format!(
                    "{name}/{}",
                    inner.to_str().context("a name in Unicode")?
                ));
            }
            // In the same order everywhere.
            left.sort();
        } else {
            let content = fs::read_to_string(&from)?;
            let file = &*name;
            // Enough for a million blocks.
            let lines = content.lines().filter(|_| file.starts_with("src/"));
            for (number, text) in lines.enumerate() {
                json += &serde_json::to_string(&TextLine { file, number, text })?;
                json.push('\n');
            }
            fs::write(to, content)?;
        }
    }
    fs::write(root.join("lines.json"), json)?;
    Ok(root)
}

/// Runs a program under memcheck. Returns its figures beside memcheck's, and who asked for the blocks that are not
/// ours.
fn run(
    work: &Work,
    executable: &Path,
    text: &Path,
    directory: &Path,
) -> anyhow::Result<([Line; 4], BTreeMap<String, Blocks>)> {
    let [log, stacks, account] = ["log", "stacks.kcg", "account"].map(|name| directory.join(name));
    let mut last = None;
    for _ in 0..TRIES {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args([
                "--tool=memcheck",
                "--leak-check=no",
                "--undef-value-errors=no",
                "--run-libc-freeres=no",
                "--run-cxx-freeres=no",
                "--trace-malloc=yes",
                "--num-callers=40",
                "--xtree-memory=full",
            ])
            .arg(format!("--log-file={}", log.display()))
            .arg(format!("--xtree-memory-file={}", stacks.display()))
            .arg(executable)
            .args(work.arguments)
            // Programs copy their environment.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").context("a PATH")?)
            .env("HOME", ".")
            .env("TALLY_ALLOC_ACCOUNT", &account)
            .current_dir(text)
            .stdout(Stdio::piped());
        match work.input {
            Some(input) => valgrind.stdin(File::open(text.join(input))?),
            None => valgrind.stdin(Stdio::null()),
        };
        let output = valgrind.output()?;
        ensure!(output.status.success(), "{valgrind:?} failed");
        ensure!(!output.stdout.is_empty(), "{valgrind:?} found nothing");
        let stacks = Stacks::of(&fs::read_to_string(&stacks)?)?;
        let account = Account::of(&fs::read_to_string(&account)?)?;
        match memcheck::compare(&fs::read_to_string(&log)?, &stacks, account) {
            Ok(lines) => return Ok((lines, stacks.outside)),
            Err(torn) => last = Some(torn),
        }
    }
    Err(last.context("at least one try")?)
}

fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(header);
    table
}

fn right_align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn row(run: &str, line: &Line) -> [String; 7] {
    [
        run.to_owned(),
        line.figure.to_owned(),
        line.memcheck.to_string(),
        line.counted.to_string(),
        line.resized.to_string(),
        line.outside.to_string(),
        line.difference().to_string(),
    ]
}

fn versions() -> anyhow::Result<String> {
    let first_line = |program: &str| -> anyhow::Result<String> {
        let output = Command::new(program).arg("--version").output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(said.lines().next().unwrap_or("").to_owned())
    };
    Ok(format!(
        "{}; {}; {}; {}",
        first_line("rustc")?,
        first_line("valgrind")?,
        first_line("ldd")?,
        report::circumstances()
    ))
}
