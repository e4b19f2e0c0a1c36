//! The listing of threads: whose figures are shown, and under which id and name.

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, Builder};

use tally_alloc::{ThreadReading, Totals, heap};

use super::{Noise, block};

/// Returns the calling thread's id as the system has it, by other means than the library.
fn own_id() -> u64 {
    let path = fs::read_link("/proc/thread-self").expect("Linux tells");
    let id = path.file_name().and_then(|id| id.to_str()?.parse().ok());
    id.expect("a number")
}

fn listed(id: u64) -> Option<ThreadReading> {
    let mut all = heap().threads();
    all.retain(|thread| thread.id == id);
    assert!(all.len() <= 1, "listed twice: {all:?}");
    all.pop()
}

fn named(name: &str) -> Vec<ThreadReading> {
    let mut all = heap().threads();
    all.retain(|thread| thread.name.as_deref() == Some(name));
    all
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "ids and names are Linux's")]
fn a_thread_finds_itself_under_its_id_and_name() {
    let _noise = Noise::new();
    let look = || {
        let held = block(12_345);
        let id = own_id();
        let before = heap().thread_totals();
        let me = listed(id).expect("it has allocated");
        let after = heap().thread_totals();
        assert_eq!(
            me.name.as_deref(),
            Some("one of fifteen "),
            "15 bytes of it"
        );
        let fields: [fn(&Totals) -> usize; 3] = [
            |t| t.bytes_allocated,
            |t| t.allocations,
            |t| t.deallocations,
        ];
        for field in fields {
            let (least, found, most) = (field(&before), field(&me.totals), field(&after));
            assert!(
                (least..=most).contains(&found),
                "{found}, {least} to {most}"
            );
        }
        drop(held);
    };
    let thread = Builder::new().name("one of fifteen bytes and more".into());
    thread
        .spawn(look)
        .expect("a thread")
        .join()
        .expect("no panic");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "ids and names are Linux's")]
fn waiting_threads_are_listed_with_exactly_what_they_did() {
    const THREADS: usize = 70;
    let _noise = Noise::new();
    let (done, over) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let given: Vec<_> = (0..THREADS).map(|_| block(3_000)).collect();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        for (number, foreign) in given.into_iter().enumerate() {
            let (tell, done, over) = (tell.clone(), &done, &over);
            scope.spawn(move || {
                let id = own_id();
                drop(foreign);
                let held = block(10 * number + 1);
                tell.send((id, heap().thread_totals()))
                    .expect("received below");
                done.wait();
                over.wait();
                drop(held);
            });
        }
        done.wait();
        let told: Vec<_> = told.try_iter().collect();
        let found: Vec<_> = told.iter().map(|&(id, _)| listed(id)).collect();
        over.wait();
        assert_eq!(told.len(), THREADS);
        for ((id, totals), found) in told.into_iter().zip(found) {
            let found = found.unwrap_or_else(|| panic!("{id} is not listed")).totals;
            // What it did last, to send this, it had not done when it looked.
            let more = found - totals;
            assert!(
                more.bytes_allocated < 10_000 && more.allocations <= 2,
                "{id}: {more:?}"
            );
            assert!(found.net_bytes() < 10_000, "{id}: {found:?}");
        }
    });
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "ids and names are Linux's")]
fn a_thread_that_frees_what_others_allocated_is_below_zero() {
    let held = block(1 << 20);
    let thread = thread::spawn(move || {
        drop(held);
        listed(own_id()).expect("it has freed").totals.net_bytes()
    });
    let net = thread.join().expect("no panic");
    assert!(net < -(1 << 19), "{net}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "ids and names are Linux's")]
fn a_thread_is_listed_while_it_lives_and_no_longer() {
    let (begin, end) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let lives = || {
            drop(block(10));
            begin.wait();
            end.wait();
        };
        let thread = Builder::new().name("a short life".into());
        let thread = thread.spawn_scoped(scope, lives).expect("a thread");
        begin.wait();
        assert_eq!(named("a short life").len(), 1);
        end.wait();
        thread.join().expect("no panic");
        assert_eq!(named("a short life"), [], "it has ended");
    });
}

/// Threads that allocate much and threads that allocate little take over each other's shards all the time.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "ids and names are Linux's")]
fn figures_are_never_under_the_name_of_another_thread() {
    const MUCH: usize = 256 << 20;
    const LITTLE: usize = 1 << 20;
    let over = AtomicBool::new(false);
    let (mut much, mut little) = (0, 0);
    thread::scope(|scope| {
        for (name, bytes) in [
            ("much", MUCH),
            ("little", 100),
            ("much", MUCH),
            ("little", 100),
        ] {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    let work = move || {
                        drop(block(bytes));
                        thread::yield_now();
                    };
                    let thread = Builder::new().name(name.into()).stack_size(64 << 10);
                    thread
                        .spawn(work)
                        .expect("a thread")
                        .join()
                        .expect("no panic");
                }
            });
        }
        let mut looks = 0;
        while looks < 2_000 || (much == 0 || little == 0) && looks < 100_000 {
            looks += 1;
            for thread in heap().threads() {
                let bytes = thread.totals.bytes_allocated;
                match thread.name.as_deref() {
                    Some("much") => {
                        much += 1;
                        assert!(
                            bytes < LITTLE || (MUCH..MUCH + LITTLE).contains(&bytes),
                            "{thread:?}"
                        );
                    }
                    Some("little") => {
                        little += 1;
                        assert!(bytes < LITTLE, "{thread:?}");
                    }
                    _ => {}
                }
            }
        }
        over.store(true, Relaxed);
    });
    assert!(much > 0 && little > 0, "seen {much} and {little} times");
}
