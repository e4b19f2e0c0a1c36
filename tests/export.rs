//! The program of `examples/prometheus.rs`, scraped over loopback as Prometheus would.
#![cfg(feature = "metrics")]
#![allow(missing_docs, reason = "an integration test")]

#[path = "../examples/prometheus.rs"]
mod prometheus;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use tally_alloc::export::{AccountMetrics, TriggerMetrics};
use tally_alloc::policy::FixedLimit;
use tally_alloc::{Batched, Counter, Exact, Measure, Totals, Trigger, heap};

/// After so long, something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A page of this many bytes is not ours.
const LARGEST_PAGE: u64 = 1 << 20;

/// Where the one exporter of this process listens.
fn address() -> SocketAddr {
    static ADDRESS: LazyLock<SocketAddr> =
        LazyLock::new(|| prometheus::serve().expect("a port and a thread"));
    *ADDRESS
}

/// What was served at one moment.
struct Scrape {
    /// Values by name and labels, as they are written.
    values: BTreeMap<String, f64>,
    /// Kinds by name.
    kinds: BTreeMap<String, String>,
    /// The names that have a text.
    described: BTreeSet<String>,
}

impl Scrape {
    fn take() -> Self {
        let address = address();
        assert!(address.ip().is_loopback(), "{address}");
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        write!(stream, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("it is read");
        let mut answer = String::new();
        let mut limited = stream.take(LARGEST_PAGE);
        limited.read_to_string(&mut answer).expect("an answer");
        let (head, page) = answer.split_once("\r\n\r\n").expect("head and body");
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        Self::parse(page)
    }

    fn parse(page: &str) -> Self {
        let mut scrape = Self {
            values: BTreeMap::new(),
            kinds: BTreeMap::new(),
            described: BTreeSet::new(),
        };
        for line in page.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').expect("a name and a text");
                assert!(!text.is_empty(), "{line}");
                scrape.described.insert(name.to_owned());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a name and a kind");
                scrape.kinds.insert(name.to_owned(), kind.to_owned());
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a series and a value");
                let value = value.parse().expect("a number");
                let other = scrape.values.insert(series.to_owned(), value);
                assert_eq!(other, None, "twice: {line}");
            }
        }
        scrape
    }

    fn value(&self, series: &str) -> usize {
        let value = *self.values.get(series).unwrap_or_else(|| {
            let all: Vec<_> = self.values.keys().collect();
            panic!("{series} is not among {all:#?}")
        });
        assert_eq!(value.fract(), 0.0, "{series} {value}");
        value as usize
    }

    fn account(&self, figure: &str, account: &str) -> usize {
        self.value(&format!("tally_alloc_{figure}{{account=\"{account}\"}}"))
    }

    fn totals(&self, account: &str) -> Totals {
        let mut totals = Totals::default();
        totals.bytes_allocated = self.account("allocated_bytes_total", account);
        totals.bytes_deallocated = self.account("deallocated_bytes_total", account);
        totals.allocations = self.account("allocations_total", account);
        totals.deallocations = self.account("deallocations_total", account);
        totals.reallocations = self.account("reallocations_total", account);
        totals
    }

    /// The counters by series.
    fn counters(&self) -> impl Iterator<Item = (&String, f64)> {
        self.values.iter().filter_map(|(series, &value)| {
            let name = series.split('{').next().expect("a first part");
            (self.kinds[name] == "counter").then_some((series, value))
        })
    }
}

/// Asserts that no field of `later` is below that of `earlier`.
fn assert_grown(what: &str, earlier: Totals, later: Totals) {
    let fields = |it: Totals| {
        [
            it.bytes_allocated,
            it.bytes_deallocated,
            it.allocations,
            it.deallocations,
            it.reallocations,
        ]
    };
    let pairs = fields(earlier).into_iter().zip(fields(later));
    assert!(
        { pairs }.all(|(earlier, later)| earlier <= later),
        "{what}:\n{earlier:?}\n{later:?}"
    );
}

/// Also claims that nobody else exports the heap, or the cache, in this process: the readings are those of
/// this test's own calls.
#[test]
fn what_is_scraped_of_a_program_at_work_is_its_account_and_never_goes_back() {
    let address = address();
    assert_ne!(address.port(), 0, "{address}");
    let cache = prometheus::Cache::new().expect("memory for a trigger");
    let exported = prometheus::Exported::of(&cache);
    exported.record();
    let mut last = Scrape::take();
    for round in 1..=3 {
        thread::scope(|scope| {
            for own in 0..prometheus::THREADS {
                let cache = &cache;
                scope.spawn(move || cache.fill(own, 1_000));
            }
        });

        let before = heap().totals();
        exported.record();
        let after = heap().totals();
        let scrape = Scrape::take();

        let shown = scrape.totals("heap");
        assert_grown("scraped after it was read", before, shown);
        assert_grown("read after it was scraped", shown, after);
        let live = scrape.account("live_bytes", "heap");
        assert_eq!(live, shown.live_bytes(), "round {round}: of one reading");
        // Other tests of this process allocate meanwhile.
        let least = before
            .bytes_allocated
            .saturating_sub(after.bytes_deallocated);
        let most = after.bytes_allocated - before.bytes_deallocated;
        assert!(
            (least..=most).contains(&live),
            "{least} <= {live} <= {most}"
        );
        let blocks = scrape.account("live_blocks", "heap");
        assert_eq!(blocks, shown.live_blocks(), "round {round}: of one reading");

        // Of entries nothing is counted meanwhile, so the figures are the account's to the byte.
        let report = cache.trigger.report();
        let labels = "{trigger=\"cache\",measure=\"live_bytes\"}";
        let figure = |name| scrape.value(&format!("tally_alloc_trigger_{name}"));
        assert_eq!(figure(format!("limit{labels}")), report.limit);
        assert_eq!(figure(format!("headroom{labels}")), report.headroom);
        let cycles = figure("cycles_total{trigger=\"cache\"}".to_owned());
        assert_eq!(cycles as u64, report.cycles);
        // 4,000 entries of 6,348 bytes on average are six times the first limit.
        assert!(cycles >= 1, "no cycle in round {round}");
        let live = scrape.account("live_bytes", "cache");
        // The last flush may have made it due.
        assert_eq!(report.headroom, report.limit.saturating_sub(live));
        assert_eq!(scrape.totals("cache").live_bytes(), live);

        let mut counters = 0;
        for (series, value) in last.counters() {
            let now = scrape.values[series];
            assert!(now >= value, "{series} went back from {value} to {now}");
            counters += 1;
        }
        assert!(
            counters >= 13,
            "{counters} counters, of two accounts and a trigger"
        );
        let grown = |name: &str| scrape.account(name, "heap") - last.account(name, "heap");
        assert!(grown("allocations_total") >= 4_000, "an entry is a block");
        assert!(
            grown("allocated_bytes_total") >= 4_000 * 6_348,
            "and has its bytes"
        );
        last = scrape;
    }
}

#[test]
fn a_counter_is_exported_to_the_byte() {
    address();
    let account = Arc::new(Counter::<Batched>::with_mode());
    account.set_threshold(64).expect("a threshold");
    let exported = AccountMetrics::new(Arc::clone(&account), "to the byte");
    for bytes in [10, 1_000, 10_000] {
        account.add(bytes);
    }
    account.resize(1_000, 1_500);
    account.sub(10_000);
    account.add(7);
    exported.record();

    let scrape = Scrape::take();
    let figure = |name| scrape.account(name, "to the byte");
    assert_eq!(scrape.totals("to the byte"), account.totals());
    assert_eq!(figure("live_bytes"), 1_517);
    assert_eq!(figure("live_blocks"), 3);
    assert_eq!(figure("peak_bytes"), account.peak_bytes());
    assert_eq!(figure("error_bound_bytes"), 63);
    assert_eq!(figure("threshold_bytes"), 64);
    assert_eq!(figure("shared_writes_total"), account.shared_writes());
    assert!(
        account.shared_writes() >= 3,
        "each large block was published"
    );
}

#[test]
fn a_trigger_in_blocks_says_so() {
    address();
    let account = Counter::<Exact>::with_mode();
    let policy = FixedLimit::new(3).expect("a limit");
    let trigger = Trigger::new(&account, Measure::LiveBlocks, policy).expect("memory");
    let exported = TriggerMetrics::new(&trigger, "in blocks");
    account.add(100);
    trigger.collected(Duration::from_secs(1_000_000));
    exported.record();

    let scrape = Scrape::take();
    let labels = "{trigger=\"in blocks\",measure=\"live_blocks\"}";
    let figure = |name| scrape.value(&format!("tally_alloc_trigger_{name}"));
    assert_eq!(figure(format!("limit{labels}")), 3);
    assert_eq!(figure(format!("headroom{labels}")), 2);
    assert_eq!(figure("cycles_total{trigger=\"in blocks\"}".to_owned()), 1);
    let ratio = scrape.values["tally_alloc_trigger_collecting_ratio{trigger=\"in blocks\"}"];
    assert_eq!(ratio, trigger.report().collecting_share());
    assert!((0.9..=1.0).contains(&ratio), "{ratio}");
}

#[test]
fn the_documented_table_is_what_is_exported() {
    address();
    static ACCOUNT: Counter = Counter::new();
    let policy = FixedLimit::new(1).expect("a limit");
    let trigger = Trigger::new(&ACCOUNT, Measure::LiveBytes, policy).expect("memory");
    AccountMetrics::new(&ACCOUNT, "table").record();
    TriggerMetrics::new(&trigger, "table").record();
    let scrape = Scrape::take();

    let rows = include_str!("../src/export.rs").lines().filter_map(|line| {
        let mut cells = line.strip_prefix("//! | `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`');
        Some((name.to_owned(), cells.next()?.to_owned()))
    });
    let documented: BTreeMap<String, String> = rows.collect();
    assert_eq!(documented, scrape.kinds);
    let names: BTreeSet<String> = documented.into_keys().collect();
    assert_eq!(names, scrape.described, "each has a text");
}
