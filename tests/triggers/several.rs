//! Several triggers on one account, each with its own limit, measure and cycles.

use tally_alloc::policy::EveryBytes;
use tally_alloc::{Measure, Trigger, heap};

use super::{KB, MB, NO_TIME, Step, live};
use crate::support::block::Block;
use crate::support::claims;

claims![
    a_soft_and_a_hard_limit_fire_each_at_its_own,
    bytes_and_blocks_fire_each_at_its_own,
    every_so_many_bytes_fires_though_nothing_stays_live,
    a_hundred_triggers_fire_each_at_its_own,
];

fn at(measure: Measure, first: usize) -> Trigger<'static, Step> {
    let policy = Step {
        first,
        step: 1 << 40,
    };
    Trigger::new(heap(), measure, policy).expect("memory")
}

fn a_soft_and_a_hard_limit_fire_each_at_its_own() {
    let start = live();
    let soft = at(Measure::LiveBytes, start + MB);
    let hard = at(Measure::LiveBytes, start + 2 * MB);
    let first = Block::new(MB + KB);
    assert_eq!((soft.poll(), hard.poll()), (true, false));
    let second = Block::new(MB);
    assert_eq!((soft.poll(), hard.poll()), (false, true));
    drop((first, second));
}

fn bytes_and_blocks_fire_each_at_its_own() {
    let mut held = Vec::with_capacity(20_000);
    let start = live();
    let blocks = heap().totals().live_blocks();
    let bytes = at(Measure::LiveBytes, start + MB);
    let slots = at(Measure::LiveBlocks, blocks + 5_000);
    let mut at_fire = None;
    for n in 1..=20_000 {
        held.push(Block::new(16));
        if slots.poll() {
            at_fire = Some(n);
            break;
        }
        assert!(!bytes.poll(), "{} of {MB} bytes", 16 * n);
    }
    let at_fire = at_fire.expect("it fires");
    // This thread publishes when a sixteenth of its threshold is pending in blocks.
    let late = heap().threshold() / 16;
    assert!(
        (5_000..=5_000 + late).contains(&at_fire),
        "fired at {at_fire} of 5,000 blocks"
    );
    let large = Block::new(MB);
    assert_eq!((bytes.poll(), slots.poll()), (true, false));
    drop((held, large));
}

fn every_so_many_bytes_fires_though_nothing_stays_live() {
    let policy = EveryBytes::new(MB).expect("a valid policy");
    let trigger = Trigger::new(heap(), Measure::AllocatedBytes, policy).expect("memory");
    let beside = at(Measure::LiveBytes, live() + MB);
    for _ in 0..20 * MB / KB {
        drop(Block::new(KB));
        if trigger.poll() {
            trigger.collected(NO_TIME);
        }
        assert!(!beside.poll(), "a kilobyte is live: {beside:?}");
    }
    let cycles = trigger.report().cycles;
    assert!((19..=20).contains(&cycles), "{cycles} cycles in 20 MB");
}

/// More than the account has room for without asking the system.
fn a_hundred_triggers_fire_each_at_its_own() {
    let mut held = Vec::with_capacity(100);
    let mut triggers = Vec::with_capacity(100);
    let start = live();
    triggers.extend((1..=100).map(|n| at(Measure::LiveBytes, start + n * 20 * KB)));
    for n in 0..100 {
        let due = triggers.iter().filter(|trigger| trigger.poll()).count();
        assert_eq!(due, usize::from(n != 0), "after {n} blocks of 20 KiB");
        held.push(Block::new(20 * KB));
    }
}
