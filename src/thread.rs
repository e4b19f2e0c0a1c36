//! The calling thread, as a counter knows it: a name, and whether it can still be given places.
//!
//! # The end of a thread
//!
//! `thread_local` numbers threads and takes a thread's number back in the destructor of a
//! thread-local of its own. To ask it for a new place after that panics. Nothing says directly that
//! it has happened, but a place that a living thread once had can no longer be found then, so every
//! thread that counts has one in [`ALIVE`]: a thread that has a name and no place there is past
//! that point, and what it still counts goes into the counter's shared shard.
//!
//! One case cannot be seen coming: a thread whose numbering was ended by another user of
//! `thread_local`, and which counts for the first time ever after that, in a still later
//! destructor. There the panic is caught. It has taken no lock and holds nothing.
//!
//! # Re-entrance
//!
//! To give a thread a place allocates. If the allocator charges the same counter, it comes back
//! here before there is a place; what it does is counted into the shared shard as well.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use thread_local::ThreadLocal;

use crate::place::Name;
use crate::remembered;

/// The name of every thread that had none when it could no longer be numbered. It owns no place.
const TOO_LATE: Name = Name::MAX;

/// Has a value for each thread that counts, from its first operation until its number is taken
/// back. (And for later threads with the same number, which have to be found alive anyway.)
static ALIVE: ThreadLocal<()> = ThreadLocal::new();

struct Myself {
    /// 0 until the thread first counts.
    name: Cell<Name>,
    /// The thread is being given a place.
    entering: Cell<bool>,
}

thread_local! {
    // Without a destructor, so it can be read as long as the thread runs any code at all.
    static MYSELF: Myself = const {
        Myself {
            name: Cell::new(0),
            entering: Cell::new(false),
        }
    };
}

/// Returns the calling thread's name, 0 if it has none yet.
#[inline(always)]
pub(crate) fn name() -> Name {
    MYSELF.with(|myself| myself.name.get())
}

/// Runs `enter` with the calling thread's name when the thread can be given a place; `None` when it
/// is just being given one, or when it has come too near to its end.
pub(crate) fn enter<T>(enter: impl FnOnce(Name) -> T) -> Option<T> {
    MYSELF.with(|myself| {
        if myself.entering.replace(true) {
            return None;
        }
        let entered = myself.can_enter().then(|| enter(myself.name.get()));
        myself.entering.set(false);
        entered
    })
}

impl Myself {
    fn can_enter(&self) -> bool {
        match self.name.get() {
            0 => {
                let numbered = panic::catch_unwind(AssertUnwindSafe(|| {
                    ALIVE.get_or(|| ());
                }))
                .is_ok();
                self.name.set(if numbered { new_name() } else { TOO_LATE });
                if numbered {
                    remembered::keep();
                }
                numbered
            }
            TOO_LATE => false,
            _ => ALIVE.get().is_some(),
        }
    }
}

fn new_name() -> Name {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    loop {
        // Wraps on purpose, after four thousand million threads on a 32-bit target.
        let name = LAST.fetch_add(1, Relaxed).wrapping_add(1);
        if name != 0 && name != TOO_LATE {
            return name;
        }
    }
}
