//! QuickJS under a trigger: its own program, since the allocator counts everything in it.
#![allow(missing_docs, reason = "a program of its own")]

use tally_alloc::policy::{FixedLimit, Increment, Proportional, SquareRoot};
use tally_alloc::{TallyAlloc, heap};
use tally_alloc_replay::engine::{self, Work};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

const WORK: Work = Work {
    deliveries: 600,
    ..Work::FULL
};
const MIN: usize = 2 << 20;

fn main() {
    // The first run loads what stays (the engine's class names, the test's own buffers).
    let run = |name: &str, outcome: Result<_, Box<dyn std::error::Error>>| {
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let warm = run("warm up", engine::run(FixedLimit::new(MIN).unwrap(), WORK));
    drop(warm);

    let start = heap().totals();
    let outcome = run(
        "proportional",
        engine::run(Proportional::new(1.0, MIN..=usize::MAX).unwrap(), WORK),
    );
    assert!(
        outcome.collections >= 5,
        "{} collections while the heap doubled again and again",
        outcome.collections
    );
    assert!(
        outcome.peak_resident < 2 * outcome.live + MIN,
        "{} bytes at the peak, {} live at the end",
        outcome.peak_resident,
        outcome.live
    );
    drop(outcome);
    let end = heap().totals();
    assert_eq!(
        (end.live_bytes(), end.live_blocks()),
        (start.live_bytes(), start.live_blocks()),
        "an engine that has ended leaves nothing"
    );

    let none = run(
        "no limit",
        engine::run(FixedLimit::new(1 << 40).unwrap(), WORK),
    );
    assert_eq!(
        none.collections, 0,
        "with the engine's own threshold switched off only the trigger collects"
    );

    let steps = run(
        "increment",
        engine::run(Increment::new(MIN, 1 << 19).unwrap(), WORK),
    );
    assert!(
        steps.growth_steps > 3,
        "{} growth steps",
        steps.growth_steps
    );
    assert!(
        steps.collections > 8,
        "{} collections in steps of half a mebibyte",
        steps.collections
    );
    assert!(
        steps.peak_resident < none.peak_resident / 2,
        "{} bytes at the peak, {} when nothing was collected",
        steps.peak_resident,
        none.peak_resident
    );

    let square_root = run(
        "square root",
        engine::run(SquareRoot::new(1e-9, MIN..=usize::MAX).unwrap(), WORK),
    );
    assert!(square_root.collections > 0);
    println!("ok: a trigger decides when QuickJS collects");
}
