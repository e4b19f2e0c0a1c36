//! A `Counter` that a thread uses for the first time when the crate `thread_local` can no longer number the thread.

use std::thread;

use tally_alloc::Counter;
use thread_local::ThreadLocal;

use crate::work::assert_exact;

static COUNTER: Counter = Counter::new();

/// Another user of `thread_local`.
static OTHER: ThreadLocal<()> = ThreadLocal::new();

struct CountsLate;

impl Drop for CountsLate {
    fn drop(&mut self) {
        COUNTER.add(100);
        COUNTER.add(20_000);
        COUNTER.sub(100);
    }
}

thread_local! {
    static COUNTS_LATE: CountsLate = const { CountsLate };
}

/// Where panics do not unwind the program ends here, by `SIGABRT`, as the docs of `Counter` say.
pub(crate) fn all() {
    const THREADS: usize = 20;
    for _ in 0..THREADS {
        let ended = thread::spawn(|| {
            // Destroyed after what is registered later: the number that `OTHER` has asked for.
            COUNTS_LATE.with(|_| ());
            OTHER.get_or(|| ());
        });
        ended.join().expect("it ends well");
    }
    let totals = COUNTER.totals();
    assert_eq!(totals.live_bytes(), THREADS * 20_000);
    assert_eq!(
        (totals.allocations, totals.deallocations),
        (2 * THREADS, THREADS)
    );
    assert_eq!(COUNTER.live_bytes(), THREADS * 20_000, "published at once");
    assert_exact("late counters");
}
