//! The peak against the live bytes it is the peak of.

use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Release};

use super::{Pair, explore, join, publish, spawn};
use crate::operation::Operation::{Allocate, Deallocate};
use crate::peaks::Peaks;
use crate::published::live;
use crate::sync::AtomicUsize;

/// Two threads publish up and down. Whatever live figure a reader saw, the peak it reads next is no
/// lower; when all is done, the peak is the highest total there was.
#[test]
fn the_peak_is_never_below_a_live_figure_read_before_it() {
    explore(2, || {
        let pair = Pair::under(1);
        let ledger = &pair.ledger;
        publish(ledger, &pair.shards[0], Allocate, 4);
        let up = spawn(&pair, |pair| {
            publish(&pair.ledger, &pair.shards[0], Allocate, 8);
        });
        let down = spawn(&pair, |pair| {
            publish(&pair.ledger, &pair.shards[1], Deallocate, 4);
        });
        let reader = spawn(&pair, |pair| {
            let live = pair.ledger.published.live_bytes();
            let peak = pair.ledger.published.peak_bytes();
            assert!(peak >= live, "peak {peak} after {live} live");
        });
        join([up, down, reader]);
        let highest = ledger.published.peak_bytes();
        assert!(
            (8..=12).contains(&highest),
            "peak {highest}, the total went from 4 to 8"
        );
    });
}

/// Two threads raise the peak at once; the lower figure does not take the place of the higher one.
#[test]
fn the_peak_of_two_threads_is_the_highest_total() {
    explore(3, || {
        let pair = Pair::under(1);
        let slow = spawn(&pair, |pair| {
            publish(&pair.ledger, &pair.shards[0], Allocate, 8);
        });
        let quick = spawn(&pair, |pair| {
            publish(&pair.ledger, &pair.shards[1], Allocate, 8);
            let live = pair.ledger.published.live_bytes();
            publish(&pair.ledger, &pair.shards[1], Deallocate, 8);
            publish(&pair.ledger, &pair.shards[1], Deallocate, 8);
            live
        });
        slow.join().unwrap();
        let live = quick.join().unwrap();
        let peak = pair.ledger.published.peak_bytes();
        assert!(peak >= live, "peak {peak}, {live} were live");
    });
}

/// Once a publish has returned, the total it made is in the peak, though the next publish has taken the
/// total down again and not yet come to the peak itself.
#[test]
fn a_publish_that_returned_is_in_the_peak() {
    explore(3, || {
        let shared = Arc::new((Pair::under(1), AtomicBool::new(false)));
        let publisher = spawn(&shared, |(pair, returned)| {
            publish(&pair.ledger, &pair.shards[0], Allocate, 8);
            returned.store(true, Release);
            publish(&pair.ledger, &pair.shards[0], Deallocate, 8);
        });
        let reader = spawn(&shared, |(pair, returned)| {
            if returned.load(Acquire) {
                let peak = pair.ledger.published.peak_bytes();
                assert_eq!(peak, 8, "8 bytes were published");
            }
        });
        join([publisher, reader]);
    });
}

/// The peak starts anew from the live bytes of the reset, also when the first thing after it is a
/// free.
#[test]
fn a_peak_that_was_reset_starts_from_the_live_bytes_of_the_reset() {
    explore(3, || {
        let pair = Pair::under(1);
        let ledger = &pair.ledger;
        publish(ledger, &pair.shards[0], Allocate, 32);
        publish(ledger, &pair.shards[0], Deallocate, 16);
        Peaks::new().reset(&ledger.published);
        let threads = [0, 1].map(|which| {
            spawn(&pair, move |pair| {
                publish(&pair.ledger, &pair.shards[which], Deallocate, 8);
            })
        });
        join(threads);
        assert_eq!(
            ledger.published.peak_bytes(),
            16,
            "live at the reset, and less since"
        );
    });
}

/// The peak starts anew while another thread publishes up and down; it is never below a figure read
/// since.
#[test]
fn a_peak_that_was_reset_is_never_below_a_live_figure_read_since() {
    explore(3, || {
        let pair = Pair::under(1);
        let publisher = spawn(&pair, |pair| {
            publish(&pair.ledger, &pair.shards[0], Allocate, 8);
            publish(&pair.ledger, &pair.shards[0], Deallocate, 4);
        });
        let reader = spawn(&pair, |pair| {
            Peaks::new().reset(&pair.ledger.published);
            let live = pair.ledger.published.live_bytes();
            let peak = pair.ledger.published.peak_bytes();
            assert!(peak >= live, "peak {peak} after {live} live");
        });
        join([publisher, reader]);
        Peaks::new().reset(&pair.ledger.published);
        assert_eq!(pair.ledger.published.peak_bytes(), 4, "live at the reset");
    });
}

/// Opens a scope and leaves it open.
fn open((pair, peaks): &(Arc<Pair>, Peaks)) {
    let kept = peaks.open(&pair.ledger.published);
    assert!(kept.is_some(), "the first slab has room");
}

/// The peak is started anew, for a scope that opens, while one thread publishes down and another reads: the
/// account's peak is still never below a figure read before it, never goes back, and in the end is the highest there was.
#[test]
fn a_restart_hides_no_peak_from_a_reader() {
    explore(2, || {
        let shared = Arc::new((Pair::under(1), Peaks::new()));
        publish(&shared.0.ledger, &shared.0.shards[0], Allocate, 8);
        let publisher = spawn(&shared, |(pair, _)| {
            publish(&pair.ledger, &pair.shards[0], Deallocate, 8);
        });
        let opener = spawn(&shared, open);
        let reader = spawn(&shared, |(pair, _)| {
            let live = pair.ledger.published.live_bytes();
            let peak = pair.ledger.published.peak_bytes();
            assert!(peak >= live, "peak {peak} after {live} live");
        });
        join([publisher, opener, reader]);
        let peak = shared.0.ledger.published.peak_bytes();
        assert_eq!(peak, 8, "8 bytes were published");
    });
}

/// The peak was once higher than it will be again; it is started anew, and another thread publishes up and down. What
/// came after the total from which it starts is in it.
#[test]
fn a_restarted_peak_has_every_total_since() {
    explore(3, || {
        let pair = Pair::under(1);
        publish(&pair.ledger, &pair.shards[0], Allocate, 32);
        publish(&pair.ledger, &pair.shards[0], Deallocate, 32);
        let start = spawn(&pair, |pair| pair.ledger.published.restart_peak(|_| ()));
        let publisher = spawn(&pair, |pair| {
            publish(&pair.ledger, &pair.shards[0], Allocate, 8);
            publish(&pair.ledger, &pair.shards[0], Deallocate, 7);
        });
        let start = start.join().unwrap();
        publisher.join().unwrap();
        let published = &pair.ledger.published;
        let peak = published.peak_bytes_since(&AtomicUsize::new(start));
        let started_from = live(start);
        let least = if started_from == 1 { 1 } else { 8 };
        assert!(peak >= least, "peak {peak}, started from {started_from}");
        assert!(peak <= 8, "peak {peak}, of before the start");
        assert_eq!(published.peak_bytes(), 32, "the account's own");
    });
}

/// The peak is started anew just while another thread raises it, and then frees: it is kept, or in the new one.
#[test]
fn a_restart_loses_no_peak_that_is_raised_meanwhile() {
    explore(3, || {
        let pair = Pair::under(1);
        let publisher = spawn(&pair, |pair| {
            publish(&pair.ledger, &pair.shards[0], Allocate, 8);
            publish(&pair.ledger, &pair.shards[0], Deallocate, 8);
        });
        let restart = spawn(&pair, |pair| {
            pair.ledger.published.restart_peak(|_| ());
        });
        join([publisher, restart]);
        let peak = pair.ledger.published.peak_bytes();
        assert_eq!(peak, 8, "8 bytes were published");
    });
}

/// Another scope opens, or the peak is reset, while one thread publishes down and another reads: the peak of the scope
/// that was open before is never below a figure read in it, and the account's has nothing of before the reset.
#[test]
fn a_scope_keeps_its_peak_while_others_open_and_the_peak_is_reset() {
    for reset in [false, true] {
        explore(2, move || {
            let shared = Arc::new((Pair::under(1), Peaks::new()));
            open(&shared);
            publish(&shared.0.ledger, &shared.0.shards[0], Allocate, 8);
            publish(&shared.0.ledger, &shared.0.shards[0], Deallocate, 4);
            let publisher = spawn(&shared, |(pair, _)| {
                publish(&pair.ledger, &pair.shards[0], Deallocate, 2);
            });
            let other = spawn(&shared, move |shared| {
                if reset {
                    shared.1.reset(&shared.0.ledger.published);
                } else {
                    open(shared);
                }
            });
            let reader = spawn(&shared, |(pair, peaks)| {
                let kept = peaks.first().expect("open");
                let peak = kept.peak_bytes(&pair.ledger.published);
                assert_eq!(peak, 8, "8 bytes were published in the scope");
            });
            join([publisher, other, reader]);
            let peak = shared.0.ledger.published.peak_bytes();
            if reset {
                assert!((2..=4).contains(&peak), "peak {peak} since the reset");
            } else {
                assert_eq!(peak, 8, "the account's own");
            }
        });
    }
}
