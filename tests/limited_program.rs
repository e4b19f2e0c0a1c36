//! Programs under a hard limit, with the allocator installed: `examples/cache.rs`, and one that does not check.
//!
//! A process of its own: the limit is the whole process's.

#[path = "../examples/cache.rs"]
mod cache;

use std::hint::black_box;
use std::process::{Command, Output};

use tally_alloc::heap;

/// The argument that makes this program the one that does not check.
const CARELESS: &str = "--careless";

/// What it asks for, in bytes.
const REQUEST: usize = 64 << 20;

fn main() {
    if std::env::args().any(|argument| argument == CARELESS) {
        return careless();
    }
    // What a runner that lists tests first expects of a test program.
    if std::env::args().any(|argument| argument == "--list") {
        if !std::env::args().any(|argument| argument == "--ignored") {
            println!("limited_program: test");
        }
        return;
    }
    a_cache_makes_room_at_the_soft_limit_and_stays_below_the_hard_one();
    a_request_that_cannot_fail_ends_the_program_when_it_is_refused();
    println!("test limited_program ... ok");
}

fn a_cache_makes_room_at_the_soft_limit_and_stays_below_the_hard_one() {
    let outcome = cache::run().expect("the cache");
    assert!(outcome.peak <= outcome.limit, "{outcome}");
    assert!(outcome.evictions >= 1, "{outcome}");
    // 16,000 entries of 33 KiB on average passed through, and room is made by dropping 64 MiB at the most.
    assert!(outcome.evictions + outcome.refusals >= 7, "{outcome}");
    assert!(outcome.huge.is_err(), "{outcome}");
    assert_eq!(heap().hard_limit(), None, "the limit was the cache's");
}

fn a_request_that_cannot_fail_ends_the_program_when_it_is_refused() {
    let this = std::env::current_exe().expect("this program has a path");
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(this)
        .arg(CARELESS)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&stderr);
    assert!(!status.success(), "it was to end");
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(libc::SIGABRT),
        "{said}"
    );
    assert!(
        said.contains("memory allocation of 67108864 bytes failed"),
        "{said}"
    );
    assert_eq!(stdout, b"before\n", "nothing ran after it");
}

/// Goes past the limit with a `Vec` that is not asked whether it can.
fn careless() {
    heap()
        .set_hard_limit(heap().live_bytes() + REQUEST / 2)
        .expect("more than is live");
    println!("before");
    println!("{} bytes", black_box(vec![1_u8; REQUEST]).len());
}
