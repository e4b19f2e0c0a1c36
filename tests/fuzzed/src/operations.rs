//! Operations on several threads, one step at a time, beside plain numbers.
//!
//! Each step is one of four threads', and is waited for, so the order is the input's. It is done three times over: on
//! a counter in batches, on an exact one, and through [`TallyAlloc`](tally_alloc::TallyAlloc) over an allocator that only
//! pretends, so that the process's account has nothing else in it. After each step every figure is compared.

mod model;
mod subjects;
mod worker;

use std::sync::{Arc, Mutex, PoisonError};

use arbitrary::Arbitrary;

use crate::figures::Amount;
use model::Model;
use subjects::Subjects;
use worker::Worker;

/// An input.
#[derive(Arbitrary, Debug)]
pub struct Input {
    /// Limits of triggers, above what is live, and what each collection adds to them.
    limit: Amount,
    step: Amount,
    /// Whether the allocator counts exactly.
    exact: bool,
    turns: Vec<Turn>,
}

/// A step, and the thread that takes it.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Turn {
    thread: u8,
    /// Nobody looks after it: reading a figure can make up for what an operation has left undone.
    unseen: bool,
    step: Step,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Allocate(Amount),
    AllocateZeroed(Amount),
    Free(u8),
    Resize(u8, Amount),
    Refused(Amount),
    Flush,
    SetThreshold(Amount),
    /// The thread ends, and another takes over.
    End,
    ResetPeak,
    OpenScope,
    CloseScope,
    Poll,
}

/// A step with what the model knows: sizes, and whether it is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Allocate { size: usize, zeroed: bool },
    Free { size: usize },
    Resize { old: usize, new: usize },
    Refused { size: usize },
    Flush,
    SetThreshold { bytes: usize },
    ResetPeak,
    OpenScope,
    CloseScope,
    Nothing,
}

const THREADS: usize = 4;

/// What may be live: three triggers and counters of the same sizes keep well inside the range.
const MOST: usize = usize::MAX / 4 * 3;

/// The threads stay from one input to the next, since starting them takes longer than an input.
static THREADS_THERE_ARE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// Returns the size of a block: not nothing, and no more than a layout can say.
fn size(amount: Amount) -> usize {
    amount.get().clamp(1, isize::MAX as usize)
}

/// Takes the steps.
pub fn run(input: &Input) {
    // Whoever panicked in here has left a thread that is not to be used again, and ends the program anyway.
    let mut workers = THREADS_THERE_ARE
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    workers.resize_with(THREADS, Worker::start);
    let subjects = Arc::new(Subjects::new(input.exact));
    for worker in workers.iter() {
        worker.begin(Arc::clone(&subjects));
    }
    let own: Vec<_> = workers
        .iter()
        .map(|it| it.does(Act::Nothing, false).own[2])
        .collect();
    let own = own.try_into().expect("as many as there are threads");
    let mut model = Model::new(&subjects, input.limit.get(), input.step.get(), own);
    let mut sizes: Vec<usize> = Vec::new();
    let mut live = 0_usize;
    for turn in &input.turns {
        let thread = usize::from(turn.thread) % THREADS;
        let mut polled = false;
        let act = match turn.step {
            Step::Allocate(amount) | Step::AllocateZeroed(amount) => {
                let size = size(amount);
                let Some(sum) = live.checked_add(size).filter(|&sum| sum <= MOST) else {
                    continue;
                };
                live = sum;
                sizes.push(size);
                let zeroed = matches!(turn.step, Step::AllocateZeroed(_));
                Act::Allocate { size, zeroed }
            }
            Step::Free(_) | Step::Resize(..) if sizes.is_empty() => continue,
            Step::Free(index) => {
                let size = sizes.swap_remove(usize::from(index) % sizes.len());
                live -= size;
                Act::Free { size }
            }
            Step::Resize(index, amount) => {
                let place = usize::from(index) % sizes.len();
                let (old, new) = (sizes[place], size(amount));
                let Some(sum) = (live - old).checked_add(new).filter(|&sum| sum <= MOST) else {
                    continue;
                };
                live = sum;
                sizes[place] = new;
                Act::Resize { old, new }
            }
            Step::Refused(amount) => Act::Refused { size: amount.get() },
            Step::Flush => Act::Flush,
            Step::SetThreshold(amount) => Act::SetThreshold {
                bytes: amount.get(),
            },
            Step::End => {
                workers[thread].end();
                workers[thread] = Worker::start();
                workers[thread].begin(Arc::clone(&subjects));
                model.ended(thread);
                Act::Nothing
            }
            Step::ResetPeak => Act::ResetPeak,
            Step::OpenScope if model.scopes(thread) < worker::SCOPES => Act::OpenScope,
            Step::CloseScope if model.scopes(thread) > 0 => Act::CloseScope,
            Step::OpenScope | Step::CloseScope => continue,
            Step::Poll => {
                polled = true;
                Act::Nothing
            }
        };
        // What begins anew begins from what is seen.
        let look = !turn.unseen || matches!(act, Act::ResetPeak | Act::OpenScope);
        let answer = workers[thread].does(act, look);
        model.did(thread, act, look);
        if look {
            model.check(thread, act, &answer);
        }
        if polled {
            model.poll();
        }
    }
    // What is left goes, so that the next input begins with nothing in the process's account.
    for size in sizes {
        workers[0].does(Act::Free { size }, false);
    }
    drop(model);
    for worker in workers.iter() {
        worker.does(Act::Flush, false);
        worker.finish();
    }
}
