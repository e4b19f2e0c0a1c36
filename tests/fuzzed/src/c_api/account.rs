//! An account beside plain numbers.

use std::ptr;

use tally_alloc::MAX_THRESHOLD;
use tally_alloc_capi::*;

use super::block::{Block, Kind};
use super::trigger::{Choice, Watching};

/// What may be live, more than any process has.
const MOST: usize = usize::MAX / 4 * 3;

/// Triggers of one account at the most.
const TRIGGERS: usize = 4;

pub(super) struct Model {
    account: *mut Account,
    exact: bool,
    threshold: usize,
    totals: CTotals,
    blocks: Vec<Block>,
    charges: Vec<usize>,
    triggers: Vec<Watching>,
    /// The highest published live bytes that were read since the peak was reset.
    highest: usize,
}

/// Returns one of them, if there are any.
fn place<T>(all: &[T], index: u8) -> Option<usize> {
    (!all.is_empty()).then(|| usize::from(index) % all.len())
}

impl Model {
    pub(super) fn new(exact: bool) -> Self {
        let mut account = ptr::null_mut();
        let mode = if exact { TALLY_EXACT } else { TALLY_BATCHED };
        // SAFETY: valid for a write.
        let status = unsafe { tally_account_create(mode, &raw mut account) };
        assert_eq!(status, TallyStatus::TALLY_OK);
        assert!(!account.is_null());
        Self {
            account,
            exact,
            threshold: 16 << 10,
            totals: CTotals::default(),
            blocks: Vec::new(),
            charges: Vec::new(),
            triggers: Vec::new(),
            highest: 0,
        }
    }

    pub(super) fn renew(&mut self, mode: u8) {
        let mut account = ptr::dangling_mut();
        // SAFETY: valid for a write.
        let status = unsafe { tally_account_create(u32::from(mode), &raw mut account) };
        if u32::from(mode) > TALLY_EXACT {
            assert_eq!(status, TallyStatus::TALLY_UNKNOWN_MODE);
            assert!(
                account.is_null(),
                "an account was made in a mode that there is not"
            );
            return;
        }
        assert_eq!(status, TallyStatus::TALLY_OK);
        // SAFETY: it is an account, and this its last use.
        unsafe { tally_account_destroy(account) };
        *self = Self::new(u32::from(mode) == TALLY_EXACT);
    }

    fn note_allocated(&mut self, bytes: usize) {
        self.totals.bytes_allocated = self.totals.bytes_allocated.wrapping_add(bytes);
        self.totals.live_bytes += bytes;
        self.reached();
    }

    fn note_deallocated(&mut self, bytes: usize) {
        self.totals.bytes_deallocated = self.totals.bytes_deallocated.wrapping_add(bytes);
        self.totals.live_bytes -= bytes;
    }

    fn note_new(&mut self, bytes: usize) {
        self.totals.allocations += 1;
        self.totals.live_blocks += 1;
        self.note_allocated(bytes);
    }

    fn note_gone(&mut self, bytes: usize) {
        self.totals.deallocations += 1;
        self.totals.live_blocks -= 1;
        self.note_deallocated(bytes);
    }

    fn note_resized(&mut self, old: usize, new: usize) {
        self.totals.reallocations += 1;
        if new >= old {
            self.note_allocated(new - old);
        } else {
            self.note_deallocated(old - new);
        }
    }

    fn reached(&mut self) {
        for trigger in &mut self.triggers {
            trigger.reached(&self.totals);
        }
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.totals
            .live_bytes
            .checked_add(bytes)
            .is_some_and(|sum| sum <= MOST)
    }

    pub(super) fn allocate(&mut self, kind: Kind, size: usize) {
        // Anything that can be had at all is small.
        if !self.has_room_for(1 << 30) {
            return;
        }
        if let Some(Some(block)) = Block::new(self.account, kind, size) {
            self.note_new(block.counted());
            self.blocks.push(block);
        }
    }

    pub(super) fn resize(&mut self, block: u8, size: usize) {
        if !self.has_room_for(1 << 30) {
            return;
        }
        let Some(place) = place(&self.blocks, block) else {
            return;
        };
        let old = self.blocks[place].counted();
        if self.blocks[place].resize(self.account, size) == Some(true) {
            let new = self.blocks[place].counted();
            self.note_resized(old, new);
        }
    }

    pub(super) fn free(&mut self, block: u8) {
        if let Some(place) = place(&self.blocks, block) {
            let block = self.blocks.swap_remove(place);
            self.note_gone(block.counted());
            block.free(self.account);
        }
    }

    pub(super) fn add(&mut self, size: usize) {
        if self.has_room_for(size) {
            // SAFETY: it is an account.
            unsafe { tally_account_add(self.account, size) };
            self.charges.push(size);
            self.note_new(size);
        }
    }

    pub(super) fn sub(&mut self, charge: u8) {
        if let Some(place) = place(&self.charges, charge) {
            let size = self.charges.swap_remove(place);
            // SAFETY: it is an account.
            unsafe { tally_account_sub(self.account, size) };
            self.note_gone(size);
        }
    }

    pub(super) fn change(&mut self, charge: u8, size: usize) {
        if let Some(place) = place(&self.charges, charge)
            && self.has_room_for(size)
        {
            let old = std::mem::replace(&mut self.charges[place], size);
            // SAFETY: it is an account.
            unsafe { tally_account_resize(self.account, old, size) };
            self.note_resized(old, size);
        }
    }

    pub(super) fn set_threshold(&mut self, bytes: usize) {
        // SAFETY: it is an account.
        let status = unsafe { tally_account_set_threshold(self.account, bytes) };
        if bytes > MAX_THRESHOLD {
            assert_eq!(status, TallyStatus::TALLY_THRESHOLD_TOO_LARGE);
        } else {
            assert_eq!(status, TallyStatus::TALLY_OK);
            self.threshold = bytes.max(1);
        }
        // SAFETY: it is an account.
        let threshold = unsafe { tally_account_threshold(self.account) };
        assert_eq!(threshold, self.threshold);
    }

    pub(super) fn flush(&self) {
        // SAFETY: it is an account.
        unsafe { tally_account_flush(self.account) };
        // SAFETY: as above.
        let published = unsafe { tally_account_live_bytes(self.account) };
        assert_eq!(
            published, self.totals.live_bytes,
            "published after the only thread's flush"
        );
    }

    pub(super) fn reset_peak(&mut self) {
        // SAFETY: it is an account.
        unsafe { tally_account_reset_peak(self.account) };
        self.highest = 0;
    }

    pub(super) fn watch(&mut self, choice: Choice, measure: u8) {
        let made = Watching::new(self.account, choice, u32::from(measure), &self.totals);
        if let Some(made) = made
            && self.triggers.len() < TRIGGERS
        {
            self.triggers.push(made);
        }
    }

    pub(super) fn poll(&mut self, trigger: u8, wait: Option<u8>) {
        if let Some(place) = place(&self.triggers, trigger) {
            self.triggers[place].poll(wait, self.exact);
        }
    }

    pub(super) fn announce(&mut self, trigger: u8, amount: usize) {
        if let Some(place) = place(&self.triggers, trigger) {
            self.triggers[place].announce(amount, &self.totals);
        }
    }

    pub(super) fn collected(&mut self, trigger: u8, nanoseconds: u64) {
        if let Some(place) = place(&self.triggers, trigger) {
            self.triggers[place].collected(nanoseconds, &self.totals);
        }
    }

    pub(super) fn unwatch(&mut self, trigger: u8) {
        if let Some(place) = place(&self.triggers, trigger) {
            drop(self.triggers.swap_remove(place));
        }
    }

    pub(super) fn check(&mut self) {
        let mut totals = CTotals::default();
        // SAFETY: it is an account, and the totals are valid for a write.
        let status = unsafe { tally_account_totals(self.account, &raw mut totals) };
        assert_eq!(status, TallyStatus::TALLY_OK);
        assert_eq!(
            totals, self.totals,
            "the totals (left) and the model (right)"
        );
        // SAFETY: as above.
        let status = unsafe { tally_account_thread_totals(self.account, &raw mut totals) };
        assert_eq!(status, TallyStatus::TALLY_OK);
        assert_eq!(
            totals, self.totals,
            "the only thread's totals (left) and the model (right)"
        );
        // SAFETY: it is an account.
        let live = unsafe { tally_account_live_bytes(self.account) };
        // SAFETY: as above.
        let bound = unsafe { tally_account_error_bound(self.account) };
        let off = live.abs_diff(self.totals.live_bytes);
        assert!(
            off <= bound,
            "published {live}, the bound {bound}: {:?}",
            self.totals
        );
        assert!(
            !self.exact || bound == 0,
            "the bound in exact mode is {bound}"
        );
        self.highest = self.highest.max(live);
        // SAFETY: as above.
        let peak = unsafe { tally_account_peak_bytes(self.account) };
        assert!(
            peak >= self.highest,
            "the peak is {peak}, below {}",
            self.highest
        );
        for trigger in &self.triggers {
            trigger.check(&self.totals);
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.triggers.clear();
        for block in self.blocks.drain(..) {
            block.free(self.account);
        }
        // SAFETY: it is an account, and this its last use.
        unsafe { tally_account_destroy(self.account) };
    }
}
