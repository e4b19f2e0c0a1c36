//! What triggers, publishing threads and sleepers do to each other.

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread::{self, JoinHandle};

use crate::account::Account;
use crate::ledger::Attention;
use crate::operation::{Net, Operation};
use crate::watch::Watched;
use crate::watermark::{Evidence, Measure, Watermark};

/// Explores a model with at most two switches away from a thread that could have gone on. Every fault that
/// we have put in on purpose shows with two.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(model);
}

fn spawn<T: 'static>(shared: &Arc<T>, work: impl FnOnce(&T) + 'static) -> JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || work(&shared))
}

fn join<const N: usize>(threads: [JoinHandle<()>; N]) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Returns a watermark that is armed at `limit` bytes.
fn armed_at(limit: usize) -> Arc<Watermark> {
    let mark = Watermark::new();
    mark.arm(Measure::LiveBytes, limit, 0);
    Arc::new(mark)
}

/// Looks as a publishing thread does that has found `figure`; returns whether it made the watermark due.
fn verdict(mark: &Watermark, figure: usize) -> bool {
    let armed = mark.armed().filter(|armed| figure >= armed.limit);
    armed.is_some_and(|armed| mark.reach(armed, figure, Evidence::Sum))
}

/// Sleeps as a waiting thread does, until it has taken a crossing.
fn sleep(mark: &Watermark) {
    let mut due = mark.enter(thread::current());
    loop {
        if due && mark.take().is_some() {
            break;
        }
        thread::park();
        due = mark.is_due();
    }
    mark.leave();
}

/// Returns an account whose threads are under a threshold of 8 bytes.
fn account() -> Account {
    let account = Account::new();
    account.ledger.terms.set_threshold(8);
    account
}

/// Makes a watermark as a trigger does, and looks as it does.
fn arm(account: &Account, measure: Measure, limit: usize) -> &Watermark {
    let ledger = &account.ledger;
    let mark = ledger.claim_watermark().expect("there is room");
    ledger.arm(mark, measure, limit, 0);
    account.consult();
    mark
}

/// Returns whether the first watermark is due.
fn is_due(account: &Account) -> bool {
    let first = account.ledger.first_watermark();
    first.expect("one was made").is_due()
}

/// Runs `act` on two threads; returns how many got `true`.
fn winners(mark: &Arc<Watermark>, act: fn(&Watermark) -> bool) -> usize {
    let won = Arc::new(AtomicUsize::new(0));
    let threads = [(); 2].map(|()| {
        let won = won.clone();
        spawn(mark, move |mark| {
            if act(mark) {
                won.fetch_add(1, Relaxed);
            }
        })
    });
    join(threads);
    won.load(Relaxed)
}

/// Two threads see the same crossing: one makes it due. Two threads poll: one takes it.
#[test]
fn one_poll_wins_a_crossing() {
    explore(|| {
        let mark = armed_at(8);
        assert_eq!(winners(&mark, |mark| verdict(mark, 10)), 1, "made it due");
        assert_eq!(winners(&mark, |mark| mark.take().is_some()), 1, "took it");
    });
}

/// A thread publishes while a trigger is armed with a limit below what it publishes: one of the two sees the
/// other, and the trigger is due.
#[test]
fn no_crossing_is_lost_between_a_publish_and_an_arming() {
    for (measure, limit) in [(Measure::LiveBytes, 8), (Measure::LiveBlocks, 1)] {
        explore(move || {
            let account = Arc::new(account());
            join([
                spawn(&account, |it| it.count_outside(Operation::Allocate, 10)),
                spawn(&account, move |it| {
                    arm(it, measure, limit);
                }),
            ]);
            assert!(is_due(&account), "{measure:?}: published, and not due");
        });
    }
}

/// A thread that publishes finds what another came with and holds back by then, though it came while the
/// publish was under way.
#[test]
fn a_publish_reckons_with_a_thread_that_came_before_it() {
    explore(|| {
        let account = Arc::new(account());
        arm(&account, Measure::LiveBytes, 10);
        join([
            spawn(&account, |it| it.count_outside(Operation::Allocate, 2)),
            spawn(&account, |it| {
                let (shard, _room) = it.claim(8).expect("the first slab has room");
                shard.count(Operation::Allocate, 7);
                // Comes before the other publish, which then has to decide, or after it, and decides.
                it.count_outside(Operation::Allocate, 1);
            }),
        ]);
        assert!(is_due(&account), "10 bytes are live, 3 published: not due");
    });
}

/// A thread in batches comes, frees without publishing, lets another amount be published, and leaves. The
/// total was above the limit for a while, and what was live never.
#[test]
fn a_total_is_not_exact_while_a_thread_in_batches_comes_and_goes() {
    explore(|| {
        let account = Arc::new(account());
        account.count_outside(Operation::Allocate, 10);
        arm(&account, Measure::LiveBytes, 11);
        join([
            spawn(&account, |it| {
                let (shard, _room) = it.claim(8).expect("the first slab has room");
                shard.count(Operation::Deallocate, 5);
                it.count_outside(Operation::Allocate, 1);
                it.release(shard);
            }),
            spawn(&account, |it| it.consult()),
        ]);
        assert!(
            !is_due(&account),
            "no more than 10 bytes were live: due at 11"
        );
    });
}

/// A publishing thread that has found the limit reached says so after the trigger was armed with a higher
/// one: that one is not due.
#[test]
fn a_late_verdict_does_not_fire_a_newer_limit() {
    explore(|| {
        let mark = armed_at(8);
        join([
            spawn(&mark, |mark| {
                verdict(mark, 10);
            }),
            spawn(&mark, |mark| {
                mark.withdraw(false);
                mark.arm(Measure::LiveBytes, 20, 0);
            }),
        ]);
        assert!(!mark.is_due(), "10 bytes were found: due at 20");
    });
}

/// A thread comes to a verdict while its crossing is withdrawn, and a higher limit armed and reached: what is told of
/// that crossing is not below its limit, and is not another's evidence.
#[test]
fn a_late_verdict_leaves_no_figure_below_a_newer_limit() {
    explore(|| {
        let mark = armed_at(8);
        join([
            spawn(&mark, |mark| {
                verdict(mark, 10);
            }),
            spawn(&mark, |mark| {
                mark.withdraw(false);
                mark.arm(Measure::LiveBytes, 20, 0);
                let armed = mark.armed().expect("nobody else has reached 20");
                assert!(
                    mark.reach(armed, 25, Evidence::Request),
                    "25 bytes: not due at 20"
                );
                let crossing = mark.take().expect("due, and nobody took it");
                assert_eq!(crossing.limit, 20);
                assert!(crossing.figure >= 20, "{crossing:?}");
                assert_eq!(crossing.evidence, Evidence::Request);
            }),
        ]);
    });
}

/// A thread takes a crossing while another ends the cycle by itself and arms a higher limit, which is then reached as
/// well: what the first has taken is of one limit or of the other.
#[test]
fn a_crossing_is_of_one_limit_even_if_another_is_armed_meanwhile() {
    explore(|| {
        let mark = armed_at(8);
        verdict(&mark, 10);
        join([
            spawn(&mark, |mark| {
                mark.withdraw(false);
                mark.arm(Measure::LiveBytes, 20, 0);
                verdict(mark, 25);
            }),
            spawn(&mark, |mark| {
                if let Some(crossing) = mark.take() {
                    let seen = (crossing.limit, crossing.figure);
                    assert!(matches!(seen, (8, 10) | (20, 25)), "{crossing:?}");
                }
            }),
        ]);
    });
}

/// A trigger is dropped while a thread publishes above its limit, and its watermark goes to a new trigger
/// with a higher one: that one is not due, and a publish above it makes it due.
#[test]
fn a_dropped_trigger_fires_nobody_elses_limit() {
    explore(|| {
        let account = Arc::new(account());
        arm(&account, Measure::LiveBytes, 8);
        join([
            spawn(&account, |it| {
                verdict(it.ledger.first_watermark().expect("one was made"), 10);
            }),
            spawn(&account, |it| {
                let old = it.ledger.first_watermark().expect("one was made");
                it.ledger.release_watermark(old);
                arm(it, Measure::LiveBytes, 20);
            }),
        ]);
        assert!(!is_due(&account), "10 bytes were found: due at 20");
        account.count_outside(Operation::Allocate, 20);
        assert!(is_due(&account), "20 bytes are live: not due");
    });
}

/// A trigger is dropped while another is made: from then on what stays below the other's limit calls for
/// nobody's attention, and what reaches it does.
#[test]
fn a_dropped_trigger_leaves_the_limits_of_the_others_in_force_and_no_more() {
    explore(|| {
        let account = Arc::new(account());
        arm(&account, Measure::LiveBytes, 8);
        join([
            spawn(&account, |it| {
                let old = it.ledger.first_watermark().expect("one was made");
                it.ledger.release_watermark(old);
            }),
            spawn(&account, |it| {
                arm(it, Measure::LiveBytes, 20);
            }),
        ]);
        let ten = Net::of(Operation::Allocate, 10);
        let (below, at) = (account.ledger.add(ten), account.ledger.add(ten));
        assert_eq!(
            (below, at),
            (Attention::None, Attention::Needed),
            "what 10 and 20 bytes call for below a limit of 20"
        );
    });
}

/// A thread goes to sleep while another makes the watermark due: it wakes.
#[test]
fn a_sleeper_always_wakes() {
    explore(|| {
        let mark = armed_at(8);
        let sleeper = spawn(&mark, sleep);
        verdict(&mark, 10);
        join([sleeper]);
    });
}

/// A thread goes to sleep while the trigger is armed, and then made due: it wakes.
#[test]
fn a_sleeper_wakes_across_an_arming() {
    explore(|| {
        let mark = Arc::new(Watermark::new());
        let sleeper = spawn(&mark, sleep);
        mark.arm(Measure::LiveBytes, 8, 0);
        verdict(&mark, 10);
        join([sleeper]);
    });
}

/// A crossing is taken by a poll before the sleeper gets to it, and there is another while the thread that
/// saw the first is still busy waking the sleeper: it wakes for the second.
#[test]
fn a_sleeper_wakes_though_an_earlier_waker_is_held_up() {
    explore(|| {
        let mark = armed_at(8);
        let sleeper = spawn(&mark, sleep);
        let first = spawn(&mark, |mark| {
            verdict(mark, 10);
        });
        let second = spawn(&mark, |mark| {
            if mark.take().is_some() {
                mark.arm(Measure::LiveBytes, 9, 0);
                verdict(mark, 10);
            }
        });
        join([first, second, sleeper]);
    });
}

/// A sleeper gives up and another takes its place while a thread wakes whom it finds: no handle is used
/// after it was taken out, nor taken out twice.
///
/// Loom's `unpark` orders the thread that it names after its caller at once, parked or not, and so covers up
/// what the sleeper's word fails to order. The handle is therefore that of a thread which has ended.
#[test]
fn a_handle_is_not_taken_out_while_it_is_borrowed() {
    explore(|| {
        let mark = armed_at(8);
        let ended = spawn(&mark, |_| ());
        let [first, second] = [(); 2].map(|()| ended.thread().clone());
        join([ended]);
        mark.enter(first);
        let waker = spawn(&mark, |mark| {
            verdict(mark, 10);
        });
        let sleepers = spawn(&mark, |mark| {
            mark.leave();
            mark.enter(second);
            mark.leave();
        });
        join([waker, sleepers]);
    });
}
