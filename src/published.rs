//! The shared cache line: the published totals; and beside it their peak, and the marks they are compared with.
//!
//! # Two cache lines
//!
//! Every publish writes to the totals, so their line goes from processor to processor. A publish then compares what they
//! came to with the peak and with the marks, which seldom change. On the same line those would be gone again by the
//! time they are read, and would have to be fetched back: *pair 16384 B* on 8 threads, which does nothing but publish,
//! took half as long again. So they lie on a line of their own, of which every processor can keep a copy.
//!
//! # The peak
//!
//! A publish that changes the total adds first and raises the peak second, to the higher
//! of the totals before and after. In between, a reader could see the total but not the
//! peak; so readers of the total raise the peak too, before they return what they saw.
//! Hence: no figure that [`Published::live_bytes`] has returned is above any peak read after
//! it, and once publishes are done the peak is the highest total there was (model:
//! `the_peak_is_never_below_a_live_figure_read_before_it`).
//!
//! # Starting the peak anew
//!
//! [`Published::restart_peak`] starts it from the total of that moment, for whoever wants a peak of his own
//! ([`peaks`](crate::peaks)), and the figure that it had is not lost: it goes into `earlier_peak` first, and
//! the account's peak is the higher of the two. The peak is taken down by a compare-and-swap from the very
//! figure that was kept, so nothing that a publish adds in between falls out.
//!
//! Whoever reads the peak reads `earlier_peak` after it. If it finds the peak taken down (`Release`, and every
//! later change is a read-modify-write; `Acquire`) it finds there what it had been, so a restart is invisible
//! to it (model: `a_restart_hides_no_peak_from_a_reader`).
//!
//! A publish compares with a peak that may be old, and one from before a restart would keep it from raising the
//! new one. So a restart, once the peak is down, adds nothing to the total, which makes it one of the changes
//! of the total. Publishes that come after it there see the peak taken down; what the others added is in the
//! total that the new peak starts from (model: `a_restarted_peak_has_every_total_since`).
//!
//! # Memory orderings
//!
//! Most others are `Relaxed`. Each figure here is one atomic, so coherence alone gives every claim about it: an add is
//! seen by everything ordered after it, and the peak, which only grows between resets, is never seen to shrink.
//!
//! The totals' `fetch_add`s are `AcqRel` for the sake of limits. A publish adds to the total, then reads the
//! mark; an arming writes the mark, then adds nothing to the total, then sums. One of the two adds comes first. If
//! the publish's, the arming is ordered after the publishing thread's counts, and its sum contains them. If the
//! arming's, the publish is ordered after the mark, and consults (model:
//! `no_crossing_is_lost_between_a_publish_and_an_arming`).

use crossbeam_utils::CachePadded;

use crate::operation::{Net, Operation};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicUsize, const_fn};

/// The total that stands for nothing live. What is below stands for a number below zero: bytes
/// freed by threads that have published, allocated by threads that have not. Error bounds
/// stay far below this eighth of the range, and no process has the other seven live. So totals, peak and
/// marks compare as plain numbers, whatever they stand for.
const ZERO: usize = usize::MAX / 8;

/// Returns the live figure that a shared total stands for.
pub(crate) const fn live(total: usize) -> usize {
    total.saturating_sub(ZERO)
}

/// Adds to a total; returns it as it was before and as it is after.
#[inline(always)]
fn change(total: &AtomicUsize, by: isize) -> (usize, usize) {
    let by = by.cast_unsigned();
    let before = total.fetch_add(by, AcqRel);
    (before, before.wrapping_add(by))
}

/// The bound on the error of published blocks, from that of bytes: a shard under threshold `t` leaves at
/// most `(t − 1) / 16` blocks pending when it has looked, and between two looks at most `t − 1` bytes
/// pass on a side, a block each: no more than `2 (t − 1)` in all.
pub(crate) const fn blocks_bound(error_bound: usize) -> usize {
    error_bound.saturating_mul(2)
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Published {
    shared: CachePadded<Shared>,
    /// The highest total of bytes since the last restart. Raised by publishes and readers.
    peak: AtomicUsize,
    /// The totals at the lowest limits in force, or lower; `usize::MAX` without one. Written by triggers.
    bytes_mark: AtomicUsize,
    blocks_mark: AtomicUsize,
    /// The highest total of bytes from the last reset to the last restart. Raised by restarts.
    earlier_peak: AtomicUsize,
}

/// What every publish writes to, and nothing else.
#[derive(Debug)]
struct Shared {
    /// Added to by publishes; read by anyone. From [`ZERO`] up, as are the peak and the marks.
    bytes: AtomicUsize,
    blocks: AtomicUsize,
}

impl Published {
    const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                shared: CachePadded::new(Shared {
                    bytes: AtomicUsize::new(ZERO),
                    blocks: AtomicUsize::new(ZERO),
                }),
                peak: AtomicUsize::new(ZERO),
                bytes_mark: AtomicUsize::new(usize::MAX),
                blocks_mark: AtomicUsize::new(usize::MAX),
                earlier_peak: AtomicUsize::new(ZERO),
            }
        }
    }

    /// Adds to the totals; returns whether one of them, off by as much as `error_bound` bytes, may have
    /// reached its mark. The bound is asked for once the totals are added to.
    #[inline]
    pub(crate) fn add(&self, net: Net, error_bound: impl Fn() -> usize) -> bool {
        let blocks = (net.blocks != 0).then(|| change(&self.shared.blocks, net.blocks).1);
        let bytes = (net.bytes != 0).then(|| {
            let (before, after) = change(&self.shared.bytes, net.bytes);
            self.raise_peak(before.max(after));
            after
        });
        let bound = error_bound();
        blocks.is_some_and(|total| self.is_near_in_blocks(total, bound))
            || bytes.is_some_and(|total| self.is_near_in_bytes(total, bound))
    }

    /// Does the same for one operation, whose direction is known where it is compiled.
    #[inline(always)]
    pub(crate) fn add_one(
        &self,
        operation: Operation,
        bytes: usize,
        error_bound: impl Fn() -> usize,
    ) -> bool {
        let net = Net::of(operation, bytes);
        let blocks = (net.blocks != 0).then(|| change(&self.shared.blocks, net.blocks).1);
        let (before, after) = change(&self.shared.bytes, net.bytes);
        self.raise_peak(if operation.takes_back() {
            before
        } else {
            after
        });
        let bound = error_bound();
        blocks.is_some_and(|total| self.is_near_in_blocks(total, bound))
            || self.is_near_in_bytes(after, bound)
    }

    #[inline(always)]
    fn is_near_in_bytes(&self, total: usize, bound: usize) -> bool {
        total.saturating_add(bound) >= self.bytes_mark.load(Relaxed)
    }

    #[inline(always)]
    fn is_near_in_blocks(&self, total: usize, bound: usize) -> bool {
        total.saturating_add(blocks_bound(bound)) >= self.blocks_mark.load(Relaxed)
    }

    /// Returns the live bytes, ordered with every change of them.
    pub(crate) fn latest_live_bytes(&self) -> usize {
        live(self.shared.bytes.fetch_add(0, AcqRel))
    }

    #[inline(always)]
    fn raise_peak(&self, total: usize) {
        if total > self.peak.load(Relaxed) {
            self.peak.fetch_max(total, Relaxed);
        }
    }

    /// Returns the live bytes, after making sure that the peak is no lower.
    #[inline]
    pub(crate) fn live_bytes(&self) -> usize {
        live(self.total_below_peak())
    }

    #[inline]
    fn total_below_peak(&self) -> usize {
        let total = self.shared.bytes.load(Acquire);
        self.raise_peak(total);
        total
    }

    /// Returns the live blocks.
    pub(crate) fn live_blocks(&self) -> usize {
        live(self.shared.blocks.load(Acquire))
    }

    /// Returns the highest live bytes since the last reset.
    pub(crate) fn peak_bytes(&self) -> usize {
        live(self.peak_with(&self.earlier_peak))
    }

    /// Returns the highest live bytes since the restart after which `kept` began to be raised.
    pub(crate) fn peak_bytes_since(&self, kept: &AtomicUsize) -> usize {
        live(self.peak_with(kept))
    }

    fn peak_with(&self, kept: &AtomicUsize) -> usize {
        let total = self.total_below_peak();
        let peak = self.peak.load(Acquire);
        total.max(peak).max(kept.load(Relaxed))
    }

    /// Starts the peak anew from the total of now, having raised the account's own to what it was and given that to
    /// `keep`, to raise others to: the last time it is called, for good. Returns that total of now, which belongs to the
    /// new peak. A publish that is under way counts as coming after. One caller at a time.
    pub(crate) fn restart_peak(&self, keep: impl Fn(usize)) -> usize {
        let mut peak = self.peak.load(Relaxed);
        loop {
            self.earlier_peak.fetch_max(peak, Relaxed);
            keep(peak);
            match self
                .peak
                .compare_exchange_weak(peak, ZERO, Release, Relaxed)
            {
                Ok(_) => break,
                Err(now) => peak = now,
            }
        }
        self.shared.bytes.fetch_add(0, AcqRel)
    }

    /// Forgets the account's own peak of the time before the restart that returned `total`. One caller at a time, and
    /// none that restarts.
    pub(crate) fn forget_earlier_peak(&self, total: usize) {
        // A swap for the models' sake: loom orders the writes to a variable among read-modify-writes,
        // and with a plain store shows the peak going back.
        self.earlier_peak.swap(total, Relaxed);
    }

    /// Sets the marks to limits, `usize::MAX` for none; or, to have every publish look, below all totals.
    /// Publishes that come after see them; the caller is ordered after those that came
    /// before, and has to look for itself whether they have reached a mark.
    pub(crate) fn set_marks(&self, bytes: usize, blocks: usize, every_publish: bool) {
        let mark = |limit: usize| {
            if every_publish {
                0
            } else {
                limit.saturating_add(ZERO)
            }
        };
        self.bytes_mark.store(mark(bytes), Relaxed);
        self.blocks_mark.store(mark(blocks), Relaxed);
        self.shared.bytes.fetch_add(0, AcqRel);
        self.shared.blocks.fetch_add(0, AcqRel);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Published, blocks_bound};
    use crate::operation::{Net, Operation};

    fn operations() -> impl Strategy<Value = (Operation, usize)> {
        let operation = prop_oneof![
            Just(Operation::Allocate),
            Just(Operation::Deallocate),
            Just(Operation::Grow),
            Just(Operation::Shrink),
        ];
        (operation, 0..=1_000_usize)
    }

    /// A limit near what the operations come to, none at all, or the highest there is.
    fn limits() -> impl Strategy<Value = usize> {
        prop_oneof![0..=5_000_usize, Just(usize::MAX), Just(usize::MAX - 1)]
    }

    #[test]
    fn the_mark_is_near_from_the_bound_on() {
        for (bound, near) in [(0, false), (39, false), (40, true), (41, true)] {
            let published = Published::new();
            published.set_marks(100, usize::MAX, false);
            let is_near = published.add(Net::of(Operation::Allocate, 60), || bound);
            assert_eq!(is_near, near, "off by {bound}");
        }
    }

    #[test]
    fn the_latest_live_bytes_are_those_that_were_added_last() {
        let published = Published::new();
        for (operation, live) in [(Operation::Allocate, 60), (Operation::Deallocate, 0)] {
            published.add(Net::of(operation, 60), || 0);
            assert_eq!(published.latest_live_bytes(), live);
        }
    }

    #[test]
    fn blocks_may_be_off_by_twice_as_many_as_bytes() {
        for (bytes, blocks) in [(0, 0), (7, 14), (usize::MAX, usize::MAX)] {
            assert_eq!(blocks_bound(bytes), blocks, "off by {bytes} bytes");
        }
    }

    proptest! {
        /// Below zero as well as above, by one operation or by any net, the figures are those of plain
        /// numbers, and near is what the bound can bring to the limit.
        #[test]
        fn totals_compare_as_plain_numbers_below_zero_too(
            operations in vec(operations(), 0..100),
            (bytes_limit, blocks_limit) in (limits(), limits()),
            bound in 0..=3_000_usize,
            reset_at in 0..100_usize,
        ) {
            let (one, any) = (Published::new(), Published::new());
            for published in [&one, &any] {
                published.set_marks(bytes_limit, blocks_limit, false);
            }
            let (mut bytes, mut blocks, mut highest) = (0_i128, 0_i128, 0_i128);
            for (n, (operation, by)) in operations.into_iter().enumerate() {
                if n == reset_at {
                    for published in [&one, &any] {
                        let total = published.restart_peak(|_| ());
                        published.forget_earlier_peak(total);
                    }
                    highest = bytes.max(0);
                }
                let net = Net::of(operation, by);
                bytes += net.bytes as i128;
                blocks += net.blocks as i128;
                highest = highest.max(bytes);
                let near_in_bytes = bytes + bound as i128 >= bytes_limit as i128;
                let most_blocks = blocks + blocks_bound(bound) as i128;
                let near_in_blocks = net.blocks != 0 && most_blocks >= blocks_limit as i128;
                prop_assert_eq!(
                    one.add_one(operation, by, || bound),
                    near_in_bytes || near_in_blocks,
                    "{} bytes and {} blocks off by {}", bytes, blocks, bound
                );
                prop_assert_eq!(
                    any.add(net, || bound),
                    net.bytes != 0 && near_in_bytes || near_in_blocks,
                    "{:?} to {} bytes and {} blocks off by {}", net, bytes, blocks, bound
                );
                for published in [&one, &any] {
                    prop_assert_eq!(published.live_bytes() as i128, bytes.max(0));
                    prop_assert_eq!(published.live_blocks() as i128, blocks.max(0));
                    prop_assert_eq!(published.peak_bytes() as i128, highest);
                }
            }
        }

        /// Whatever the limits are, and wherever the totals.
        #[test]
        fn every_publish_looks_while_all_are_to(
            operations in vec(operations(), 1..20),
            (bytes_limit, blocks_limit) in (limits(), limits()),
        ) {
            let (one, any) = (Published::new(), Published::new());
            for published in [&one, &any] {
                published.set_marks(bytes_limit, blocks_limit, true);
            }
            for (operation, by) in operations {
                prop_assert!(one.add_one(operation, by, || 0), "{:?} of {}", operation, by);
                let net = Net::of(operation, by);
                prop_assert_eq!(any.add(net, || 0), net != Net::default(), "{:?}", net);
            }
        }
    }
}
