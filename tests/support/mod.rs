//! What the programs of this directory share: the truth, blocks, threads, and the running of claims.
//!
//! A claim about exact figures has a process of its own. The test runner allocates on threads of its
//! own, and so would the claim that ran before. So each program here starts itself again for every
//! claim ([`run`]), with the claim's name in the environment; the child does what the claim says, and
//! an `alarm` ends it when it hangs.

#![allow(dead_code, reason = "no program uses all of it")]

pub(crate) mod block;
pub(crate) mod fork;
pub(crate) mod oracle;
pub(crate) mod pthread;

use std::panic;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use libtest_mimic::{Arguments, Failed, Trial};

/// A name that says what is true, and the code that panics if it is not.
pub(crate) type Claim = (&'static str, fn());

/// Lists the functions of a module as claims.
macro_rules! claims {
    ($($claim:ident),+ $(,)?) => {
        /// The claims of this file.
        pub(crate) const CLAIMS: &[crate::support::Claim] = &[
            $((concat!(module_path!(), "::", stringify!($claim)), $claim as fn())),+
        ];
    };
}
pub(crate) use claims;

/// Tells the program, started again, which claim to look into.
const CLAIM: &str = "TALLY_ALLOC_CLAIM";

/// Seconds after which a claim is held to hang. The longest takes a twentieth of this on two cores.
const WATCHDOG: u32 = 120;

/// Gives a claim that was told to do more than it does by default as much more time: `times` the watchdog's.
pub(crate) fn allow(times: u32) {
    // SAFETY: sets a timer, in place of one that runs; the signal's default action ends the process.
    unsafe { libc::alarm(WATCHDOG.saturating_mul(times)) };
}

/// Runs the claims that the command line asks for (all of them if it names none), each in a process
/// of its own, but for those that are `broken` by something that is not ours. The command line and the
/// output are libtest's.
pub(crate) fn run(claims: impl IntoIterator<Item = &'static Claim>, broken: &[&str]) -> ExitCode {
    let mut claims = claims.into_iter();
    if let Ok(name) = std::env::var(CLAIM) {
        let (_, claim) = claims.find(|claim| claim.0 == name).expect("a known claim");
        allow(1);
        // A panic on any thread ends the process, so that no other waits for what will not come.
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            say(what);
            // SAFETY: ends the process.
            unsafe { libc::_exit(101) };
        }));
        claim();
        return ExitCode::SUCCESS;
    }
    let mut trials: Vec<Trial> = claims
        .map(|&(path, _)| {
            // Without the names of the program and of the directory.
            let name = path.split("::").skip(1).filter(|part| *part != "claims");
            let name = name.collect::<Vec<_>>().join("::");
            let ignored = broken.contains(&name.as_str());
            Trial::test(name, move || in_a_child(path)).with_ignored_flag(ignored)
        })
        .collect();
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn in_a_child(claim: &str) -> Result<(), Failed> {
    let program = std::env::current_exe().map_err(|e| format!("no path to this program: {e}"))?;
    let child = Command::new(program)
        .env(CLAIM, claim)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("the child did not start: {e}"))?;
    if child.status.success() {
        return Ok(());
    }
    Err(format!(
        "{} (a claim that hangs ends in SIGALRM, 14, after {WATCHDOG} seconds unless it was given more)\n{}{}",
        child.status,
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    )
    .into())
}

/// Sets a flag when it goes, so that threads which run until then end, too, when a claim fails.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A generator of arbitrary numbers, the same ones in every run (SplitMix64, Steele, Lea and Flood
/// 2014). It allocates nothing.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) const fn from(seed: usize) -> Self {
        Self(seed as u64)
    }

    /// Returns a number from `range`.
    pub(crate) fn within(&mut self, range: std::ops::Range<usize>) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        range.start + ((z ^ (z >> 31)) as usize) % range.len()
    }
}
