//! Instructions that counting adds to an operation, counted by callgrind: a figure without noise.
//!
//! `cargo bench -p tally-alloc-bench --bench instructions -- --check`
//!
//! How they are counted stands in [`callgrind`](tally_alloc_bench::callgrind). What the same loop costs over
//! the bare system allocator is taken off.

#![allow(clippy::print_stdout, reason = "a command that prints a table")]

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::Parser;
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use tally_alloc_bench::callgrind::{self, cost};
use tally_alloc_bench::child::{Form, Operation};
use tally_alloc_bench::report;

/// Instructions that may be added to a malloc and free of 64 bytes, in batches.
const BAR: f64 = 20.0;

/// Instructions that an `add` and a `sub` of a counter may take: what fits into 4 nanoseconds at two and a half
/// gigahertz and four instructions a cycle.
const COUNTER_BAR: f64 = 40.0;

/// Counts the instructions that each way of counting adds to an operation.
#[derive(Debug, Parser)]
#[command(name = "instructions")]
struct Arguments {
    /// Fails if batches add more than 20 instructions to a malloc and free, or a counter takes more than 40.
    #[arg(long)]
    check: bool,

    /// Puts the table into this file, between its lines `<!-- instructions:begin -->` and
    /// `<!-- instructions:end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

const SYSTEM: &str = env!("CARGO_BIN_EXE_peer-system");

const COUNTING: [(&str, &str); 4] = [
    ("batched", env!("CARGO_BIN_EXE_peer-batched")),
    ("exact", env!("CARGO_BIN_EXE_peer-exact")),
    ("one atomic", env!("CARGO_BIN_EXE_peer-one-atomic")),
    ("own word", env!("CARGO_BIN_EXE_peer-own-word")),
];

const LOOPS: [(&str, Operation, Form); 8] = [
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
    (
        "malloc + free of 16,383 B",
        Operation::PairBelowThreshold,
        Form::Called,
    ),
    (
        "malloc + free of 16,384 B",
        Operation::PairOfThreshold,
        Form::Called,
    ),
    ("growth to 64 KiB", Operation::Growth, Form::Called),
    ("reading the live bytes", Operation::Read, Form::Inlined),
];

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if !callgrind::is_installed() {
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
            // No minus before a zero.
            row.push(format!("{:.1}", (added * 10.0).round() / 10.0 + 0.0));
            if way == "batched" && operation == Operation::Pair && added > BAR {
                over.push(format!("{name}: {added:.1}"));
            }
        }
        table.add_row(row);
    }
    let of_counter = |operation| cost(SYSTEM, operation, Form::Inlined);
    let (batched, exact) = (
        of_counter(Operation::Charge)?,
        of_counter(Operation::ChargeExact)?,
    );
    table.add_row([
        "add + sub of a Counter, loop included".to_owned(),
        String::new(),
        format!("{batched:.1}"),
        format!("{exact:.1}"),
        String::new(),
        String::new(),
    ]);
    if batched > COUNTER_BAR {
        over.push(format!("add + sub of a Counter: {batched:.1}"));
    }
    println!("{table}");
    if let Some(path) = &arguments.markdown {
        let text = format!("{table}\n\n{}.", report::circumstances());
        report::write_markdown(path, "instructions", &text)?;
    }
    if arguments.check && !over.is_empty() {
        bail!("too many instructions: {}", over.join(", "));
    }
    Ok(())
}
