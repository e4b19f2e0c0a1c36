//! Probes: a peer's live bytes against the truth, in the situations that have gone wrong elsewhere.
//!
//! A figure that is wrong is worth no time at all, so each peer is asked before it is timed. Every probe
//! compares the change of the figure with the bytes that the probe itself has allocated and kept, which it
//! knows; it keeps its pointers in memory that was there before, and waits at barriers, which do not allocate. Each
//! runs in a process of its own.

#![allow(
    unsafe_code,
    reason = "calls the allocator without a container around it"
)]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::fs;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Probe {
    /// Eight threads have come, allocated, freed and gone; a megabyte is kept.
    Quiet,
    /// Eight threads hold 15,000 bytes each, under every threshold, and wait.
    Held,
    /// Eight threads hold 60,000 bytes each and wait; another frees them; then the threads end. Back to
    /// the start?
    FreesFirst,
    /// A thousand threads end with 15,000 bytes each pending, which are kept.
    Ended,
    /// A reallocation is refused.
    Refused,
    /// 512 MiB zeroed: resident bytes that came with it.
    Zeroed,
    /// 256 MiB that nobody touched, doubled: resident bytes that came with it.
    Resized,
}

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Whether the peer has the figure.
    pub applies: bool,
    /// The figure less the truth, in bytes.
    pub error: i64,
}

/// A block that may cross threads.
struct Kept {
    block: AtomicPtr<u8>,
    layout: Layout,
}

impl Kept {
    fn nothing() -> Self {
        Self {
            block: AtomicPtr::default(),
            layout: Layout::new::<u8>(),
        }
    }

    fn allocate(bytes: usize) -> Self {
        let layout = Layout::array::<u8>(bytes).expect("a small layout");
        // SAFETY: the size is not zero.
        let block = black_box(unsafe { alloc(black_box(layout)) });
        assert!(!block.is_null(), "{bytes} bytes refused");
        Self {
            block: AtomicPtr::new(block),
            layout,
        }
    }

    fn free(&mut self) {
        let block = std::mem::take(self.block.get_mut());
        if !block.is_null() {
            // SAFETY: from `alloc` with this layout, and taken out, so freed once.
            unsafe { dealloc(black_box(block), self.layout) };
        }
    }
}

/// Threads in a probe.
const THREADS: usize = 8;

impl Probe {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Quiet,
        Self::Held,
        Self::FreesFirst,
        Self::Ended,
        Self::Refused,
        Self::Zeroed,
        Self::Resized,
    ];

    /// Runs the probe on the figure that `live` reads.
    #[must_use]
    pub fn run(self, live: Option<fn() -> usize>) -> Finding {
        let error = match (self, live) {
            (Self::Zeroed, _) => zeroed(),
            (Self::Resized, _) => resized(),
            (_, None) => {
                return Finding {
                    applies: false,
                    error: 0,
                };
            }
            (Self::Quiet, Some(live)) => quiet(live),
            (Self::Held, Some(live)) => held(live),
            (Self::FreesFirst, Some(live)) => frees_first(live),
            (Self::Ended, Some(live)) => ended(live),
            (Self::Refused, Some(live)) => refused(live),
        };
        Finding {
            applies: true,
            error,
        }
    }

    /// How far off the figure may be and count as right: 0, but for resident bytes a little of what
    /// else happens in a process.
    #[must_use]
    pub fn tolerance(self) -> i64 {
        match self {
            Self::Zeroed | Self::Resized => 16 << 20,
            _ => 0,
        }
    }
}

fn difference(later: usize, earlier: usize, truth: usize) -> i64 {
    later as i64 - earlier as i64 - truth as i64
}

/// Starts and ends threads once, so that what the standard library keeps for ever is kept already.
fn warm_up(live: fn() -> usize) {
    for _ in 0..2 {
        on_threads(THREADS, || drop(black_box(vec![0_u8; 100])));
    }
    black_box(live());
}

/// Runs `act` on threads that are started one after another.
fn on_threads<T: Send>(count: usize, act: impl Fn() -> T + Sync) {
    for _ in 0..count {
        thread::scope(|scope| scope.spawn(&act).join().map(drop).expect("no panic"));
    }
}

fn quiet(live: fn() -> usize) -> i64 {
    warm_up(live);
    let before = live();
    let mut kept = Kept::allocate(1 << 20);
    thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(1);
                for _ in 0..10_000 {
                    Kept::allocate(random.usize(1..2_000)).free();
                }
            })
        });
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    let error = difference(live(), before, 1 << 20);
    kept.free();
    if error == 0 {
        difference(live(), before, 0)
    } else {
        error
    }
}

/// The pieces that threads hold: many small ones rather than one large one.
const PIECE: usize = 100;

fn held(live: fn() -> usize) -> i64 {
    const PIECES: usize = 150;
    warm_up(live);
    let barrier = Barrier::new(THREADS + 1);
    let mut room: Vec<Vec<Kept>> = (0..THREADS)
        .map(|_| (0..PIECES).map(|_| Kept::nothing()).collect())
        .collect();
    thread::scope(|scope| {
        for mine in &mut room {
            scope.spawn(|| {
                barrier.wait();
                barrier.wait();
                mine.fill_with(|| Kept::allocate(PIECE));
                barrier.wait();
                barrier.wait();
                mine.iter_mut().for_each(Kept::free);
            });
        }
        barrier.wait();
        let before = live();
        barrier.wait();
        barrier.wait();
        let after = live();
        barrier.wait();
        difference(after, before, THREADS * PIECES * PIECE)
    })
}

fn frees_first(live: fn() -> usize) -> i64 {
    const PIECES: usize = 600;
    warm_up(live);
    let barrier = Barrier::new(THREADS + 1);
    let room: Vec<Vec<AtomicPtr<u8>>> = (0..THREADS)
        .map(|_| (0..PIECES).map(|_| AtomicPtr::default()).collect())
        .collect();
    let before = live();
    thread::scope(|scope| {
        let threads: Vec<_> = room
            .iter()
            .map(|mine| {
                let barrier = &barrier;
                scope.spawn(move || {
                    for slot in mine {
                        let piece = Kept::allocate(PIECE);
                        slot.store(piece.block.into_inner(), Relaxed);
                    }
                    barrier.wait();
                    barrier.wait();
                })
            })
            .collect();
        barrier.wait();
        for slot in room.iter().flatten() {
            let layout = Layout::array::<u8>(PIECE).expect("a small layout");
            Kept {
                block: AtomicPtr::new(slot.load(Relaxed)),
                layout,
            }
            .free();
        }
        barrier.wait();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
    difference(live(), before, 0)
}

fn ended(live: fn() -> usize) -> i64 {
    const ENDED: usize = 1_000;
    const BYTES: usize = 15_000;
    warm_up(live);
    let room: Vec<AtomicPtr<u8>> = (0..ENDED).map(|_| AtomicPtr::default()).collect();
    let before = live();
    for slot in &room {
        on_threads(1, || {
            slot.store(Kept::allocate(BYTES).block.into_inner(), Relaxed)
        });
    }
    difference(live(), before, ENDED * BYTES)
}

fn refused(live: fn() -> usize) -> i64 {
    let mut kept = Kept::allocate(1_000);
    let before = live();
    // SAFETY: from `alloc` with this layout; the new size is not zero and does not overflow.
    let moved = unsafe {
        realloc(
            kept.block.load(Relaxed),
            kept.layout,
            black_box(isize::MAX as usize - 4_096),
        )
    };
    assert!(moved.is_null(), "no machine has this much");
    let error = difference(live(), before, 0);
    kept.free();
    error
}

/// Returns the resident bytes of the process; 0 where the system does not tell.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        let figure = line.strip_prefix("VmRSS:")?;
        figure.trim().trim_end_matches(" kB").parse::<usize>().ok()
    });
    kib.unwrap_or(0) * 1024
}

fn zeroed() -> i64 {
    let before = resident();
    let layout = Layout::array::<u8>(512 << 20).expect("a layout");
    // SAFETY: the size is not zero.
    let block = black_box(unsafe { alloc_zeroed(black_box(layout)) });
    assert!(!block.is_null(), "512 MiB refused");
    let error = difference(resident(), before, 0);
    // SAFETY: from the allocator with this layout.
    unsafe { dealloc(block, layout) };
    error
}

fn resized() -> i64 {
    let before = resident();
    let layout = Layout::array::<u8>(256 << 20).expect("a layout");
    // SAFETY: the size is not zero.
    let block = black_box(unsafe { alloc(black_box(layout)) });
    assert!(!block.is_null(), "256 MiB refused");
    // SAFETY: from the allocator with this layout; the size is not zero.
    let block = black_box(unsafe { realloc(block, layout, 512 << 20) });
    assert!(!block.is_null(), "512 MiB refused");
    let error = difference(resident(), before, 0);
    let layout = Layout::array::<u8>(512 << 20).expect("a layout");
    // SAFETY: from the allocator, and last of this layout.
    unsafe { dealloc(block, layout) };
    error
}
