//! Serves the heap's account, a counter's and a trigger's to Prometheus, on this machine only, while a few threads fill
//! a cache that the trigger keeps in bounds.
//!
//! ```text
//! cargo run --release --example prometheus --features metrics -- [SECONDS]
//! ```
//!
//! It prints the address, on a port that was free, and ends after 30 seconds or as many as you say. What is exported is
//! listed in the documentation of `tally_alloc::export`.
//!
//! The figures are recorded four times a second, by the main thread. What the exporter allocates is counted
//! like the rest.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{BuildError, PrometheusBuilder};
use tally_alloc::export::{AccountMetrics, TriggerMetrics};
use tally_alloc::policy::Proportional;
use tally_alloc::{Counter, Heap, Measure, TallyAlloc, Trigger, heap};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

/// Bytes in the cache's entries.
static CACHE: Counter = Counter::new();

pub(crate) const THREADS: usize = 4;

/// How often to look for another port when somebody else has been quicker.
const ATTEMPTS: usize = 16;

#[allow(dead_code, reason = "the test of this program has a `main` of its own")]
fn main() -> ExitCode {
    let seconds = match std::env::args().nth(1).map(|seconds| seconds.parse()) {
        None => 30,
        Some(Ok(seconds)) => seconds,
        Some(Err(_)) => {
            eprintln!("usage: prometheus [SECONDS]");
            return ExitCode::from(2);
        }
    };
    match run(Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prometheus: {error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(dead_code, reason = "only `main` runs on the clock")]
fn run(time: Duration) -> Result<(), Box<dyn Error>> {
    let address = serve()?;
    let cache = Cache::new()?;
    let exported = Exported::of(&cache);
    println!("http://{address}/metrics for {} s", time.as_secs());

    let begun = Instant::now();
    let is_over = || begun.elapsed() >= time;
    thread::scope(|scope| {
        for own in 0..THREADS {
            let (cache, is_over) = (&cache, &is_over);
            scope.spawn(move || {
                while !is_over() {
                    cache.fill(own, 100);
                    thread::sleep(Duration::from_millis(10));
                }
            });
        }
        while !is_over() {
            exported.record();
            thread::sleep(Duration::from_millis(250));
        }
    });
    println!("{}", heap().totals());
    println!("{}", cache.trigger.report());
    Ok(())
}

/// Installs the exporter, whose listener has a thread of its own, and returns where it listens.
pub(crate) fn serve() -> Result<SocketAddr, Box<dyn Error>> {
    for _ in 0..ATTEMPTS {
        let address = free_address()?;
        match PrometheusBuilder::new()
            .with_http_listener(address)
            .install()
        {
            Ok(()) => return Ok(address),
            // The exporter does not tell on which port it listens, so it is given one that was free just now.
            Err(BuildError::FailedToCreateHTTPListener(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(format!("no port was free in {ATTEMPTS} attempts").into())
}

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A cache in one part for each thread, with a trigger on the bytes in its entries.
pub(crate) struct Cache {
    parts: [Mutex<Vec<Vec<u8>>>; THREADS],
    pub(crate) trigger: Trigger<'static, Proportional>,
}

impl Cache {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let policy = Proportional::new(1.0, 4 << 20..=64 << 20)?;
        Ok(Self {
            parts: Default::default(),
            trigger: Trigger::new(&CACHE, Measure::LiveBytes, policy)?,
        })
    }

    /// Adds entries to a part, from 1 to 16 KiB each, and evicts when that is due.
    pub(crate) fn fill(&self, own: usize, entries: usize) {
        for number in 0..entries {
            let entry = vec![0; 1024 << (number % 5)];
            CACHE.add(entry.len());
            self.part(own).push(entry);
            if self.trigger.poll() {
                self.evict();
            }
        }
        // What this thread holds back is published before it sleeps or ends.
        CACHE.flush();
    }

    /// Evicts the older half of each part.
    fn evict(&self) {
        let begun = Instant::now();
        for own in 0..THREADS {
            let mut part = self.part(own);
            let older = part.len() / 2;
            for entry in part.drain(..older) {
                CACHE.sub(entry.len());
            }
        }
        self.trigger.collected(begun.elapsed());
    }

    fn part(&self, own: usize) -> MutexGuard<'_, Vec<Vec<u8>>> {
        let part = self.parts[own].lock();
        part.unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is exported of this program.
pub(crate) struct Exported<'a> {
    heap: AccountMetrics<&'static Heap>,
    entries: AccountMetrics<&'static Counter>,
    trigger: TriggerMetrics<&'a Trigger<'static, Proportional>>,
}

impl<'a> Exported<'a> {
    /// The exporter is installed: what is registered before goes nowhere.
    pub(crate) fn of(cache: &'a Cache) -> Self {
        Self {
            heap: AccountMetrics::new(heap(), "heap"),
            entries: AccountMetrics::new(&CACHE, "cache"),
            trigger: TriggerMetrics::new(&cache.trigger, "cache"),
        }
    }

    pub(crate) fn record(&self) {
        self.heap.record();
        self.entries.record();
        self.trigger.record();
    }
}
