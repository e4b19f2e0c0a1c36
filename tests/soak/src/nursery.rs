//! Threads that start threads, of the standard library's and of pthread's, and wait for their end.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;

use crate::counters;
use crate::life::{self, Life};
use crate::pthread::{ROOMY, on_pthreads};
use crate::world::{World, note};

/// Threads that are started at once at the most.
const BROOD: usize = 6;

/// Starts a thread that does `act` and owns a place at the gate.
pub(crate) fn start(world: &'static World, act: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    world.gate.come();
    world.born(1);
    note(&world.figures.threads, 1);
    thread::spawn(act)
}

/// Those of a brood that are about to end. Nothing here allocates after the start: whoever waits has no place.
struct Leaving {
    threads: Mutex<Vec<usize>>,
    told: Condvar,
}

impl Leaving {
    fn new() -> Self {
        Self {
            threads: Mutex::new(Vec::with_capacity(BROOD)),
            told: Condvar::new(),
        }
    }

    fn tell(&self, thread: usize) {
        let mut threads = self.threads.lock().expect("a panic ends the process");
        threads.push(thread);
        self.told.notify_one();
    }

    fn wait(&self) -> usize {
        let threads = self.threads.lock().expect("a panic ends the process");
        let mut threads = self
            .told
            .wait_while(threads, |threads| threads.is_empty())
            .expect("a panic ends the process");
        threads.pop().expect("not empty")
    }
}

/// Starts and joins threads until the end.
pub(crate) fn run(world: &'static World) {
    let mut numbers = world.numbers();
    while !world.is_ending() {
        world.rest(|| ());
        match numbers.u32(0..16) {
            0..8 => brood(world, &mut numbers),
            8..12 => foreign(world, &mut numbers),
            12..15 => counters::come_and_go(world, &mut numbers),
            _ => {
                Life::new(world).live(numbers.usize(1..2_000));
                // While it waits for others it must not hold a thing.
                life::drop_late();
            }
        }
    }
}

fn brood(world: &'static World, numbers: &mut Rng) {
    let leaving = Arc::new(Leaving::new());
    let mut children: Vec<_> = (0..numbers.usize(1..=BROOD))
        .map(|index| {
            // Most are gone soon; some live through a few stops.
            let steps = 1 << numbers.u32(0..15);
            let leaving = Arc::clone(&leaving);
            Some(start(world, move || {
                Life::new(world).live(steps);
                leaving.tell(index);
            }))
        })
        .collect();
    for _ in 0..children.len() {
        // Others may rest while we wait. From the moment that one is leaving, its place is ours.
        world.gate.leave();
        let child = children[leaving.wait()].take().expect("each leaves once");
        child.join().expect("a panic ends the process");
        world.buried(1);
    }
}

fn foreign(world: &World, numbers: &mut Rng) {
    let threads = numbers.usize(1..=BROOD);
    let steps = 1 << numbers.u32(0..8);
    world.born(threads);
    on_pthreads(threads, ROOMY, &|_| Life::new(world).rush(steps));
    world.buried(threads);
    note(&world.figures.foreign_threads, threads);
}

/// Reads until the end, and leaves the processor to the others most of the time.
pub(crate) fn reader(world: &World) {
    while !world.is_ending() {
        world.rest(|| ());
        for _ in 0..100 {
            life::read(world);
        }
        thread::sleep(Duration::from_micros(500));
    }
}
