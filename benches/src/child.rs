//! `Peer`: one allocator in a process of its own, and what that process does when it is asked.
//!
//! A process has one global allocator, so every peer is a program. All of them are this `main` around another
//! allocator (see [`peer!`](crate::peer)). They are started by the benches, not by hand:
//!
//! * `serve` reads lines of a size and a workload's name, and answers each with the nanoseconds of one run;
//! * `count` runs one of the loops of [`count`](crate::count), under valgrind;
//! * `probe` runs one of the [`probes`](crate::probes) and prints what it found as JSON.

use std::any::Any;
use std::collections::HashMap;
use std::io::{self, BufRead as _, Write as _};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand, ValueEnum};
use tally_alloc::{Batched, Counter, Exact};

use crate::count::{self, Called};
use crate::probes::Probe;
use crate::workload::{self, Size};

/// One allocator, as its program describes it.
#[derive(Debug)]
pub struct Peer {
    /// What has to live as long as the process for the peer to count at all.
    pub keep: fn() -> Box<dyn Any>,
    /// Reads the live bytes of the process; absent where the peer has no such figure.
    pub live: Option<fn() -> usize>,
    /// The loops of [`count`](crate::count) around the allocator itself, inlined.
    pub inlined: Loops,
}

/// The loops that are counted, compiled for one allocator.
#[derive(Clone, Copy, Debug)]
pub struct Loops {
    /// [`count::pairs`].
    pub pairs: fn(usize),
    /// [`count::reallocations`].
    pub reallocations: fn(usize),
    /// [`count::reads`] of the figure that a safepoint would poll.
    pub reads: fn(usize),
}

/// Makes a program of an allocator: the static, and a `main` that answers the benches.
#[macro_export]
macro_rules! peer {
    (
        $type:ty = $allocator:expr;
        keep: $keep:expr;
        live: $live:expr;
        read: $read:expr;
    ) => {
        #[global_allocator]
        static GLOBAL: $type = $allocator;

        fn main() -> $crate::anyhow::Result<()> {
            $crate::child::main(&$crate::child::Peer {
                keep: || Box::new($keep),
                live: $live,
                inlined: $crate::child::Loops {
                    pairs: |count| $crate::count::pairs(&GLOBAL, count),
                    reallocations: |count| $crate::count::reallocations(&GLOBAL, count),
                    reads: |count| $crate::count::reads($read, count),
                },
            })
        }
    };
}

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answers lines of a size and a workload's name with nanoseconds.
    Serve,
    /// Runs a loop.
    Count {
        operation: Operation,
        form: Form,
        times: usize,
    },
    /// Runs a probe.
    Probe { probe: Probe },
}

/// Which loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// 64 bytes allocated and freed.
    Pair,
    /// A byte less than the default threshold allocated and freed: each time around, one of the two has no room
    /// and looks.
    PairBelowThreshold,
    /// The default threshold allocated and freed: both are published.
    PairOfThreshold,
    /// A block grown from 64 bytes to 64 KiB by doubling, and freed.
    Growth,
    /// A block resized.
    Realloc,
    /// The figure read that a safepoint would poll.
    Read,
    /// 64 bytes charged to a counter and taken off again, whatever the allocator.
    Charge,
    /// The same, to one that counts exactly.
    ChargeExact,
}

/// Whether the compiler saw the allocator's methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// It did.
    Inlined,
    /// Each operation is a call.
    Called,
}

/// Runs the program of `peer`.
///
/// # Errors
///
/// When what it is asked makes no sense.
pub fn main(peer: &Peer) -> anyhow::Result<()> {
    let _keep = (peer.keep)();
    match Arguments::parse().command {
        Command::Serve => serve(),
        Command::Count {
            operation,
            form,
            times,
        } => {
            match (operation, form) {
                (Operation::Pair, Form::Inlined) => (peer.inlined.pairs)(times),
                (Operation::Pair, Form::Called) => count::pairs(&Called, times),
                (Operation::Realloc, Form::Inlined) => (peer.inlined.reallocations)(times),
                (Operation::Realloc, Form::Called) => count::reallocations(&Called, times),
                (Operation::Read, _) => (peer.inlined.reads)(times),
                // Slow paths are out of line in either form.
                (Operation::PairBelowThreshold, _) => count::pairs_of::<16_383>(&Called, times),
                (Operation::PairOfThreshold, _) => count::pairs_of::<16_384>(&Called, times),
                (Operation::Charge, _) => {
                    count::charges(&Counter::<Batched>::with_mode(), times);
                }
                (Operation::ChargeExact, _) => {
                    count::charges(&Counter::<Exact>::with_mode(), times);
                }
                (Operation::Growth, _) => count::growths(&Called, times),
            }
            Ok(())
        }
        Command::Probe { probe } => {
            let finding = probe.run(peer.live);
            serde_json::to_writer(io::stdout(), &finding)?;
            Ok(())
        }
    }
}

fn serve() -> anyhow::Result<()> {
    let mut workloads = HashMap::new();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (size, name) = line.split_once(' ').context("a size and a name")?;
        let size: Size = size.parse()?;
        if !workloads.contains_key(&line) {
            let list = workload::all(size);
            let Some(workload) = list.into_iter().find(|workload| workload.name() == name) else {
                bail!("no workload is called {name}");
            };
            // One at a time: what others have prepared would be in the way of this one's figures.
            workloads.clear();
            workloads.insert(line.clone(), workload);
        }
        writeln!(out, "{}", workloads[&line].run().as_nanos())?;
        out.flush()?;
    }
    Ok(())
}
