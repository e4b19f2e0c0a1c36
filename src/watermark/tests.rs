//! The states, one after another; the models have them at once.

use std::thread;

use super::{Armed, Crossing, Evidence, MOST_LIVE, Measure, Watermark};
use crate::sum::Sum;
use crate::totals::Totals;

const MEASURES: [Measure; 3] = [
    Measure::LiveBytes,
    Measure::LiveBlocks,
    Measure::AllocatedBytes,
];

/// As when other threads have freed blocks during the sum that they allocated after it had passed them.
#[test]
fn more_freed_during_a_sum_than_it_found_live_reaches_nothing() {
    let sum = sum_with_freed(2_001, 3);
    let mut armed = armed(Measure::LiveBytes, 0);
    assert_eq!(armed.reached(&sum), 0, "bytes");
    armed.measure = Measure::LiveBlocks;
    assert_eq!(armed.reached(&sum), 0, "blocks");
}

#[test]
fn what_was_freed_during_a_sum_does_not_count_as_reached() {
    let sum = sum_with_freed(600, 1);
    for (measure, reached) in MEASURES.into_iter().zip([1_400, 1, 2_500]) {
        assert_eq!(armed(measure, 500).reached(&sum), reached, "{measure:?}");
    }
}

/// More than half of the range, which a process can have live where pointers have 32 bits.
#[test]
fn a_figure_above_half_of_the_range_is_reached() {
    for live in [usize::MAX / 4 * 3, MOST_LIVE] {
        let sum = Sum {
            totals: Totals {
                bytes_allocated: live,
                allocations: live,
                ..Totals::default()
            },
            freed_bytes: 0,
            freed_blocks: 0,
        };
        for measure in MEASURES {
            assert_eq!(armed(measure, 0).reached(&sum), live, "{measure:?}");
        }
    }
}

/// 2,000 bytes and two blocks live.
fn sum_with_freed(freed_bytes: usize, freed_blocks: usize) -> Sum {
    Sum {
        totals: Totals {
            bytes_allocated: 3_000,
            bytes_deallocated: 1_000,
            allocations: 3,
            deallocations: 1,
            ..Totals::default()
        },
        freed_bytes,
        freed_blocks,
    }
}

fn armed(measure: Measure, base: usize) -> Armed {
    Armed {
        word: 0,
        measure,
        limit: 10,
        base,
    }
}

/// Whether it is armed, due, and taken by whoever tries.
fn state(mark: &Watermark) -> (bool, bool, bool) {
    (mark.armed().is_some(), mark.is_due(), mark.take().is_some())
}

const NOTHING: (bool, bool, bool) = (false, false, false);

#[test]
fn a_crossing_is_due_once_and_taken_once() {
    let mark = Watermark::new();
    assert_eq!(state(&mark), NOTHING, "fresh");
    for round in 1..4 {
        for (measure, evidence) in
            MEASURES
                .into_iter()
                .zip([Evidence::Published, Evidence::Sum, Evidence::Request])
        {
            mark.arm(measure, 100 * round, 7);
            assert_eq!(mark.limit(), 100 * round);
            let armed = mark.armed().expect("just armed");
            let seen = (armed.measure, armed.limit, armed.base);
            assert_eq!(seen, (measure, 100 * round, 7));
            assert_eq!(state(&mark), (true, false, false), "armed");

            assert!(mark.reach(armed, 101 * round, evidence), "made due");
            assert!(
                !mark.reach(armed, 999, Evidence::Published),
                "made due once"
            );
            assert!(mark.armed().is_none() && mark.is_due());
            let crossing = Crossing {
                limit: 100 * round,
                figure: 101 * round,
                evidence,
            };
            assert_eq!(mark.take(), Some(crossing), "by the first");
            assert_eq!(state(&mark), NOTHING, "taken");
        }
    }
}

#[test]
fn a_withdrawn_watermark_is_neither_armed_nor_due() {
    let mark = Watermark::new();
    for done in [false, true] {
        mark.arm(Measure::LiveBytes, 10, 0);
        mark.withdraw(done);
        assert_eq!(state(&mark), NOTHING, "from armed, done: {done}");

        mark.arm(Measure::LiveBytes, 10, 0);
        assert!(mark.reach(mark.armed().expect("just armed"), 10, Evidence::Sum));
        mark.withdraw(done);
        assert_eq!(state(&mark), NOTHING, "from due, done: {done}");
    }
}

#[test]
fn a_verdict_on_an_earlier_generation_changes_nothing() {
    let mark = Watermark::new();
    mark.arm(Measure::LiveBytes, 10, 0);
    let mut late = vec![mark.armed().expect("just armed")];
    for end in ["withdraw", "take", "take", "done", "take", "take"] {
        match end {
            "take" => {
                let armed = mark.armed().expect("armed before");
                assert!(mark.reach(armed, 10, Evidence::Sum) && mark.take().is_some());
            }
            _ => mark.withdraw(end == "done"),
        }
        mark.arm(Measure::LiveBytes, 10, 0);
        for &armed in &late {
            assert!(!mark.reach(armed, 77, Evidence::Sum), "after {end}");
        }
        assert!(!mark.is_due(), "after {end}");
        late.push(mark.armed().expect("just armed"));
    }
    let armed = mark.armed().expect("the last one");
    assert!(mark.reach(armed, 11, Evidence::Sum));
    let figure = mark.take().map(|crossing| crossing.figure);
    assert_eq!(figure, Some(11), "nor the figure");
}

#[test]
fn who_enters_is_told_whether_there_is_anything_to_sleep_for() {
    let mark = Watermark::new();
    for due in [false, true] {
        mark.arm(Measure::LiveBytes, 10, 0);
        if due {
            assert!(mark.reach(mark.armed().expect("just armed"), 10, Evidence::Sum));
        }
        assert_eq!(mark.enter(thread::current()), due);
        mark.leave();
        let nobody = format!("{:?}", Watermark::new().sleeper);
        assert_eq!(format!("{:?}", mark.sleeper), nobody, "left");
        mark.withdraw(false);
    }
}

#[test]
fn names_are_stable() {
    assert_eq!(
        MEASURES.map(Measure::name),
        ["live_bytes", "live_blocks", "allocated_bytes"]
    );
    assert_eq!(
        [Evidence::Published, Evidence::Sum, Evidence::Request].map(Evidence::name),
        ["published", "sum", "request"]
    );
}
