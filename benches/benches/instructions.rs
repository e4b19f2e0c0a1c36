//! Instructions that counting adds to an operation, counted by callgrind: a figure without noise.
//!
//! `cargo bench -p tally-alloc-bench --bench instructions -- --check`
//!
//! Each loop is run twice under valgrind, with two numbers of repetitions; the difference, divided by the
//! difference of the repetitions, is the cost of one, free of what starting a process costs. What the same
//! loop costs over the bare system allocator is taken off.

#![allow(clippy::print_stdout, reason = "a command that prints a table")]

use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use clap::{Parser, ValueEnum as _};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use tally_alloc_bench::child::{Form, Operation};

/// Instructions that may be added to a malloc and free of 64 bytes, in batches.
const BAR: f64 = 20.0;

const FEW: u64 = 10_000;
const MANY: u64 = 110_000;

/// Counts the instructions that each way of counting adds to an operation.
#[derive(Debug, Parser)]
#[command(name = "instructions")]
struct Arguments {
    /// Fails if batches add more than 20 instructions to a malloc and free.
    #[arg(long)]
    check: bool,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

const SYSTEM: &str = env!("CARGO_BIN_EXE_peer-system");

const COUNTING: [(&str, &str); 3] = [
    ("batched", env!("CARGO_BIN_EXE_peer-batched")),
    ("exact", env!("CARGO_BIN_EXE_peer-exact")),
    ("one atomic", env!("CARGO_BIN_EXE_peer-one-atomic")),
];

const LOOPS: [(&str, Operation, Form); 5] = [
    (
        "malloc + free of 64 B, inlined",
        Operation::Pair,
        Form::Inlined,
    ),
    (
        "malloc + free of 64 B, called",
        Operation::Pair,
        Form::Called,
    ),
    ("realloc, inlined", Operation::Realloc, Form::Inlined),
    ("realloc, called", Operation::Realloc, Form::Called),
    ("reading the live bytes", Operation::Read, Form::Inlined),
];

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if Command::new("valgrind").arg("--version").output().is_err() {
        ensure!(!arguments.check, "valgrind is needed to check the bar");
        println!("skipped: valgrind is not installed");
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    let mut header = vec!["instructions added to".to_owned(), "of (system)".to_owned()];
    header.extend(COUNTING.map(|(name, _)| name.to_owned()));
    table.set_header(header);
    let mut over = Vec::new();
    for (name, operation, form) in LOOPS {
        let bare = cost(SYSTEM, operation, form)?;
        let mut row = vec![name.to_owned(), format!("{bare:.1}")];
        for (way, program) in COUNTING {
            let added = cost(program, operation, form)? - bare;
            row.push(format!("{added:.1}"));
            if way == "batched" && operation == Operation::Pair && added > BAR {
                over.push(format!("{name}: {added:.1}"));
            }
        }
        table.add_row(row);
    }
    println!("{table}");
    if arguments.check && !over.is_empty() {
        bail!("more than {BAR} instructions added: {}", over.join(", "));
    }
    Ok(())
}

/// Returns the instructions of one repetition.
fn cost(program: &str, operation: Operation, form: Form) -> anyhow::Result<f64> {
    let few = instructions(program, operation, form, FEW)?;
    let many = instructions(program, operation, form, MANY)?;
    Ok((many as f64 - few as f64) / (MANY - FEW) as f64)
}

fn instructions(
    program: &str,
    operation: Operation,
    form: Form,
    times: u64,
) -> anyhow::Result<u64> {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value
            .map(|value| value.get_name().to_owned())
            .context("a value with a name")
    };
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            program,
            "count",
        ])
        .arg(name(operation.to_possible_value())?)
        .arg(name(form.to_possible_value())?)
        .arg(times.to_string())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{program} failed under valgrind: {said}"
    );
    said.lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
        .context("valgrind prints what it collected")
}
