//! Which shard is mine: what a thread knows of its own account, and the way in and out.
//!
//! A thread starts without a shard and without room, so its first operation of any kind takes the
//! slow path, which tells the cases apart:
//!
//! | stage | shard | room | what an operation does |
//! | --- | --- | --- | --- |
//! | `New` | [`NOBODY`] | none | claims a shard, then counts there |
//! | `Batched` | one | some, or looks | counts there |
//! | `Exact` | one, under a threshold of one | none | counts there and publishes it |
//! | `Outside` | [`NOBODY`] | none | counts into the account's shared shard: the thread is claiming its own and something in there allocates, or it has handed its own back |
//!
//! None of this has a destructor, so it can be read as long as the thread runs any code at all. A
//! thread's ownership ends in [`leave`], called by [`exit`].
//!
//! # Signals
//!
//! A shard is updated by loads and stores of its owner. A signal handler that allocates while the same
//! thread is in here may undo an update; but a handler that allocates is already outside what `malloc`
//! permits.

use std::cell::Cell;

use crate::account::Account;
use crate::exit;
use crate::hard_limit::Admission;
use crate::ledger::{Attention, Ledger};
use crate::operation::Operation;
use crate::room::Room;
use crate::shard::Shard;
use crate::totals::Totals;
use crate::watch::Watched;

/// The process's account.
pub(crate) static ACCOUNT: Account = Account::new();

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Batched,
    Exact,
    Outside,
}

struct Local {
    /// Room in the shard; none unless there is a shard and the thread counts in batches.
    room: Room,
    /// The thread's shard in the stages `Batched` and `Exact`, else `NOBODY`.
    shard: Cell<&'static Shard>,
    stage: Cell<Stage>,
}

/// Stands where a thread has no shard, so that the fast path need not ask: it counts only where it
/// found room, and there is none here. Never written.
static NOBODY: Shard = Shard::new();

thread_local! {
    static LOCAL: Local = const {
        Local {
            room: Room::none(),
            shard: Cell::new(&NOBODY),
            stage: Cell::new(Stage::New),
        }
    };
}

/// Takes room for an operation; when it returns `false` there was none, and [`look`] must follow once the
/// operation has been done, or [`close_room`] when it failed. When it returns `true`, [`count`] follows if it
/// was done; if it was not, a little room is lost until the next look.
#[inline(always)]
pub(crate) fn take(operation: Operation, bytes: usize) -> bool {
    LOCAL.with(|local| local.room.take(operation, bytes))
}

/// Counts an operation for which there was room.
#[inline(always)]
pub(crate) fn count(operation: Operation, bytes: usize) {
    LOCAL
        .with(|local| local.shard.get())
        .count(operation, bytes);
}

/// Makes the next operation look: room that an operation did not fit into is not to be used again.
#[cold]
#[inline(never)]
pub(crate) fn close_room() {
    LOCAL.with(|local| local.room.set(Room::none()));
}

/// Counts an operation for which there was no room, and publishes what is due.
#[cold]
#[inline(always)]
pub(crate) fn look(operation: Operation, bytes: usize) {
    let (stage, shard) = LOCAL.with(|local| (local.stage.get(), local.shard.get()));
    if stage != Stage::Batched {
        return look_first(operation, bytes);
    }
    shard.count(operation, bytes);
    if ACCOUNT.ledger.is_large(shard, bytes) {
        let room = Room::around(0, shard.threshold());
        LOCAL.with(|local| local.room.set(room));
        ACCOUNT.attend(ACCOUNT.ledger.publish_large(shard));
    } else {
        settle(shard, bytes);
    }
}

/// Looks at the thread's shard, after an operation of `bytes` was counted there.
#[inline(never)]
fn settle(shard: &'static Shard, bytes: usize) {
    let make_room = |room| LOCAL.with(|local| local.room.set(room));
    ACCOUNT.attend(ACCOUNT.ledger.settle(shard, bytes, make_room));
}

/// The thread's first operation in batches, or the first since one in exact counting, or one outside.
#[cold]
#[inline(never)]
fn look_first(operation: Operation, bytes: usize) {
    LOCAL.with(|local| match local.enter_batched() {
        Some(shard) => {
            shard.count(operation, bytes);
            settle(shard, bytes);
        }
        None => ACCOUNT.attend(local.publish_outside(operation, bytes)),
    });
}

/// Counts an operation and publishes it at once.
#[inline(always)]
pub(crate) fn count_exact(operation: Operation, bytes: usize) {
    let (stage, shard) = LOCAL.with(|local| (local.stage.get(), local.shard.get()));
    if stage == Stage::Exact {
        ACCOUNT.attend(ACCOUNT.ledger.publish_one(shard, operation, bytes));
    } else {
        first_exact(operation, bytes);
    }
}

/// The thread's first operation in exact counting, or the first since one in batches.
#[cold]
#[inline(never)]
fn first_exact(operation: Operation, bytes: usize) {
    ACCOUNT.attend(publish_exactly(operation, bytes));
}

/// Counts an operation and publishes it, on the thread's shard if it has one.
#[cold]
#[inline(never)]
fn publish_exactly(operation: Operation, bytes: usize) -> Attention {
    LOCAL.with(|local| match local.enter_exact() {
        Some(shard) => ACCOUNT.ledger.publish_one(shard, operation, bytes),
        None => local.publish_outside(operation, bytes),
    })
}

/// Returns whether there is a hard limit.
#[inline(always)]
pub(crate) fn is_limited() -> bool {
    ACCOUNT.ledger.terms.hard_limit() != usize::MAX
}

/// Asks for leave for an operation that has no room, or is to be counted exactly.
pub(crate) fn admit(exact: bool, operation: Operation, bytes: usize) -> Admission {
    if operation.takes_back() || !is_limited() {
        return Admission::Free;
    }
    let (admission, attention) = match LOCAL.with(|local| local.enter_mode(exact)) {
        Some(shard) if !exact => ACCOUNT.ledger.admit_batched(shard, bytes),
        _ => (ACCOUNT.ledger.admit_exact(bytes), Attention::None),
    };
    ACCOUNT.attend(attention);
    admission
}

/// Counts an operation for which as much was `reserved`.
pub(crate) fn count_reserved(exact: bool, operation: Operation, bytes: usize, reserved: usize) {
    let ledger = &ACCOUNT.ledger;
    let batched = LOCAL
        .with(|local| local.enter_mode(exact))
        .filter(|_| !exact);
    let attention = match batched {
        Some(shard) => {
            shard.count(operation, bytes);
            ledger.publish(shard)
        }
        None => publish_exactly(operation, bytes),
    };
    ledger.release_reserved(reserved);
    if let Some(shard) = batched {
        settle(shard, 0);
    }
    ACCOUNT.attend(attention);
}

/// Takes back what was reserved for an operation that failed.
pub(crate) fn cancel(exact: bool, reserved: usize) {
    ACCOUNT.ledger.release_reserved(reserved);
    let shard = LOCAL.with(|local| local.enter_mode(exact));
    match shard.filter(|_| !exact) {
        Some(shard) => settle(shard, 0),
        None => close_room(),
    }
}

impl Local {
    /// Takes over what a look has left, and only then goes into what it has set off.
    fn adopt(&self, (room, attention): (Room, Attention)) {
        self.room.set(room);
        ACCOUNT.attend(attention);
    }

    /// Returns the thread's shard, counting in batches.
    fn enter_batched(&self) -> Option<&'static Shard> {
        let shard = self.enter(|| ACCOUNT.ledger.terms.threshold())?;
        if self.stage.replace(Stage::Batched) == Stage::Exact {
            Ledger::note_all_published(shard);
        }
        Some(shard)
    }

    /// Returns the thread's shard, counting exactly: under a threshold of one, where it adds nothing to the
    /// error bound, and without room.
    fn enter_exact(&self) -> Option<&'static Shard> {
        let shard = self.enter(|| 1)?;
        if self.stage.replace(Stage::Exact) == Stage::Batched {
            self.adopt((Room::none(), ACCOUNT.ledger.tighten(shard)));
        }
        Some(shard)
    }

    /// Returns the thread's shard, counting in the mode that an operation is of.
    #[cold]
    #[inline(never)]
    fn enter_mode(&self, exact: bool) -> Option<&'static Shard> {
        if exact {
            self.enter_exact()
        } else {
            self.enter_batched()
        }
    }

    fn publish_outside(&self, operation: Operation, bytes: usize) -> Attention {
        // What did not fit was taken off all the same, and must not run out of numbers.
        self.room.set(Room::none());
        ACCOUNT.publish_outside(operation, bytes)
    }

    /// Returns the thread's shard; a new thread claims one, under `threshold`.
    #[inline]
    fn enter(&self, threshold: impl Fn() -> usize) -> Option<&'static Shard> {
        if self.stage.get() == Stage::New {
            self.claim(threshold());
        }
        self.owned()
    }

    /// Claims a shard. In the meantime the stage is `Outside`, so an allocation made on the way is counted
    /// and does not come back here.
    #[cold]
    #[inline(never)]
    fn claim(&self, threshold: usize) {
        self.stage.set(Stage::Outside);
        let claimed = exit::arm(leave).then(|| ACCOUNT.claim(threshold)).flatten();
        if let Some((shard, room)) = claimed {
            self.shard.set(shard);
            self.room.set(room);
            self.stage.set(Stage::Batched);
        } else {
            self.stage.set(Stage::New);
        }
    }

    fn owned(&self) -> Option<&'static Shard> {
        matches!(self.stage.get(), Stage::Batched | Stage::Exact).then(|| self.shard.get())
    }
}

/// Hands the calling thread's shard back; what it still does is counted outside. In the C ABI, since a call
/// through a pointer could otherwise unwind for all the compiler knows.
extern "C" fn leave() {
    LOCAL.with(|local| {
        let Some(shard) = local.owned() else { return };
        local.room.set(Room::none());
        local.shard.set(&NOBODY);
        if local.stage.replace(Stage::Outside) == Stage::Exact {
            Ledger::note_all_published(shard);
        }
        ACCOUNT.release(shard);
    });
}

/// Publishes what the calling thread has pending.
pub(crate) fn flush() {
    LOCAL.with(|local| {
        // Exact counting has nothing pending, and keeps to its own threshold.
        if local.stage.get() == Stage::Batched {
            local.adopt(ACCOUNT.ledger.flush(local.shard.get()));
        }
    });
}

/// Returns what the calling thread has counted since it claimed its shard: since its first
/// operation. Zero before that and after the thread has handed it back.
pub(crate) fn totals() -> Totals {
    LOCAL.with(|local| local.owned().map(Shard::owner_totals).unwrap_or_default())
}
