//! What reading the account costs, and what an account adds to the life of a thread.
//!
//! `cargo bench -p tally-alloc-bench --bench reading`
//!
//! Criterion gives `totals()` in shards a second (50 million are 20 ns for each). What counting adds to a thread's
//! start and end is a small difference of two large times, so it is taken in paired rounds, after criterion's.

#![allow(clippy::print_stdout, reason = "a command that prints its result")]

use std::alloc::System;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use tally_alloc::heap;
use tally_alloc_bench::report;
use tally_alloc_bench::rounds::{self, Enough, Run};
use tally_alloc_bench::switch::{Switch, Switching as _, Way};

#[global_allocator]
static GLOBAL: Switch<System> = Switch::new();

const BATCHED: Way = Way::Batched(16 * 1024);

/// `totals()` with a number of threads that have allocated and wait; criterion prints shards a second. The
/// larger number comes last, since shards stay.
fn totals(criterion: &mut Criterion) {
    GLOBAL.count(BATCHED);
    let mut group = criterion.benchmark_group("totals");
    for threads in [8, 1_000] {
        let (ready, done) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
        thread::scope(|scope| {
            for _ in 0..threads {
                let thread = thread::Builder::new().stack_size(64 * 1024);
                let wait = || {
                    drop(black_box(vec![0_u8; 100]));
                    ready.wait();
                    done.wait();
                };
                thread
                    .spawn_scoped(scope, wait)
                    .expect("a thread can be started");
            }
            ready.wait();
            group.throughput(Throughput::Elements(threads as u64));
            group.bench_function(BenchmarkId::from_parameter(threads), |bencher| {
                bencher.iter(|| black_box(heap().totals()));
            });
            done.wait();
        });
    }
    group.finish();
    criterion.bench_function("live_bytes", |bencher| {
        bencher.iter(|| black_box(heap().live_bytes()));
    });
    GLOBAL.count(Way::Uncounted);
}

/// Threads started and joined in one run.
const THREADS: u32 = 200;

/// Microseconds that counting in batches may add to starting and joining a thread.
const BAR: f64 = 2.0;

/// A thread started and joined: the shard's claim and release, and the exit guard.
fn threads(smoke: bool) -> anyhow::Result<()> {
    let ways = [Way::Uncounted, Way::Control, BATCHED, Way::Exact];
    let names = ways.map(|way| way.to_string());
    let enough = Enough {
        rounds: if smoke { 3 } else { 100 },
        time: Duration::ZERO,
    };
    let run = |way: usize| {
        GLOBAL.count(ways[way]);
        let begin = Instant::now();
        for _ in 0..THREADS {
            let thread = thread::spawn(|| drop(black_box(Box::new(1))));
            thread.join().expect("it does not panic");
        }
        Ok(Run {
            elapsed: begin.elapsed() / THREADS,
            ..Run::default()
        })
    };
    let found = rounds::compare("start and join", &names, enough, run, |_| ())?;
    GLOBAL.count(Way::Uncounted);
    let microseconds = found.base_nanoseconds / 1e3;
    println!("starting and joining a thread: {microseconds:.2} us uncounted");
    for way in &found.ways {
        let added = |ratio: f64| (ratio - 1.0) * microseconds;
        println!(
            "  {}: {:+.2} us [{:+.2}, {:+.2}]",
            way.way,
            added(way.ratio.median),
            added(way.ratio.low),
            added(way.ratio.high)
        );
        ensure!(
            smoke || added(way.ratio.low) <= BAR,
            "{} adds more than {BAR} us to a thread",
            way.way
        );
    }
    println!("  ({} rounds; {})", found.rounds, report::circumstances());
    Ok(())
}

criterion_group! {
    name = reading;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = totals
}

fn main() -> anyhow::Result<()> {
    reading();
    Criterion::default().configure_from_args().final_summary();
    threads(std::env::args().any(|argument| argument == "--test"))
}
