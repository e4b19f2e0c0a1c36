//! Lanes: the same work on several threads at once, timed without the threads' start and end.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Runs `work` on `count` new threads that begin together. Returns the time from the first one's
/// beginning to the last one's end, and what each returned.
///
/// Each thread reads the clock itself: on a machine with fewer processors than lanes, a thread that only
/// waits for the others would be told late.
pub fn run<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> (Duration, Vec<T>) {
    let ready = Barrier::new(count);
    let (ready, work) = (&ready, &work);
    let lanes: Vec<(Instant, Instant, T)> = thread::scope(|scope| {
        let started: Vec<_> = (0..count)
            .map(|lane| {
                scope.spawn(move || {
                    ready.wait();
                    let begin = Instant::now();
                    let result = work(lane);
                    (begin, Instant::now(), result)
                })
            })
            .collect();
        started
            .into_iter()
            .map(|lane| lane.join().expect("a lane's checks hold"))
            .collect()
    });
    let begin = lanes.iter().map(|lane| lane.0).min();
    let end = lanes.iter().map(|lane| lane.1).max();
    let elapsed = match (begin, end) {
        (Some(begin), Some(end)) => end - begin,
        _ => Duration::ZERO,
    };
    (elapsed, lanes.into_iter().map(|lane| lane.2).collect())
}
