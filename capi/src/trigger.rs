//! Triggers, as C sees them: when to collect, asked at safepoints or waited for. Nothing calls back.

#![allow(unsafe_code, reason = "takes pointers from C")]

use std::alloc::{self, Layout};
use std::ptr;
use std::time::Duration;

use tally_alloc::policy::{
    Cycle, EveryBytes, FixedLimit, Increment, Policy, PolicyError, Proportional, SquareRoot,
};
use tally_alloc::{Announcement, Measure, Trigger as Watching};

use crate::account::Account;
use crate::status::TallyStatus;

/// A trigger's limit is one of live bytes.
pub const TALLY_LIVE_BYTES: u32 = 0;

/// A trigger's limit is one of live blocks.
pub const TALLY_LIVE_BLOCKS: u32 = 1;

/// A trigger's limit is one of the bytes allocated since the last collection, freed or not.
pub const TALLY_ALLOCATED_BYTES: u32 = 2;

/// What becomes of a request that was announced.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "the names that C programs use")]
pub enum TallyAnnouncement {
    /// It fits below the limit.
    TALLY_FITS = 0,
    /// It does not, and a collection is due that will take it into account: collect, and announce again.
    TALLY_COLLECT = 1,
    /// It did not fit even after such a collection.
    TALLY_REFUSED = 2,
}

/// What a trigger has seen and done.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CReport {
    /// Collections that have ended.
    pub cycles: u64,
    /// Nanoseconds spent collecting, as they were reported.
    pub collecting: u64,
    /// Nanoseconds in between, up to the last collection.
    pub mutating: u64,
    /// Bytes allocated, up to the last collection.
    pub bytes_allocated: u64,
    /// How often the policy has grown its reserve.
    pub growth_steps: u64,
    /// The limit in force, in the trigger's measure.
    pub limit: usize,
    /// What is left below it.
    pub headroom: usize,
}

/// Decides when to collect: it watches one figure of an account and is due once the figure reaches the
/// limit that its policy has set. Never due below the limit, and due at the latest when a thread publishes
/// at or above it. Any thread may use it; it must be destroyed before its account.
#[derive(Debug)]
pub struct Trigger(Watching<'static, Choice>);

/// The policies that C can name: kept in place, so that making one allocates nothing.
#[derive(Debug)]
enum Choice {
    Fixed(FixedLimit),
    Increment(Increment),
    Proportional(Proportional),
    SquareRoot(SquareRoot),
    Every(EveryBytes),
}

impl Choice {
    fn policy(&self) -> &dyn Policy {
        match self {
            Self::Fixed(policy) => policy,
            Self::Increment(policy) => policy,
            Self::Proportional(policy) => policy,
            Self::SquareRoot(policy) => policy,
            Self::Every(policy) => policy,
        }
    }
}

impl Policy for Choice {
    fn initial_limit(&self) -> usize {
        self.policy().initial_limit()
    }

    fn next_limit(&mut self, cycle: &Cycle) -> usize {
        match self {
            Self::Fixed(policy) => policy.next_limit(cycle),
            Self::Increment(policy) => policy.next_limit(cycle),
            Self::Proportional(policy) => policy.next_limit(cycle),
            Self::SquareRoot(policy) => policy.next_limit(cycle),
            Self::Every(policy) => policy.next_limit(cycle),
        }
    }

    fn growth_steps(&self) -> u64 {
        self.policy().growth_steps()
    }
}

/// # Safety
///
/// `account` is null or an account that outlives the trigger; `trigger` is null or valid for a write.
unsafe fn create(
    account: *const Account,
    measure: u32,
    policy: Result<Choice, PolicyError>,
    trigger: *mut *mut Trigger,
) -> TallyStatus {
    if trigger.is_null() {
        return TallyStatus::TALLY_NULL_POINTER;
    }
    // SAFETY: not null, so the caller vouches for it.
    unsafe { trigger.write(ptr::null_mut()) };
    // SAFETY: null or an account, which the caller keeps until the trigger is gone.
    let Some(account) = (unsafe { account.as_ref::<'static>() }) else {
        return TallyStatus::TALLY_NULL_POINTER;
    };
    let measure = match measure {
        TALLY_LIVE_BYTES => Measure::LiveBytes,
        TALLY_LIVE_BLOCKS => Measure::LiveBlocks,
        TALLY_ALLOCATED_BYTES => Measure::AllocatedBytes,
        _ => return TallyStatus::TALLY_UNKNOWN_MEASURE,
    };
    let Ok(policy) = policy else {
        return TallyStatus::TALLY_BAD_PARAMETER;
    };
    let made = match account {
        Account::Batched(counter) => Watching::new(counter, measure, policy),
        Account::Exact(counter) => Watching::new(counter, measure, policy),
    };
    let Ok(made) = made else {
        return TallyStatus::TALLY_NO_MEMORY;
    };
    // Not `Box::new`, which stops the program when there is no memory.
    // SAFETY: a trigger is not of size zero.
    let memory = unsafe { alloc::alloc(Layout::new::<Trigger>()) }.cast::<Trigger>();
    if memory.is_null() {
        return TallyStatus::TALLY_NO_MEMORY;
    }
    // SAFETY: just allocated, for a trigger.
    unsafe { memory.write(Trigger(made)) };
    // SAFETY: as above.
    unsafe { trigger.write(memory) };
    TallyStatus::TALLY_OK
}

/// Makes a trigger with a constant limit and stores it in `*trigger`. `measure` is `TALLY_LIVE_BYTES`,
/// `TALLY_LIVE_BLOCKS` or `TALLY_ALLOCATED_BYTES`.
///
/// Fails with `TALLY_NULL_POINTER`, and else with null in `*trigger` and `TALLY_UNKNOWN_MEASURE`,
/// `TALLY_BAD_PARAMETER` for a limit of 0, or `TALLY_NO_MEMORY`.
///
/// # Safety
///
/// `account` is null or an account that is destroyed after the trigger; `trigger` is null or valid for a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_create_fixed(
    account: *const Account,
    measure: u32,
    limit: usize,
    trigger: *mut *mut Trigger,
) -> TallyStatus {
    let policy = FixedLimit::new(limit).map(Choice::Fixed);
    // SAFETY: by the caller's word.
    unsafe { create(account, measure, policy, trigger) }
}

/// Makes a trigger whose limit is `initial` at first and grows by multiples of `increment`, never shrinking,
/// when two collections in a row leave less than one increment free. Both must be above 0; else as
/// `tally_trigger_create_fixed`.
///
/// # Safety
///
/// As for `tally_trigger_create_fixed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_create_increment(
    account: *const Account,
    measure: u32,
    initial: usize,
    increment: usize,
    trigger: *mut *mut Trigger,
) -> TallyStatus {
    let policy = Increment::new(initial, increment).map(Choice::Increment);
    // SAFETY: by the caller's word.
    unsafe { create(account, measure, policy, trigger) }
}

/// Makes a trigger whose limit leaves `growth` times what is live after a collection as headroom, from `min`
/// to `max`. `growth` and `min` must be above 0 and `max` not below `min`; else as
/// `tally_trigger_create_fixed`.
///
/// # Safety
///
/// As for `tally_trigger_create_fixed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_create_proportional(
    account: *const Account,
    measure: u32,
    growth: f64,
    min: usize,
    max: usize,
    trigger: *mut *mut Trigger,
) -> TallyStatus {
    let policy = Proportional::new(growth, min..=max).map(Choice::Proportional);
    // SAFETY: by the caller's word.
    unsafe { create(account, measure, policy, trigger) }
}

/// Makes a trigger whose headroom grows with the square root of live bytes and of the rate of allocation, from
/// `min` to `max`: of all limits with the same total, the ones that cost least time when several heaps share a
/// machine. `c` is the price of memory as a share of time per byte: 1e-10 is 1 % of the time for 100 MB. `c`
/// and `min` must be above 0 and `max` not below `min`; else as `tally_trigger_create_fixed`.
///
/// # Safety
///
/// As for `tally_trigger_create_fixed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_create_square_root(
    account: *const Account,
    measure: u32,
    c: f64,
    min: usize,
    max: usize,
    trigger: *mut *mut Trigger,
) -> TallyStatus {
    let policy = SquareRoot::new(c, min..=max).map(Choice::SquareRoot);
    // SAFETY: by the caller's word.
    unsafe { create(account, measure, policy, trigger) }
}

/// Makes a trigger that is due after every `interval` bytes allocated: for stress testing. The interval must be
/// above 0; else as `tally_trigger_create_fixed`.
///
/// # Safety
///
/// As for `tally_trigger_create_fixed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_create_every_bytes(
    account: *const Account,
    interval: usize,
    trigger: *mut *mut Trigger,
) -> TallyStatus {
    let policy = EveryBytes::new(interval).map(Choice::Every);
    // SAFETY: by the caller's word.
    unsafe { create(account, TALLY_ALLOCATED_BYTES, policy, trigger) }
}

/// Destroys a trigger; null is ignored.
///
/// # Safety
///
/// `trigger` is null or a trigger that nobody uses any more, and its account is still there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_destroy(trigger: *mut Trigger) {
    if !trigger.is_null() {
        // SAFETY: made by `create`, from the allocator and with the layout of a box, and by the
        // caller's word this is its last use.
        drop(unsafe { Box::from_raw(trigger) });
    }
}

/// Returns whether a collection is due and the caller is the one to run it: of all threads that poll or wait,
/// one gets `true` for each crossing, and must call `tally_trigger_collected` afterwards. One load when nothing
/// is due. `false` for null.
///
/// # Safety
///
/// `trigger` is null or a trigger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_poll(trigger: *const Trigger) -> bool {
    // SAFETY: by the caller's word.
    unsafe { trigger.as_ref() }.is_some_and(|trigger| trigger.0.poll())
}

/// Sleeps until a collection is due and the caller is the one to run it, but no longer than `nanoseconds`; returns
/// whether it is. For a thread of its own that collects. `false` at once for null.
///
/// # Safety
///
/// `trigger` is null or a trigger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_wait(trigger: *const Trigger, nanoseconds: u64) -> bool {
    // SAFETY: by the caller's word.
    unsafe { trigger.as_ref() }
        .is_some_and(|trigger| trigger.0.wait_timeout(Duration::from_nanos(nanoseconds)))
}

/// Announces that `amount` (in the trigger's measure) is about to be allocated in one go, so that a collection can
/// make room first. `TALLY_FITS` for null.
///
/// # Safety
///
/// `trigger` is null or a trigger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_announce(
    trigger: *const Trigger,
    amount: usize,
) -> TallyAnnouncement {
    // SAFETY: by the caller's word.
    let answer = unsafe { trigger.as_ref() }.map(|trigger| trigger.0.announce(amount));
    match answer {
        None | Some(Announcement::Fits) => TallyAnnouncement::TALLY_FITS,
        Some(Announcement::Collect) => TallyAnnouncement::TALLY_COLLECT,
        Some(Announcement::Refused) => TallyAnnouncement::TALLY_REFUSED,
    }
}

/// Ends a cycle: the collection took `nanoseconds`. The policy sets the next limit; the trigger is due at once if
/// that is reached already. May also be called after a collection that the trigger did not ask for. Null is
/// ignored.
///
/// # Safety
///
/// `trigger` is null or a trigger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_collected(trigger: *const Trigger, nanoseconds: u64) {
    // SAFETY: by the caller's word.
    if let Some(trigger) = unsafe { trigger.as_ref() } {
        trigger.0.collected(Duration::from_nanos(nanoseconds));
    }
}

/// Returns the limit in force, in the trigger's measure. 0 for null.
///
/// # Safety
///
/// `trigger` is null or a trigger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_limit(trigger: *const Trigger) -> usize {
    // SAFETY: by the caller's word.
    unsafe { trigger.as_ref() }.map_or(0, |trigger| trigger.0.limit())
}

/// Returns what is left below the limit, by the exact figure; 0 when it is reached, and for null.
///
/// # Safety
///
/// `trigger` is null or a trigger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_headroom(trigger: *const Trigger) -> usize {
    // SAFETY: by the caller's word.
    unsafe { trigger.as_ref() }.map_or(0, |trigger| trigger.0.headroom())
}

/// Stores in `*report` what the trigger has seen and done. Fails with `TALLY_NULL_POINTER` if either is null.
///
/// # Safety
///
/// `trigger` is null or a trigger; `report` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_trigger_report(
    trigger: *const Trigger,
    report: *mut CReport,
) -> TallyStatus {
    // SAFETY: by the caller's word.
    let trigger = unsafe { trigger.as_ref() };
    let (Some(trigger), false) = (trigger, report.is_null()) else {
        return TallyStatus::TALLY_NULL_POINTER;
    };
    let seen = trigger.0.report();
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let made = CReport {
        cycles: seen.cycles,
        collecting: nanoseconds(seen.collecting),
        mutating: nanoseconds(seen.mutating),
        bytes_allocated: seen.bytes_allocated,
        growth_steps: seen.growth_steps,
        limit: seen.limit,
        headroom: seen.headroom,
    };
    // SAFETY: not null, so the caller vouches for it.
    unsafe { report.write(made) };
    TallyStatus::TALLY_OK
}
