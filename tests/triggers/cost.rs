//! What a trigger costs that is armed and not due, in instructions.
//!
//! Where valgrind is present, this program runs itself under callgrind with two counts of operations; the
//! difference is the operations' own. In release: `cargo test --release --test trigger_batched -- cost`.

use std::hint::black_box;
use std::process::{Command, Stdio};

use tally_alloc::{Measure, Trigger, heap};

use super::{Step, live};
use crate::EXACT;
use crate::support::block::Block;
use crate::support::claims;

claims![
    an_armed_trigger_adds_no_instruction_to_a_pair,
    a_poll_that_is_not_due_is_a_handful_of_instructions,
];

/// What the program does under callgrind, and how often: `pair`, `armed` or `poll`.
const WORK: &str = "TALLY_ALLOC_COST";

fn armed() -> Trigger<'static, Step> {
    let policy = Step {
        first: live() + (1 << 30),
        step: 1 << 30,
    };
    Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory")
}

/// Does the work if this process is to; returns whether it was.
fn work() -> bool {
    let Ok(work) = std::env::var(WORK) else {
        return false;
    };
    let (what, times) = work.split_once(' ').expect("a name and a count");
    let times: usize = times.parse().expect("a count");
    match what {
        "poll" => {
            let trigger = armed();
            for _ in 0..times {
                assert!(!black_box(&trigger).poll());
            }
        }
        "armed" => {
            let trigger = armed();
            pairs(times);
            drop(trigger);
        }
        _ => pairs(times),
    }
    true
}

fn pairs(times: usize) {
    for _ in 0..times {
        drop(Block::new(64));
    }
}

/// Returns the instructions of one operation; `None` where there is no valgrind.
fn instructions(claim: &str, what: &str) -> Option<f64> {
    const TIMES: usize = 100_000;
    let [once, twice] = [1, 2].map(|n| {
        let child = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().expect("a path to this program"))
            .env("TALLY_ALLOC_CLAIM", claim)
            .env(WORK, format!("{what} {}", n * TIMES))
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&child.stderr).into_owned();
        assert!(child.status.success(), "under valgrind: {text}");
        let (_, count) = text.split_once("Collected : ").expect("a count");
        count.split_whitespace().next()?.parse::<f64>().ok()
    });
    Some((twice? - once?) / TIMES as f64)
}

fn an_armed_trigger_adds_no_instruction_to_a_pair() {
    if work() {
        return;
    }
    let claim = concat!(
        module_path!(),
        "::an_armed_trigger_adds_no_instruction_to_a_pair"
    );
    let (Some(without), Some(with)) = (instructions(claim, "pair"), instructions(claim, "armed"))
    else {
        println!("skipped: no valgrind here");
        return;
    };
    assert!(
        (with - without).abs() < 0.5,
        "{with} instructions a pair with a trigger, {without} without"
    );
    println!("{with} instructions a pair with a trigger, {without} without (exact: {EXACT})");
}

fn a_poll_that_is_not_due_is_a_handful_of_instructions() {
    if work() {
        return;
    }
    let claim = concat!(
        module_path!(),
        "::a_poll_that_is_not_due_is_a_handful_of_instructions"
    );
    let Some(poll) = instructions(claim, "poll") else {
        println!("skipped: no valgrind here");
        return;
    };
    // The loop around it included; without optimisation, the calls that it is made of as well.
    let most = if cfg!(debug_assertions) { 400.0 } else { 10.0 };
    assert!(poll <= most, "{poll} instructions a poll");
    println!("{poll} instructions a poll, with the loop around it");
}
