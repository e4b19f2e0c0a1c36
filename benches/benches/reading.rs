//! What reading the account costs, and what an account adds to the life of a thread.

use std::alloc::System;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tally_alloc::heap;
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

/// A thread started and joined: the shard's claim and release, and the exit guard.
fn threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("thread start and join");
    for way in [Way::Uncounted, BATCHED, Way::Exact] {
        group.bench_function(BenchmarkId::from_parameter(way), |bencher| {
            GLOBAL.count(way);
            bencher.iter(|| thread::spawn(|| drop(black_box(Box::new(1)))).join());
            GLOBAL.count(Way::Uncounted);
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = totals, threads
}
criterion_main!(benches);
