//! Triggers of the C interface beside what must hold of them.

use std::ptr;

use arbitrary::Arbitrary;
use tally_alloc_capi::*;

use crate::figures::{Amount, Fraction};

/// A policy, with parameters that may mean nothing.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Choice {
    Fixed(Amount),
    Increment(Amount, Amount),
    Proportional(Fraction, Amount, Amount),
    SquareRoot(Fraction, Amount, Amount),
    Every(Amount),
}

impl Choice {
    fn is_good(self) -> bool {
        let fraction = |it: Fraction| it.get().is_finite() && it.get() > 0.0;
        let range = |min: Amount, max: Amount| 0 < min.get() && min.get() <= max.get();
        match self {
            Self::Fixed(limit) | Self::Every(limit) => limit.get() > 0,
            Self::Increment(initial, step) => initial.get() > 0 && step.get() > 0,
            Self::Proportional(it, min, max) | Self::SquareRoot(it, min, max) => {
                fraction(it) && range(min, max)
            }
        }
    }

    fn create(self, account: *mut Account, measure: u32, to: *mut *mut Trigger) -> TallyStatus {
        match self {
            Self::Fixed(limit) => {
                // SAFETY: of all here, the account outlives the trigger, and `to` is valid for a write or null.
                unsafe { tally_trigger_create_fixed(account, measure, limit.get(), to) }
            }
            Self::Increment(initial, step) => {
                let (initial, step) = (initial.get(), step.get());
                // SAFETY: as above.
                unsafe { tally_trigger_create_increment(account, measure, initial, step, to) }
            }
            Self::Proportional(growth, min, max) => {
                let (growth, min, max) = (growth.get(), min.get(), max.get());
                // SAFETY: as above.
                unsafe { tally_trigger_create_proportional(account, measure, growth, min, max, to) }
            }
            Self::SquareRoot(c, min, max) => {
                let (c, min, max) = (c.get(), min.get(), max.get());
                // SAFETY: as above.
                unsafe { tally_trigger_create_square_root(account, measure, c, min, max, to) }
            }
            Self::Every(interval) => {
                // SAFETY: as above.
                unsafe { tally_trigger_create_every_bytes(account, interval.get(), to) }
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Watching {
    trigger: *mut Trigger,
    measure: u32,
    /// Bytes allocated when the last cycle ended.
    base: usize,
    /// The highest figure since then.
    highest: usize,
    announced: bool,
    taken: bool,
    cycles: u64,
}

impl Watching {
    pub(super) fn new(
        account: *mut Account,
        choice: Choice,
        measure: u32,
        totals: &CTotals,
    ) -> Option<Self> {
        let mut trigger = ptr::dangling_mut();
        let null_account = choice.create(ptr::null_mut(), measure, &raw mut trigger);
        assert_eq!(null_account, TallyStatus::TALLY_NULL_POINTER);
        assert!(trigger.is_null(), "a trigger of no account");
        let null_trigger = choice.create(account, measure, ptr::null_mut());
        assert_eq!(null_trigger, TallyStatus::TALLY_NULL_POINTER);
        let mut trigger = ptr::dangling_mut();
        let status = choice.create(account, measure, &raw mut trigger);
        let every = matches!(choice, Choice::Every(_));
        let expected = if !every && measure > TALLY_ALLOCATED_BYTES {
            TallyStatus::TALLY_UNKNOWN_MEASURE
        } else if !choice.is_good() {
            TallyStatus::TALLY_BAD_PARAMETER
        } else {
            TallyStatus::TALLY_OK
        };
        assert_eq!(status, expected, "{choice:?}, measure {measure}");
        assert_eq!(
            trigger.is_null(),
            status != TallyStatus::TALLY_OK,
            "{choice:?}"
        );
        if trigger.is_null() {
            return None;
        }
        let mut made = Self {
            trigger,
            measure: if every {
                TALLY_ALLOCATED_BYTES
            } else {
                measure
            },
            base: totals.bytes_allocated,
            highest: 0,
            announced: false,
            taken: false,
            cycles: 0,
        };
        made.reached(totals);
        Some(made)
    }

    fn figure(&self, totals: &CTotals) -> usize {
        match self.measure {
            TALLY_LIVE_BYTES => totals.live_bytes,
            TALLY_LIVE_BLOCKS => totals.live_blocks,
            _ => totals.bytes_allocated.wrapping_sub(self.base),
        }
    }

    /// Notes what the figure has come to.
    pub(super) fn reached(&mut self, totals: &CTotals) {
        self.highest = self.highest.max(self.figure(totals));
    }

    fn limit(&self) -> usize {
        // SAFETY: it is a trigger.
        unsafe { tally_trigger_limit(self.trigger) }
    }

    pub(super) fn poll(&mut self, wait: Option<u8>, exact: bool) {
        let due = match wait {
            // SAFETY: it is a trigger.
            None => unsafe { tally_trigger_poll(self.trigger) },
            // SAFETY: as above.
            Some(nanoseconds) => unsafe { tally_trigger_wait(self.trigger, nanoseconds.into()) },
        };
        let reached = self.highest >= self.limit();
        assert!(
            !(due && self.taken),
            "a crossing was given out twice: {self:?}"
        );
        assert!(
            !due || reached || self.announced,
            "due below the limit: {self:?}"
        );
        assert!(
            due || self.taken || !exact || !reached,
            "a crossing was missed: {self:?}"
        );
        self.taken |= due;
    }

    pub(super) fn announce(&mut self, amount: usize, totals: &CTotals) {
        let fits = self.figure(totals).saturating_add(amount) < self.limit();
        // SAFETY: it is a trigger.
        let answer = unsafe { tally_trigger_announce(self.trigger, amount) };
        assert_eq!(
            answer == TallyAnnouncement::TALLY_FITS,
            fits,
            "{amount}, {answer:?}: {self:?}"
        );
        self.announced |= answer == TallyAnnouncement::TALLY_COLLECT;
    }

    pub(super) fn collected(&mut self, nanoseconds: u64, totals: &CTotals) {
        // SAFETY: it is a trigger.
        unsafe { tally_trigger_collected(self.trigger, nanoseconds) };
        self.cycles += 1;
        self.base = totals.bytes_allocated;
        self.highest = self.figure(totals);
        (self.announced, self.taken) = (false, false);
        assert!(self.limit() > self.highest, "no limit was left: {self:?}");
    }

    pub(super) fn check(&self, totals: &CTotals) {
        let mut report = CReport::default();
        // SAFETY: it is a trigger, and the report is valid for a write.
        let status = unsafe { tally_trigger_report(self.trigger, &raw mut report) };
        assert_eq!(status, TallyStatus::TALLY_OK);
        let (limit, figure) = (self.limit(), self.figure(totals));
        assert_eq!(
            (report.cycles, report.limit),
            (self.cycles, limit),
            "{self:?}"
        );
        assert_eq!(report.headroom, limit.saturating_sub(figure), "{self:?}");
        // SAFETY: it is a trigger.
        let headroom = unsafe { tally_trigger_headroom(self.trigger) };
        assert_eq!(headroom, report.headroom);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // SAFETY: it is a trigger, its account is still there, and this is its last use.
        unsafe { tally_trigger_destroy(self.trigger) };
    }
}
