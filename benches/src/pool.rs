//! The pool of eight threads that the task workloads run on.
//!
//! It is rayon's, as a real program's would be: `Scope::spawn` boxes the task, and who runs and frees it is
//! decided by stealing. It is kept from run to run, so that starting threads is in no figure.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads in the pool, and lanes of the workloads that have lanes.
pub const THREADS: usize = 8;

static POOL: OnceLock<ThreadPool> = OnceLock::new();

/// Returns the pool, started at the first call.
pub fn pool() -> &'static ThreadPool {
    POOL.get_or_init(|| {
        ThreadPoolBuilder::new()
            .num_threads(THREADS)
            .build()
            .expect("eight threads can be started")
    })
}

/// Calls `act` on this thread and on those of the pool if it has been started.
pub fn on_every_thread(act: impl Fn() + Sync) {
    act();
    if let Some(pool) = POOL.get() {
        pool.broadcast(|_| act());
    }
}
