//! A soak: everything at once, at random, for as long as one likes, beside a reference that counts every call.
//!
//! `cargo run --release -p tally-alloc-soak`
//!
//! Threads are born and die, of the standard library's and of pthread's; blocks of all sizes are allocated, resized, freed
//! and handed to other threads; thresholds change; triggers are made, polled, waited for and dropped; scopes open
//! and close; counters are made, charged and dropped; the process forks. Every few seconds all come to a stop, and every
//! figure is held to the truth, to the byte. Readers hold what may only grow to that while everything runs.
//!
//! It ends with a summary, or with the first thing that does not hold and the exit code 1.

#![allow(unsafe_code, reason = "an allocator, pthreads and fork")]
#![allow(clippy::print_stdout, reason = "a command that prints what it checks")]

#[path = "../../support/block.rs"]
#[allow(dead_code, reason = "written for other programs as well")]
mod block;
#[path = "../../support/fork.rs"]
mod fork;
#[path = "../../support/oracle.rs"]
#[allow(dead_code, reason = "written for other programs as well")]
mod oracle;
#[path = "../../support/pthread.rs"]
#[allow(dead_code, reason = "written for other programs as well")]
mod pthread;

mod allocator;
mod charges;
mod counters;
mod gate;
mod life;
mod nursery;
mod stop;
mod watching;
mod world;

use std::panic;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use tally_alloc::heap;

use allocator::{Switch, TRUTH};
use stop::Residue;
use world::World;

#[global_allocator]
static GLOBAL: Switch = Switch::new();

/// Lets everything go on at once, at random, and checks every figure against a reference at each stop.
#[derive(Debug, Parser)]
#[command(name = "soak")]
struct Arguments {
    /// How long to go on.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800.0)]
    seconds: f64,

    /// Where the random numbers start. What the scheduler does is not in them.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Counts in exact mode.
    #[arg(long)]
    exact: bool,

    /// Time between two stops.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    every: f64,

    /// Threads that start and join others all the time.
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    nurseries: usize,
}

/// How long the threads may take to come to a stop before they are held to hang.
const PATIENCE: Duration = Duration::from_secs(180);

/// Threads that do nothing but read.
const READERS: usize = 2;

/// Of so many stops one is with nothing held.
const DRAINED: u64 = 3;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.exact {
        GLOBAL.count_exactly();
    }
    // The C library keeps what is free at the end of a thread's own arena, tens of megabytes by chance, which would hide
    // what we keep. What is free in the first one it gives back when it is told to.
    #[cfg(target_env = "gnu")]
    // SAFETY: takes any number, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
    // A panic on any thread ends the process, so that no other waits for what will not come.
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        say(what);
        // SAFETY: ends the process.
        unsafe { libc::_exit(1) };
    }));
    soak(&arguments)
}

fn soak(arguments: &Arguments) -> Result<()> {
    let world: &World = Box::leak(Box::new(World::new(arguments.seed)));
    let mut numbers = world.numbers();
    for _ in 0..3 {
        world.watchings.exchange(&mut numbers);
    }
    let begun = Instant::now();
    let mut threads = Vec::new();
    for _ in 0..READERS {
        threads.push(nursery::start(world, || nursery::reader(world)));
    }
    for _ in 0..arguments.nurseries {
        threads.push(nursery::start(world, || nursery::run(world)));
    }
    let mut residues = Vec::with_capacity(1 << 16);
    let mut checks = 0;
    while begun.elapsed().as_secs_f64() < arguments.seconds {
        thread::sleep(Duration::from_secs_f64(
            arguments.every * (0.5 + numbers.f64()),
        ));
        let drained = checks % DRAINED == 0;
        world.draining.store(drained, SeqCst);
        world.gate.close(PATIENCE)?;
        stop::check(world, arguments.exact)?;
        checks += 1;
        let residue = drained.then(|| Residue::measure(world)).transpose()?;
        residues.extend(residue);
        print_progress(world, begun, checks, residue);
        world.gate.open();
    }
    world.ending.store(true, SeqCst);
    for thread in threads {
        thread.join().expect("a panic ends the process");
        world.gate.leave();
        world.buried(1);
    }
    stop::check(world, arguments.exact)?;
    checks += 1;
    ensure!(world.alive() == 1, "{} threads are alive", world.alive());
    let compared = stop::compare(&residues)?;
    print_summary(arguments, world, begun, checks);
    match compared {
        Some([early, late]) => println!(
            "with nothing held, {} times: early {early:?}, late {late:?}",
            residues.len()
        ),
        None => println!("too few stops with nothing held to compare what was resident"),
    }
    Ok(())
}

fn print_progress(world: &World, begun: Instant, checks: u64, residue: Option<Residue>) {
    let figure = |of: &AtomicU64| of.load(SeqCst);
    print!(
        "{:7.1} s  check {checks}: {} threads alive, {} started; {}, bound {}",
        begun.elapsed().as_secs_f64(),
        world.alive(),
        figure(&world.figures.threads) + figure(&world.figures.foreign_threads),
        heap().totals(),
        heap().error_bound(),
    );
    match residue {
        Some(residue) => println!("; nothing held: {residue:?}"),
        None => println!(),
    }
}

fn print_summary(arguments: &Arguments, world: &World, begun: Instant, checks: u64) {
    let of = &world.figures;
    let mode = if arguments.exact {
        "exact mode"
    } else {
        "batches"
    };
    println!(
        "\nAll held in {:.0} s, counted in {mode}, seed {}: {checks} checks to the byte",
        begun.elapsed().as_secs_f64(),
        arguments.seed
    );
    println!("{}", TRUTH.totals());
    let rows = [
        ("threads started", &of.threads),
        ("foreign threads started", &of.foreign_threads),
        ("operations of their own choice", &of.operations),
        ("blocks handed to another thread", &of.handed_over),
        ("changes of the threshold", &of.thresholds),
        ("charges to counters that stay", &of.charges),
        ("counters made and dropped", &of.counters),
        ("readings of totals and peak", &of.readings),
        ("scopes", &of.scopes),
        ("forks", &of.forks),
        ("triggers made", &of.triggers),
        ("crossings taken", &of.fires),
        ("waits for a trigger", &of.waits),
    ];
    for (name, figure) in rows {
        println!("{:>14}  {name}", figure.load(SeqCst));
    }
    println!(
        "{:>14}  threads alive at once, at the most",
        world.most_alive()
    );
}
