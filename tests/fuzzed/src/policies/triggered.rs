//! A policy behind a trigger, with amounts that it has not chosen.

use arbitrary::Arbitrary;
use tally_alloc::policy::Policy;
use tally_alloc::{Announcement, Counter, Exact, Measure, Trigger};

use crate::figures::{Amount, Time};

/// What the trigger goes through.
#[derive(Arbitrary, Debug)]
pub(super) struct Input {
    measure: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Add(Amount),
    Sub,
    Announce(Amount),
    Collected(Time),
}

/// Bytes that may be live, more than any process has.
const MOST: usize = usize::MAX / 4 * 3;

pub(super) fn run(input: &Input, policy: impl Policy) {
    let measure = [
        Measure::LiveBytes,
        Measure::LiveBlocks,
        Measure::AllocatedBytes,
    ][usize::from(input.measure % 3)];
    let counter = Counter::<Exact>::with_mode();
    let trigger = Trigger::new(&counter, measure, policy).expect("memory");
    let mut live: Vec<usize> = Vec::new();
    let mut bytes = 0_usize;
    let mut since = 0_usize;
    let mut cycles = 0;
    let mut taken = false;
    for step in &input.steps {
        match *step {
            Step::Add(amount) => {
                let amount = amount.get();
                let Some(sum) = bytes.checked_add(amount).filter(|&sum| sum <= MOST) else {
                    continue;
                };
                bytes = sum;
                since = since.saturating_add(amount);
                live.push(amount);
                counter.add(amount);
            }
            Step::Sub => {
                if let Some(amount) = live.pop() {
                    bytes -= amount;
                    counter.sub(amount);
                }
            }
            Step::Announce(amount) => {
                let amount = amount.get();
                let figure = figure(measure, bytes, live.len(), since);
                let fits = figure.saturating_add(amount) < trigger.limit();
                let answer = trigger.announce(amount);
                assert_eq!(
                    answer == Announcement::Fits,
                    fits,
                    "{answer:?}, {amount}: {trigger:?}"
                );
            }
            Step::Collected(pause) => {
                trigger.collected(pause.get());
                cycles += 1;
                since = 0;
                taken = false;
                let figure = figure(measure, bytes, live.len(), since);
                assert!(trigger.limit() > figure, "no limit was left: {trigger:?}");
            }
        }
        if since > MOST {
            // More passed since the last collection than a figure of bytes allocated can say.
            return;
        }
        let reached = figure(measure, bytes, live.len(), since) >= trigger.limit();
        let due = trigger.poll();
        assert!(
            due || taken || !reached,
            "reached, and not due: {trigger:?}"
        );
        taken |= due;
        let report = trigger.report();
        assert_eq!(report.cycles, cycles);
        assert!(
            (0.0..=1.0).contains(&report.collecting_share()),
            "{report:?}"
        );
        assert!(report.allocation_rate() >= 0.0, "{report:?}");
        assert!(!format!("{report} {report:#} {trigger:?}").is_empty());
        if due {
            let cause = report.cause.expect("it fired");
            assert!(cause.figure >= cause.limit, "{report:?}");
        }
    }
}

fn figure(measure: Measure, bytes: usize, blocks: usize, since: usize) -> usize {
    match measure {
        Measure::LiveBytes => bytes,
        Measure::LiveBlocks => blocks,
        _ => since,
    }
}
