//! What a thread does with its life: blocks, readings, scopes, triggers, forks.

use std::cell::RefCell;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use fastrand::Rng;
use tally_alloc::{Totals, heap};

use crate::block::Block;
use crate::fork::in_a_fork;
use crate::world::{World, note, size, threshold};

/// Blocks that a thread holds at the most.
const MOST: usize = 64;

thread_local! {
    /// Freed by the thread-local destructor, after everything else that the thread does.
    static LATE: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Frees what the thread-local destructor would.
pub(crate) fn drop_late() {
    LATE.with_borrow_mut(|late| *late = Vec::new());
}

pub(crate) struct Life<'a> {
    world: &'a World,
    numbers: Rng,
    held: Vec<Block>,
}

impl<'a> Life<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self {
            world,
            numbers: world.numbers(),
            held: Vec::new(),
        }
    }

    /// Takes so many steps, and rests in between when all do.
    pub(crate) fn live(mut self, steps: usize) {
        for _ in 0..steps {
            if self.world.is_ending() {
                break;
            }
            let held = &mut self.held;
            self.world.rest(|| {
                *held = Vec::new();
                drop_late();
            });
            self.step();
        }
    }

    /// Takes so many steps without a rest.
    pub(crate) fn rush(mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.numbers.u32(0..10_000) {
            0..7_000 => self.operate(),
            7_000..8_000 => self.hand_over(),
            8_000..9_000 => self.charge(),
            9_000..9_600 => self.poll(),
            9_600..9_800 => read(self.world),
            9_800..9_900 => self.scope(),
            9_900..9_930 => self.set_threshold(),
            9_930..9_960 => heap().flush(),
            9_960..9_980 => self.leave_late(),
            9_980..9_990 => self.wait(),
            9_990..9_996 => self.exchange(),
            _ => fork(self.world),
        }
    }

    fn operate(&mut self) {
        let size = size(&mut self.numbers);
        note(&self.world.figures.operations, 1);
        match self.numbers.u32(0..10) {
            0..3 if self.held.len() < MOST => self.held.push(Block::new(size)),
            3 if self.held.len() < MOST => self.held.push(Block::zeroed(size)),
            4 if self.held.len() < MOST => {
                let align = 1 << self.numbers.u32(0..13);
                self.held.push(Block::aligned(size, align).expect("memory"));
            }
            5 | 6 if !self.held.is_empty() => {
                let place = self.numbers.usize(0..self.held.len());
                assert!(self.held[place].resize(size), "no memory for {size} bytes");
            }
            _ if !self.held.is_empty() => {
                let place = self.numbers.usize(0..self.held.len());
                drop(self.held.swap_remove(place));
            }
            _ => (),
        }
    }

    /// Sends a block to whoever will take it, or takes one.
    fn hand_over(&mut self) {
        let (sender, receiver) = &self.world.blocks;
        if self.numbers.bool() {
            if let Some(block) = self.held.pop() {
                match sender.try_send(block) {
                    Ok(()) => note(&self.world.figures.handed_over, 1),
                    Err(returned) => drop(returned.into_inner()),
                }
            }
        } else if let Ok(block) = receiver.try_recv()
            && self.numbers.bool()
            && self.held.len() < MOST
        {
            self.held.push(block);
        }
    }

    fn charge(&mut self) {
        let (size, choice) = (size(&mut self.numbers), self.numbers.usize(0..1 << 20));
        self.world.batched.charge(size, choice);
        self.world.exact.charge(size, choice);
        note(&self.world.figures.charges, 2);
    }

    fn poll(&mut self) {
        if let Some(watching) = self.world.watchings.any(&mut self.numbers)
            && watching.poll(|| self.held.clear())
        {
            note(&self.world.figures.fires, 1);
        }
    }

    fn wait(&mut self) {
        let most = Duration::from_micros(self.numbers.u64(0..5_000));
        if let Some(watching) = self.world.watchings.any(&mut self.numbers) {
            note(&self.world.figures.waits, 1);
            if watching.wait(most, || self.held.clear()) {
                note(&self.world.figures.fires, 1);
            }
        }
    }

    fn exchange(&mut self) {
        self.world.watchings.exchange(&mut self.numbers);
        note(&self.world.figures.triggers, 1);
    }

    fn set_threshold(&mut self) {
        heap()
            .set_threshold(threshold(&mut self.numbers))
            .expect("a valid threshold");
        note(&self.world.figures.thresholds, 1);
    }

    /// Keeps a block for the thread-local destructor; past it there is nothing to keep.
    fn leave_late(&mut self) {
        let block = Block::new(size(&mut self.numbers));
        LATE.with_borrow_mut(|late| {
            if late.len() < MOST {
                late.push(block);
            }
        });
    }

    fn scope(&mut self) {
        let scope = heap().scope();
        let before = heap().thread_totals();
        let mut highest = 0;
        for _ in 0..self.numbers.u32(1..20) {
            self.operate();
            highest = highest.max(heap().live_bytes());
        }
        let (own, all) = (scope.thread_totals(), scope.totals());
        assert_eq!(own, heap().thread_totals() - before, "a scope's own totals");
        assert_not_before(&all, &own);
        let peak = scope.peak_bytes();
        assert!(
            peak >= highest,
            "a scope's peak is {peak}, and {highest} was live in it"
        );
        note(&self.world.figures.scopes, 1);
    }
}

/// Reads what only grows, after others have, and what is published.
pub(crate) fn read(world: &World) {
    let latest = || world.latest.lock().expect("a panic ends the process");
    let seen = *latest();
    let now = heap().totals();
    assert_not_before(&now, &seen);
    assert!(
        now.net_bytes() >= 0 && now.net_blocks() >= 0,
        "below zero: {now:?}"
    );
    let mut latest = latest();
    let highest = |a: &mut usize, b: usize| *a = (*a).max(b);
    highest(&mut latest.bytes_allocated, now.bytes_allocated);
    highest(&mut latest.bytes_deallocated, now.bytes_deallocated);
    highest(&mut latest.allocations, now.allocations);
    highest(&mut latest.deallocations, now.deallocations);
    highest(&mut latest.reallocations, now.reallocations);
    drop(latest);
    let live = heap().live_bytes();
    let peak = heap().peak_bytes();
    assert!(peak >= live, "the peak is {peak} and {live} bytes are live");
    world.highest.fetch_max(live, SeqCst);
    note(&world.figures.readings, 1);
}

/// Forks, and reads in the child, where what other threads were in the middle of is for ever half done: nothing may have
/// gone back, and what the thread itself has done is as it was.
fn fork(world: &World) {
    let (before, own) = (heap().totals(), heap().thread_totals());
    let status = in_a_fork(|| {
        assert_not_before(&heap().totals(), &before);
        assert_eq!(heap().thread_totals(), own, "the child's own totals");
        assert!(
            heap().peak_bytes() >= heap().live_bytes(),
            "the child's peak"
        );
    });
    assert_eq!(status, 0, "the wait status of a child");
    note(&world.figures.forks, 1);
}

fn assert_not_before(now: &Totals, last: &Totals) {
    let back = now.bytes_allocated < last.bytes_allocated
        || now.bytes_deallocated < last.bytes_deallocated
        || now.allocations < last.allocations
        || now.deallocations < last.deallocations
        || now.reallocations < last.reallocations;
    assert!(!back, "{now:?} is read after {last:?}");
}
