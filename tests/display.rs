//! How totals and reports are shown: in human units or exactly, without a byte allocated.

use std::fmt::{self, Write as _};
use std::hint::black_box;
use std::time::Duration;

use tally_alloc::policy::{EveryBytes, FixedLimit, Policy};
use tally_alloc::{Counter, Exact, Measure, TallyAlloc, Totals, Trigger, TriggerError, heap};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

/// What is written, up to a kilobyte of it, without allocating.
struct Page {
    text: [u8; 1024],
    len: usize,
}

impl Page {
    const fn blank() -> Self {
        Self {
            text: [0; 1024],
            len: 0,
        }
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.text[..self.len]).expect("it was written as text")
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        let place = self.text.get_mut(self.len..end).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Writes `it` in both forms and returns what was allocated meanwhile.
fn allocated_by_writing(it: &dyn fmt::Display) -> (Totals, Page) {
    let mut page = Page::blank();
    let before = heap().thread_totals();
    write!(page, "{it}\n{it:#}").expect("a page is enough");
    let change = heap().thread_totals() - black_box(before);
    (change, page)
}

fn large_totals() -> Totals {
    let mut totals = Totals::default();
    (totals.bytes_allocated, totals.allocations) = (usize::MAX / 3, usize::MAX / 5);
    (totals.bytes_deallocated, totals.deallocations) = (usize::MAX / 2, usize::MAX / 4);
    totals.reallocations = usize::MAX;
    totals
}

#[test]
fn totals_are_shown_without_allocating() {
    let probe = heap().thread_totals();
    drop(black_box(Box::new(1)));
    let counted = heap().thread_totals() - probe;
    assert_eq!(counted.allocations, 1, "what is allocated here is seen");
    for totals in [Totals::default(), heap().totals(), large_totals()] {
        let (change, page) = allocated_by_writing(&totals);
        assert_eq!(change, Totals::default(), "by writing:\n{}", page.text());
    }
}

#[test]
fn reports_are_shown_without_allocating() {
    let account = Counter::new();
    for measure in [
        Measure::LiveBytes,
        Measure::LiveBlocks,
        Measure::AllocatedBytes,
    ] {
        let policy = FixedLimit::new(100_000).expect("a limit");
        let trigger = Trigger::new(&account, measure, policy).expect("memory for a trigger");
        let unfired = trigger.report();
        // Times and counts that need as many digits as they can have.
        trigger.collected(Duration::new(u64::MAX / 3, 123_456_789));
        let _ = trigger.announce(usize::MAX / 3);
        assert!(trigger.poll(), "the announcement fires it");
        for report in [unfired, trigger.report()] {
            let (change, page) = allocated_by_writing(&report);
            assert_eq!(change, Totals::default(), "by writing:\n{}", page.text());
        }
    }
}

#[test]
fn totals_read_in_human_units_and_listed_exactly() {
    let mut totals = Totals::default();
    (totals.bytes_allocated, totals.allocations) = (3_500_000_000, 40_000_000);
    (totals.bytes_deallocated, totals.deallocations) = (3_499_999_000, 39_999_998);
    totals.reallocations = 12;
    assert_eq!(
        totals.to_string(),
        "1000 B live in 2 blocks (3.26 GiB allocated in 40000000, 3.26 GiB freed in 39999998, 12 resized)"
    );
    assert_eq!(
        format!("{totals:#}"),
        "\
live                 1000 B in            2 blocks (1000 B)
allocated      3500000000 B in     40000000 blocks (3.26 GiB)
freed          3499999000 B in     39999998 blocks (3.26 GiB)
resized                                  12 blocks"
    );
}

#[test]
fn a_change_below_zero_is_shown_with_its_sign() {
    let mut change = Totals::default();
    (change.bytes_deallocated, change.deallocations) = (20 << 20, 3);
    assert_eq!(
        change.to_string(),
        "-20.0 MiB live in -3 blocks (0 B allocated in 0, 20.0 MiB freed in 3, 0 resized)"
    );
}

fn fired(measure: Measure, policy: impl Policy) -> [String; 2] {
    let account = Counter::<Exact>::with_mode();
    let trigger = Trigger::new(&account, measure, policy).expect("memory for a trigger");
    account.add(3 << 20);
    assert!(trigger.poll(), "the limit is reached");
    account.sub(3 << 20);
    trigger.collected(Duration::ZERO);
    let report = trigger.report();
    [report.to_string(), format!("{report:#}")]
}

#[test]
fn a_report_is_in_the_units_of_its_measure() {
    let limit = FixedLimit::new(2 << 20).expect("a limit");
    let [line, listing] = fired(Measure::LiveBytes, limit);
    assert_eq!(
        line,
        "1 cycles, 0.0 % of the time collecting; limit 2.00 MiB live, 2.00 MiB left; \
         last fired at 3.00 MiB by the published total"
    );
    for exact in [
        "measure       live_bytes\n",
        "cycles        1\n",
        "collecting    0ns (0.0 % of the time)\n",
        "allocated     3145728 B (3.00 MiB), ",
        "limit         2097152 B (2.00 MiB)\n",
        "headroom      2097152 B (2.00 MiB)\n",
        "growth steps  0\n",
        "last fired    at 3145728 B (3.00 MiB) by the published total, limit 2097152 B (2.00 MiB)",
    ] {
        assert!(listing.contains(exact), "{exact:?} is not in:\n{listing}");
    }

    let limit = FixedLimit::new(1).expect("a limit");
    let [line, listing] = fired(Measure::LiveBlocks, limit);
    assert!(
        line.ends_with(
            "limit 1 blocks live, 1 blocks left; last fired at 1 blocks by the published total"
        ),
        "{line}"
    );
    assert!(listing.contains("\nheadroom      1 blocks\n"), "{listing}");

    let interval = EveryBytes::new(1 << 20).expect("an interval");
    let [line, _] = fired(Measure::AllocatedBytes, interval);
    assert!(
        line.contains("limit 1.00 MiB allocated, 1.00 MiB left"),
        "{line}"
    );
}

#[test]
fn the_other_forms_name_what_they_show() {
    assert_eq!(
        TriggerError::OutOfMemory.to_string(),
        "no memory for another trigger"
    );
    assert_eq!(format!("{GLOBAL:?}"), "TallyAlloc { inner: System, .. }");
    let account = Counter::<Exact>::with_mode();
    let limit = FixedLimit::new(1 << 20).expect("a limit");
    let trigger = Trigger::new(&account, Measure::LiveBlocks, limit).expect("memory for a trigger");
    let shown = format!("{trigger:?}");
    for part in ["Trigger {", "measure: LiveBlocks", "limit: 1048576"] {
        assert!(shown.contains(part), "{part:?} is not in: {shown}");
    }
}
