//! What is checked while nobody operates.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use anyhow::{Context as _, Result, ensure};
use tally_alloc::heap;

use crate::allocator::TRUTH;
use crate::fork::in_a_fork;
use crate::world::{LARGEST, WIDEST, World};

/// Checks every figure against the truth.
pub(crate) fn check(world: &World, exact: bool) -> Result<()> {
    account(exact)?;
    peak(world)?;
    let seated = heap().threads().len();
    ensure!(
        seated <= world.alive(),
        "{seated} threads have a shard, and {} are alive",
        world.alive()
    );
    world.batched.check(world.most_alive(), false)?;
    world.exact.check(world.most_alive(), true)?;
    world.watchings.check()?;
    let status = in_a_fork(|| {
        assert_eq!(
            heap().totals(),
            TRUTH.totals(),
            "a child's totals (left) and the truth (right)"
        );
    });
    ensure!(status == 0, "the wait status of a child is {status}");
    account(exact)?;
    // From here on anew.
    heap().reset_peak();
    TRUTH.reset_peak();
    world.highest.store(heap().live_bytes(), SeqCst);
    Ok(())
}

fn account(exact: bool) -> Result<()> {
    let (totals, truth) = (heap().totals(), TRUTH.totals());
    ensure!(
        totals == truth,
        "the totals are {totals:?}, the truth is {truth:?}"
    );
    let (live, bound) = (heap().live_bytes(), heap().error_bound());
    ensure!(
        live.abs_diff(truth.live_bytes()) <= bound,
        "published are {live} bytes, the truth is {}, the bound {bound}",
        truth.live_bytes()
    );
    ensure!(!exact || bound == 0, "the bound in exact mode is {bound}");
    Ok(())
}

fn peak(world: &World) -> Result<()> {
    let (peak, truth) = (heap().peak_bytes(), TRUTH.peak_bytes());
    let highest = world.highest.load(SeqCst).max(heap().live_bytes());
    ensure!(
        peak >= highest,
        "the peak is {peak}, and {highest} live bytes were read"
    );
    // All that may ever be held back, and an operation under way in each thread.
    let off = world.most_alive() * (WIDEST + LARGEST);
    ensure!(
        peak.abs_diff(truth) <= off,
        "the peak is {peak} and was {truth}, off by more than {off}"
    );
    Ok(())
}

/// What the process takes with nothing held but what lives as long as it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residue {
    /// Bytes asked for and not given back.
    pub(crate) live: usize,
    /// Bytes of resident memory, once the C library has given back what it does not need.
    pub(crate) resident: usize,
}

impl Residue {
    pub(crate) fn measure(world: &World) -> Result<Self> {
        while let Ok(block) = world.blocks.1.try_recv() {
            drop(block);
        }
        let live = TRUTH.totals().live_bytes();
        #[cfg(target_env = "gnu")]
        // SAFETY: takes any number, and no thread needs to stand still for it.
        unsafe {
            libc::malloc_trim(0);
        }
        let status = fs::read_to_string("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
        let resident = kilobytes.context("no VmRSS")?.trim().parse::<usize>()? * 1024;
        Ok(Self { live, resident })
    }
}

/// Bytes that the median of live bytes may be higher late than early.
const MORE_LIVE: usize = 16 << 10;

/// Bytes that the median of resident memory may be higher late than early.
const MORE_RESIDENT: usize = 2 << 20;

/// Holds the last third of the residues to the first, but for the tenth at the start, in which tables get their size.
/// Returns the medians of both; `None` where there are too few.
pub(crate) fn compare(residues: &[Residue]) -> Result<Option<[Residue; 2]>> {
    let settled = &residues[residues.len() / 10..];
    let third = settled.len() / 3;
    if third < 10 {
        return Ok(None);
    }
    let median = |residues: &[Residue]| {
        let of = |figure: fn(&Residue) -> usize| {
            let mut figures: Vec<usize> = residues.iter().map(figure).collect();
            figures.sort_unstable();
            figures[figures.len() / 2]
        };
        Residue {
            live: of(|residue| residue.live),
            resident: of(|residue| residue.resident),
        }
    };
    let (early, late) = (
        median(&settled[..third]),
        median(&settled[settled.len() - third..]),
    );
    ensure!(
        late.live <= early.live + MORE_LIVE,
        "{} bytes were live early with nothing held, and {} late",
        early.live,
        late.live
    );
    ensure!(
        late.resident <= early.resident + MORE_RESIDENT,
        "{} bytes were resident early with nothing held, and {} late",
        early.resident,
        late.resident
    );
    Ok(Some([early, late]))
}
