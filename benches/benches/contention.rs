//! The workloads that allocate most, under every way of counting, through criterion.
//!
//! Criterion runs one way after the other, so what it prints is for watching one figure over time; the ratios
//! that are claimed come from `overhead`, whose rounds are paired.

use std::alloc::System;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tally_alloc_bench::switch::{Switch, Switching as _, Way};
use tally_alloc_bench::workload::{Size, Workload};
use tally_alloc_bench::workloads::mergesort::Mergesort;
use tally_alloc_bench::workloads::mergesort_vec::MergesortVec;
use tally_alloc_bench::workloads::pair::Pair;
use tally_alloc_bench::workloads::tree::{Kind, Tree};

#[global_allocator]
static GLOBAL: Switch<System> = Switch::new();

const WAYS: [Way; 6] = [
    Way::Uncounted,
    Way::Exact,
    Way::Batched(1024),
    Way::Batched(4 * 1024),
    Way::Batched(16 * 1024),
    Way::Batched(64 * 1024),
];

fn ways_of(criterion: &mut Criterion, workload: &dyn Workload) {
    let mut group = criterion.benchmark_group(workload.name());
    for way in WAYS {
        group.bench_function(BenchmarkId::from_parameter(way), |bencher| {
            GLOBAL.count(way);
            bencher.iter_custom(|times| (0..times).map(|_| black_box(workload.run())).sum());
            GLOBAL.count(Way::Uncounted);
        });
    }
    group.finish();
}

fn contention(criterion: &mut Criterion) {
    for threads in [1, 2, 4, 8] {
        ways_of(criterion, &Pair::new(Size::Smoke, 64, threads));
    }
    ways_of(criterion, &Mergesort::new(Size::Smoke));
    ways_of(criterion, &MergesortVec::new(Size::Smoke));
    ways_of(criterion, &Tree::new(Size::Smoke, Kind::Immutable));
    ways_of(criterion, &Tree::new(Size::Smoke, Kind::Mutable));
}

criterion_group! {
    name = benches;
    // 48 benches in a minute.
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(700));
    targets = contention
}
criterion_main!(benches);
