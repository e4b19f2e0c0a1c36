//! What a `Counter` costs: an `add` and a `sub`, beside the block that they count and beside one shared atomic.
//!
//! `cargo bench -p tally-alloc-bench --bench counter -- --check`
//!
//! Rounds are paired and in random order ([`rounds`]). Each run is short, so that most fit between two
//! interruptions, and each thread times itself; a run's time is the mean of its threads' times.

#![allow(clippy::print_stdout, reason = "a command that prints a table")]
#![allow(
    unsafe_code,
    reason = "calls the allocator without a container around it"
)]

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Parser;
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use crossbeam_utils::CachePadded;
use tally_alloc::{Batched, Counter, Exact};
use tally_alloc_bench::lanes;
use tally_alloc_bench::rounds::{self, Enough, Run};

/// Nanoseconds that an `add` and a `sub` may take on one thread.
const MOST: f64 = 4.0;

/// How many times as long they may take on each of two threads.
const MOST_ON_TWO: f64 = 1.1;

/// Operations in a run, each with the one that takes it back: a millisecond or less of counting.
const TIMES: usize = 200_000;

/// Measures a `Counter`'s `add` and `sub`.
#[derive(Debug, Parser)]
#[command(name = "counter")]
struct Arguments {
    /// Fails if they take more than 4 nanoseconds on one thread, or 1.1 times as long on each of two.
    #[arg(long)]
    check: bool,

    /// Rounds, each of every way once.
    #[arg(long, default_value_t = 1_000)]
    rounds: usize,

    /// What cargo passes to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

static BATCHED: Counter<Batched> = Counter::with_mode();
static EXACT: Counter<Exact> = Counter::with_mode();
static ONE_ATOMIC: CachePadded<AtomicUsize> = CachePadded::new(AtomicUsize::new(0));

const SMALL: Layout = Layout::new::<[u8; 64]>();

// No operation on an atomic is ever left out or put together with another, so that what does not change is
// hidden from the compiler once and not again each time, which would take as long as counting.

/// What is repeated, and on how many threads.
type Way = (&'static str, fn(), usize);

/// The first is the base; the second is the first once more, on two threads; the third shows what no
/// difference looks like.
const WAYS: [Way; 9] = [
    ("Counter, 1 thread", batched, 1),
    ("Counter, 2 threads", batched, 2),
    ("Counter, 1 thread, once more", batched, 1),
    ("malloc + free of 64 B, 1 thread", malloc_free, 1),
    ("malloc + free of 64 B, 2 threads", malloc_free, 2),
    ("one shared atomic, 1 thread", one_atomic, 1),
    ("one shared atomic, 2 threads", one_atomic, 2),
    ("Counter, exact, 1 thread", exact, 1),
    ("Counter, exact, 2 threads", exact, 2),
];

fn batched() {
    let (counter, bytes) = black_box((&BATCHED, 64));
    for _ in 0..TIMES {
        counter.add(bytes);
        counter.sub(bytes);
    }
}

fn exact() {
    let (counter, bytes) = black_box((&EXACT, 64));
    for _ in 0..TIMES {
        counter.add(bytes);
        counter.sub(bytes);
    }
}

fn one_atomic() {
    let (total, bytes) = black_box((&ONE_ATOMIC, 64));
    for _ in 0..TIMES {
        total.fetch_add(bytes, Relaxed);
        total.fetch_sub(bytes, Relaxed);
    }
}

fn malloc_free() {
    for _ in 0..TIMES {
        // SAFETY: the size is not zero.
        let block = black_box(unsafe { alloc(black_box(SMALL)) });
        assert!(!block.is_null(), "64 bytes are refused");
        // SAFETY: from `alloc` with the same layout.
        unsafe { dealloc(block, black_box(SMALL)) };
    }
}

fn run((_, work, threads): Way) -> Run {
    let (_, times) = lanes::run(threads, |_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    });
    Run {
        elapsed: times.iter().sum::<Duration>() / threads as u32,
        ..Run::default()
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let names = WAYS.map(|(name, ..)| name.to_owned());
    let enough = Enough {
        rounds: arguments.rounds,
        time: Duration::ZERO,
    };
    let found = rounds::compare("counter", &names, enough, |way| Ok(run(WAYS[way])), |_| ())?;
    for counter in [BATCHED.totals(), EXACT.totals()] {
        assert_eq!(
            counter.live_bytes(),
            0,
            "all was taken off again: {counter:?}"
        );
    }

    let base = found.base_nanoseconds / TIMES as f64;
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    table.set_header(["per thread", "ns", "times the first", "95 % interval"]);
    table.add_row([&*names[0], &format!("{base:.2}"), "1", ""]);
    for way in &found.ways {
        let ratio = way.ratio;
        table.add_row([
            way.way.clone(),
            format!("{:.2}", base * ratio.median),
            format!("{:.3}", ratio.median),
            format!("{:.3} to {:.3}", ratio.low, ratio.high),
        ]);
    }
    println!("{} rounds\n{table}", found.rounds);

    let on_two = found.ways[0].ratio;
    if arguments.check && (base > MOST || on_two.low > MOST_ON_TWO) {
        bail!(
            "{base:.2} ns on one thread, at most {MOST}; {:.3} times that on two, at most {MOST_ON_TWO}",
            on_two.median
        );
    }
    Ok(())
}
