//! Instructions that one repetition of a loop takes, counted by callgrind: a figure without noise.
//!
//! A program is run twice under valgrind, with two numbers of repetitions; the difference, divided by the
//! difference of the repetitions, is the cost of one, free of what starting a process costs.

use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::ValueEnum as _;

use crate::child::{Form, Operation};

const FEW: u64 = 10_000;
const MANY: u64 = 110_000;

/// Returns whether valgrind can be run here.
#[must_use]
pub fn is_installed() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// Returns the instructions that one repetition takes in `program`, which is a [`child`](crate::child).
///
/// # Errors
///
/// When valgrind cannot be run, or the program fails under it.
pub fn cost(program: &str, operation: Operation, form: Form) -> anyhow::Result<f64> {
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
