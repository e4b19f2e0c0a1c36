//! What a trigger tells `tracing`: one event when it fires and one when a collection has ended, on the thread that
//! polls, waits or collects, and none from those that allocate.
#![cfg(feature = "tracing")]
#![allow(missing_docs, reason = "an integration test")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use tally_alloc::policy::FixedLimit;
use tally_alloc::{Batched, Counter, Exact, Measure, Report, Trigger};
use tracing::dispatcher::{Dispatch, with_default};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// An event's fields, as text.
type Fields = BTreeMap<&'static str, String>;

/// Keeps the crate's events; `look` is called at each.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<Fields>>>,
    look: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Listener {
    /// Returns what was heard since the last call.
    fn heard(&self) -> Vec<Fields> {
        std::mem::take(&mut *self.heard.lock().expect("no panic while listening"))
    }

    fn dispatch(&self) -> Dispatch {
        Dispatch::new(self.clone())
    }
}

struct Fill(Fields);

impl Visit for Fill {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tally_alloc::trigger" && *metadata.level() == Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut fill = Fill(Fields::new());
        event.record(&mut fill);
        self.heard
            .lock()
            .expect("no panic while listening")
            .push(fill.0);
        if let Some(look) = &self.look {
            look();
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn fields<const N: usize>(fields: [(&'static str, &str); N]) -> Fields {
    fields.map(|(name, value)| (name, value.to_owned())).into()
}

fn limit(limit: usize) -> FixedLimit {
    FixedLimit::new(limit).expect("a limit")
}

fn due(figure: &str, evidence: &str) -> Fields {
    fields([
        ("message", "collection due"),
        ("measure", "live_bytes"),
        ("limit", "1000"),
        ("figure", figure),
        ("evidence", evidence),
    ])
}

#[test]
fn a_poll_that_wins_tells_why_and_a_collection_what_it_left() {
    let listener = Listener::default();
    with_default(&listener.dispatch(), || {
        let account = Counter::<Exact>::with_mode();
        let trigger = Trigger::new(&account, Measure::LiveBytes, limit(1_000)).expect("memory");
        account.add(999);
        assert!(!trigger.poll(), "below the limit");
        account.add(1);
        assert_eq!(listener.heard(), [], "nobody has polled");
        assert!(trigger.poll(), "the limit is reached");
        assert_eq!(listener.heard(), [due("1000", "published")]);
        assert!(!trigger.poll(), "it was taken");
        assert_eq!(listener.heard(), [], "one event for one crossing");

        account.sub(999);
        trigger.collected(Duration::from_millis(1_500));
        let collected = fields([
            ("message", "collected"),
            ("measure", "live_bytes"),
            ("pause_seconds", "1.5"),
            ("live_before", "1000"),
            ("live_after", "1"),
            ("next_limit", "1000"),
        ]);
        assert_eq!(listener.heard(), [collected]);
    });
}

#[test]
fn the_evidence_is_that_of_the_report() {
    let listener = Listener::default();
    with_default(&listener.dispatch(), || {
        let account = Counter::<Batched>::with_mode();
        let trigger = Trigger::new(&account, Measure::LiveBytes, limit(1_000)).expect("memory");
        account.add(100_000);
        assert!(trigger.poll(), "a large block is published at once");
        let cause = trigger.report().cause.expect("it fired");
        let figure = cause.figure.to_string();
        assert_eq!(listener.heard(), [due(&figure, cause.evidence.name())]);

        account.sub(100_000);
        trigger.collected(Duration::ZERO);
        listener.heard();
        let _ = trigger.announce(5_000);
        assert_eq!(listener.heard(), [], "an announcement is not a poll");
        assert!(trigger.poll(), "the announcement made it due");
        assert_eq!(listener.heard(), [due("5000", "request")]);
    });
}

#[test]
fn a_wait_that_wins_tells_on_its_own_thread_and_who_allocates_tells_nothing() {
    let (waiting, allocating) = (Listener::default(), Listener::default());
    let account = Counter::<Exact>::with_mode();
    let trigger = Trigger::new(&account, Measure::LiveBytes, limit(1_000)).expect("memory");
    let in_vain = Barrier::new(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            with_default(&waiting.dispatch(), || {
                assert!(!trigger.wait_timeout(Duration::ZERO), "not due yet");
                assert_eq!(waiting.heard(), [], "a wait in vain tells nothing");
                in_vain.wait();
                trigger.wait_timeout(Duration::from_secs(60))
            })
        });
        in_vain.wait();
        with_default(&allocating.dispatch(), || account.add(1_000));
        assert!(waiter.join().expect("it waits"), "the limit is reached");
    });
    assert_eq!(waiting.heard(), [due("1000", "published")]);
    assert_eq!(allocating.heard(), []);
}

#[test]
fn who_listens_may_look_at_the_trigger_and_wait_for_it() {
    static ACCOUNT: Counter<Exact> = Counter::with_mode();
    let trigger = Trigger::new(&ACCOUNT, Measure::LiveBytes, limit(1_000)).expect("memory");
    let trigger = Arc::new(trigger);
    let reports = Arc::new(Mutex::new(Vec::<Report>::new()));
    let listener = Listener {
        look: Some(Arc::new({
            let (trigger, reports) = (Arc::clone(&trigger), Arc::clone(&reports));
            move || {
                // Each takes a lock: the history's, the policy's, the waiters'.
                reports.lock().expect("ours").push(trigger.report());
                assert_eq!(trigger.policy_state(), 1_000);
                assert!(
                    !trigger.wait_timeout(Duration::ZERO),
                    "the crossing is taken"
                );
            }
        })),
        ..Listener::default()
    };
    let (ends, done) = channel();
    let looker = thread::spawn(move || {
        with_default(&listener.dispatch(), || {
            ACCOUNT.add(1_000);
            assert!(trigger.poll(), "the limit is reached");
            ACCOUNT.sub(1_000);
            trigger.collected(Duration::ZERO);
            ACCOUNT.add(1_000);
            assert!(
                trigger.wait_timeout(Duration::from_secs(60)),
                "reached again"
            );
        });
        ends.send(()).expect("the test waits");
    });
    // Not joined first: should it hang, so would this test.
    let outcome = done.recv_timeout(Duration::from_secs(60));
    outcome.expect("it does not wait for a lock of its own");
    looker.join().expect("it has ended");
    let cycles: Vec<u64> = reports
        .lock()
        .expect("ours")
        .iter()
        .map(|it| it.cycles)
        .collect();
    assert_eq!(cycles, [0, 1, 1], "a report from each of three events");
}
