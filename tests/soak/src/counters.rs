//! Counters that are made, charged by a few threads, watched by triggers, and dropped.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use fastrand::Rng;
use tally_alloc::policy::EveryBytes;
use tally_alloc::{Batched, Counter, Exact, Measure, Mode, Totals, Trigger};

use crate::watching::Watching;
use crate::world::{World, note, size, threshold};

/// How long a thread that must be woken may sleep on before that counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn come_and_go(world: &World, numbers: &mut Rng) {
    let outcome = if numbers.bool() {
        come_and_go_in::<Batched>(world, numbers)
    } else {
        come_and_go_in::<Exact>(world, numbers)
    };
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn come_and_go_in<M: Mode>(world: &World, numbers: &mut Rng) -> Result<()> {
    let counter = Counter::<M>::with_mode();
    counter.set_threshold(threshold(numbers))?;
    let work: Vec<Vec<usize>> = (0..numbers.usize(1..4))
        .map(|_| (0..numbers.usize(20..300)).map(|_| size(numbers)).collect())
        .collect();
    let (mut added, blocks) = (
        work.iter().flatten().sum::<usize>(),
        work.iter().flatten().count(),
    );
    let watching = Watching::new(&counter, 0, numbers);
    let half = EveryBytes::new(added / 2 + 1)?;
    let waited_for = Trigger::new(&counter, Measure::AllocatedBytes, half)?;
    let (live, taken) = (Mutex::new(Vec::new()), [const { AtomicUsize::new(0) }; 2]);
    let publish = counter.threshold();

    world.born(work.len() + 1);
    let woken = thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            // Once its time is over it looks for itself, so that would not show that nobody woke it.
            let woken = waited_for.wait_timeout(2 * PATIENCE);
            waited_for.collected(Duration::ZERO);
            woken
        });
        let (counter, watching, live, taken) = (&counter, &watching, &live, &taken);
        let adders = work.iter().map(|sizes| {
            scope.spawn(move || {
                for &size in sizes {
                    counter.add(size);
                    live.lock().expect("a panic ends the process").push(size);
                    watching.poll(|| {
                        let garbage = std::mem::take(&mut *live.lock().expect("no panic"));
                        for size in garbage {
                            counter.sub(size);
                            taken[0].fetch_add(size, SeqCst);
                            taken[1].fetch_add(1, SeqCst);
                        }
                    });
                }
            })
        });
        for adder in adders.collect::<Vec<_>>() {
            adder.join().expect("a panic ends the process");
        }
        // Published at once: by now half of all was, and the waiter is woken.
        let published = Instant::now();
        counter.add(publish);
        added += publish;
        waiter.join().expect("a panic ends the process") && published.elapsed() < PATIENCE
    });
    world.buried(work.len() + 1);
    ensure!(
        woken,
        "a crossing has not woken who waited for it: {waited_for:?}"
    );

    let mut truth = Totals::default();
    (truth.bytes_allocated, truth.allocations) = (added, blocks + 1);
    (truth.bytes_deallocated, truth.deallocations) = (taken[0].load(SeqCst), taken[1].load(SeqCst));
    let (totals, published, bound) = (
        counter.totals(),
        counter.live_bytes(),
        counter.error_bound(),
    );
    ensure!(
        totals == truth,
        "a counter says {totals:?}, the truth is {truth:?}"
    );
    ensure!(
        published.abs_diff(truth.live_bytes()) <= bound,
        "a counter published {published}, the truth is {}, the bound {bound} bytes",
        truth.live_bytes()
    );
    ensure!(counter.peak_bytes() >= published, "{counter:?}");
    watching.check(truth.live_bytes(), truth.live_blocks())?;
    note(
        &world.figures.operations,
        totals.allocations + totals.deallocations,
    );
    note(&world.figures.triggers, 2);
    note(&world.figures.waits, 1);
    note(&world.figures.fires, watching.fires() as usize + 1);
    note(&world.figures.counters, 1);
    note(&world.figures.threads, work.len() + 1);
    Ok(())
}
