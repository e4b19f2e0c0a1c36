//! No early fire and no overshoot beyond the bound, over many crossings.

use std::sync::RwLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use tally_alloc::{Measure, Trigger, heap};

use super::{GLOBAL, KB, NO_TIME, Step, live, truth};
use crate::support::block::Block;
use crate::support::{Numbers, allow, claims};

claims![a_million_crossings_by_8_threads_have_no_early_fire_and_no_overshoot_beyond_the_bound];

/// Crossings unless told otherwise: a second at most.
const DEFAULT: usize = 5_000;

/// Bytes between two crossings, and the largest block.
const STEP: usize = 8 * KB;
const BLOCK: usize = 512;
const THREADS: usize = 8;

/// The truth is what reaches the allocator within. It sees an allocation before, and a free after, it is
/// counted, so its live bytes are never below the exact figure: had they not been at the limit since the
/// arming, the exact figure was not.
fn a_million_crossings_by_8_threads_have_no_early_fire_and_no_overshoot_beyond_the_bound() {
    let crossings = std::env::var("TALLY_ALLOC_CROSSINGS");
    let crossings = crossings.map_or(DEFAULT, |text| text.parse().expect("a number"));
    allow(u32::try_from(crossings.div_ceil(DEFAULT)).expect("fewer crossings"));
    let held = [(); THREADS].map(|()| Vec::with_capacity(KB));
    heap().set_threshold(256).expect("a valid threshold");
    let policy = Step {
        first: live() + STEP,
        step: STEP,
    };
    let trigger = Trigger::new(heap(), Measure::LiveBytes, policy).expect("memory");
    let (early, beyond, fired) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let most = AtomicUsize::new(0);
    // The collector stops the others, so that no limit is armed that is passed already.
    let world = RwLock::new(());
    thread::scope(|scope| {
        for (seed, mut held) in held.into_iter().enumerate() {
            let (trigger, early, beyond, fired, most) = (&trigger, &early, &beyond, &fired, &most);
            let world = &world;
            scope.spawn(move || {
                let mut numbers = Numbers::from(seed);
                while fired.load(Relaxed) < crossings {
                    let running = world.read().expect("no panic");
                    if numbers.within(0..4) == 0 || held.len() == held.capacity() {
                        held.pop();
                    } else {
                        held.push(Block::new(numbers.within(1..BLOCK + 1)));
                    }
                    let due = trigger.poll();
                    drop(running);
                    if due {
                        let _stopped = world.write().expect("no panic");
                        fired.fetch_add(1, Relaxed);
                        let cause = trigger.report().cause.expect("it fired");
                        if GLOBAL.inner().peak_bytes() < cause.limit || cause.figure < cause.limit {
                            early.fetch_add(1, Relaxed);
                        }
                        let above = cause.figure.saturating_sub(cause.limit);
                        most.fetch_max(above, Relaxed);
                        if above >= 2 * heap().error_bound() + THREADS * BLOCK {
                            beyond.fetch_add(1, Relaxed);
                        }
                        held.clear();
                        GLOBAL.inner().reset_peak();
                        trigger.collected(NO_TIME);
                    }
                }
            });
        }
    });
    let (early, beyond) = (early.into_inner(), beyond.into_inner());
    let (fired, most) = (fired.into_inner(), most.into_inner());
    assert!(fired >= crossings, "{fired} crossings");
    assert_eq!(
        (early, beyond),
        (0, 0),
        "early fires and overshoots beyond the bound, in {fired}; the highest was {most}"
    );
    assert_eq!(heap().totals().live_bytes(), truth().live_bytes());
    println!("{fired} crossings, at most {most} bytes above the limit");
}
