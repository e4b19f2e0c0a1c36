//! A model of machines larger than the one at hand: the share of time that threads lose to publishing.
//!
//! # The model
//!
//! Publishing is what threads do to each other: each publish writes to one cache line, and while one core
//! has the line, the others that want it wait. So a program is a closed queue of `n` customers. A thread works
//! for the time `Z` from one publish to the next, then queues for the line and holds it for the time `S`:
//!
//! > `Z = ⌈threshold / mean⌉ / (2 · rate)`
//!
//! for a thread that makes `rate` allocations a second of `mean` bytes, if it were left alone, and frees as many
//! in phases of their own. This is the worst case: what is freed before it was published is never published,
//! and a thread that frees what it allocates, one by one, publishes nothing at any threshold.
//!
//! > `S = (uncontended + (n − 1) · contended) / n`
//!
//! since the last to have written was oneself once in `n` times, and then the line is still here.
//!
//! How long a thread then waits on average, `R`, is found by mean value analysis (Reiser and Lavenberg,
//! "Mean-Value Analysis of Closed Multichain Queuing Networks", 1980), from `n − 1` threads to `n`:
//!
//! > `R(n) = S · (1 + Q(n − 1))`, `Q(n) = n · R(n) / (Z + R(n))`, `Q(0) = 0`
//!
//! and the share of time lost is `R / (Z + R)`. With few threads that is about `S / Z`. Past `n = 1 + Z / S`
//! the line itself is what limits the program, and whatever else it does, it publishes once every `S`.
//!
//! # Limits
//!
//! * Both times come from a measurement on two processors. The line takes longer between sockets: a factor of
//!   2 to 4 in common measurements, which is why the tables have a column for 4.
//! * The analysis supposes that times between publishes vary (exponentially). Threads in step wait for each other
//!   more than it says at first, and then, having got out of step, less.
//! * The inner allocator is supposed to scale. If it does not, there are fewer publishes, and less is lost to
//!   them.
//! * What counting costs apart from publishing is not in it: that does not depend on other threads, and is
//!   what `overhead` measures.
//! * Threads that wait for a processor do not publish: `n` is the processors, when there are more threads.

/// What a publish costs on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Nanoseconds of one whose line nobody else has taken since.
    pub uncontended: f64,
    /// Nanoseconds of one whose line another core wrote last.
    pub contended: f64,
}

/// What one thread of a program does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// Allocations a second, each of them freed later, if nothing is lost to publishing.
    pub rate: f64,
    /// Mean bytes of one.
    pub mean: f64,
}

impl Machine {
    fn service(&self, threads: usize) -> f64 {
        let threads = threads as f64;
        (self.uncontended + (threads - 1.0) * self.contended) / threads
    }

    /// Returns the share of time, from 0 to 1, that `threads` threads lose to publishing under a threshold of
    /// so many bytes.
    ///
    /// # Panics
    ///
    /// Without threads.
    #[must_use]
    pub fn share_lost(&self, program: Program, threads: usize, threshold: usize) -> f64 {
        assert!(threads > 0, "no threads, no time");
        let work = program.work(threshold);
        let service = self.service(threads);
        let (mut wait, mut queue) = (0.0, 0.0);
        for present in 1..=threads {
            wait = service * (1.0 + queue);
            queue = present as f64 * wait / (work + wait);
        }
        wait / (work + wait)
    }

    /// Returns the smallest threshold, in powers of two from 1 KiB to 1 GiB, under which `threads` threads lose
    /// at most `share` of their time.
    #[must_use]
    pub fn threshold_for(&self, program: Program, threads: usize, share: f64) -> Option<usize> {
        (10..=30)
            .map(|power| 1 << power)
            .find(|&threshold| self.share_lost(program, threads, threshold) <= share)
    }

    /// Returns the machine on which one thread alone, and then two together, lose these shares of their time
    /// under this threshold: the model the other way round. Each is measured on a program of its own, since two
    /// threads may not work as fast as one.
    #[must_use]
    pub fn that_loses(threshold: usize, alone: (Program, f64), together: (Program, f64)) -> Self {
        let (program, lost) = alone;
        let uncontended = program.work(threshold) * lost / (1.0 - lost);
        let at = |contended| Self {
            uncontended,
            contended,
        };
        let (program, lost) = together;
        // More than any line takes.
        let (mut low, mut high) = (0.0, 100_000.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if at(middle).share_lost(program, 2, threshold) < lost {
                low = middle;
            } else {
                high = middle;
            }
        }
        at(high)
    }
}

impl Program {
    /// Nanoseconds from one publish to the next.
    fn work(&self, threshold: usize) -> f64 {
        (threshold as f64 / self.mean).ceil() / (2.0 * self.rate) * 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine {
        uncontended: 10.0,
        contended: 50.0,
    };
    /// An operation every 50 ns.
    const PROGRAM: Program = Program {
        rate: 10e6,
        mean: 64.0,
    };

    #[test]
    fn one_thread_loses_the_uncontended_publish_and_nothing_else() {
        let share = MACHINE.share_lost(PROGRAM, 1, 16 * 1024);
        let expected = 10.0 / (256.0 * 50.0 + 10.0);
        assert!((share - expected).abs() < 1e-12, "{share}, not {expected}");
    }

    #[test]
    fn a_block_of_the_threshold_or_more_publishes_once() {
        let large = Program {
            rate: 1e6,
            mean: 1e6,
        };
        let (small, larger) = (1, 999_999);
        assert_eq!(
            MACHINE.share_lost(large, 4, small).to_bits(),
            MACHINE.share_lost(large, 4, larger).to_bits(),
        );
    }

    #[test]
    fn two_threads_wait_as_worked_out_by_hand() {
        // Z = 50, S = (10 + 50) / 2 = 30. R(1) = 30, Q(1) = 30 / 80; R(2) = 30 * 1.375 = 41.25.
        let share = MACHINE.share_lost(PROGRAM, 2, 64);
        assert!((share - 41.25 / 91.25).abs() < 1e-12, "{share}");
    }

    #[test]
    fn past_saturation_the_line_publishes_once_every_service_time() {
        let threads = 512;
        let share = MACHINE.share_lost(PROGRAM, threads, 1024);
        let work = PROGRAM.work(1024);
        // Publishes per nanosecond by all threads.
        let publishes = threads as f64 * (1.0 - share) / work;
        let most = 1.0 / MACHINE.service(threads);
        assert!(
            publishes <= most * 1.000_001 && publishes > 0.99 * most,
            "{publishes} a nanosecond, {most} at most"
        );
    }

    #[test]
    fn more_threads_lose_more_and_larger_thresholds_less() {
        let share = |threads, threshold| MACHINE.share_lost(PROGRAM, threads, threshold);
        for power in 10..20 {
            let (smaller, larger) = (share(64, 1 << power), share(64, 2 << power));
            assert!(larger < smaller, "2^{power}: {smaller}, then {larger}");
        }
        for threads in 1..512 {
            let (fewer, more) = (share(threads, 16 * 1024), share(threads + 1, 16 * 1024));
            assert!(fewer < more, "{threads} threads: {fewer}, then {more}");
        }
    }

    #[test]
    fn the_threshold_for_a_share_is_the_smallest_that_keeps_to_it() {
        let threshold = MACHINE
            .threshold_for(PROGRAM, 64, 0.01)
            .expect("there is one below 1 GiB");
        let share = |threshold| MACHINE.share_lost(PROGRAM, 64, threshold);
        assert!(share(threshold) <= 0.01, "{threshold}");
        assert!(share(threshold / 2) > 0.01, "{threshold}");
    }

    #[test]
    fn a_machine_is_found_again_from_what_it_loses() {
        let slower = Program {
            rate: 6e6,
            ..PROGRAM
        };
        let alone = (PROGRAM, MACHINE.share_lost(PROGRAM, 1, 64));
        let together = (slower, MACHINE.share_lost(slower, 2, 64));
        let found = Machine::that_loses(64, alone, together);
        assert!((found.uncontended - 10.0).abs() < 1e-6, "{found:?}");
        assert!((found.contended - 50.0).abs() < 1e-6, "{found:?}");
    }
}
