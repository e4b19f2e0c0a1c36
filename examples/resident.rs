//! Four figures that are all called "memory", side by side while a program allocates, frees and asks for its pages to
//! be given back.
//!
//! ```text
//! cargo run --example resident
//! ```
//!
//! | column | what it is | who says it |
//! | --- | --- | --- |
//! | requested | bytes live by the account: what the program asked for | `heap().totals()` |
//! | usable | what the allocator gave for that: each block rounded up | `malloc_usable_size`, added up |
//! | held | what the allocator has from the system, in use or not | `mallinfo2` (glibc) |
//! | resident | pages of the process that are in memory | `/proc/self/statm` |
//!
//! All are changes since the start. Where the system does not tell a figure, its column is empty. The program checks
//! what holds on every machine: the account agrees with its own arithmetic at every step, no block is smaller than was
//! asked for, and in the end nothing is live.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use tally_alloc::{TallyAlloc, heap};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

/// Small blocks, as a program with many objects has them.
const BLOCKS: usize = 400_000;

/// The small blocks' sizes are from 1 to this many bytes.
const LARGEST: usize = 200;

/// One in this many survives when the others are freed.
const SURVIVES: usize = 100;

/// A block that the allocator gets from the system for itself and gives back when it is freed.
const HUGE: usize = 64 << 20;

#[allow(dead_code, reason = "the test of this program has a `main` of its own")]
fn main() -> ExitCode {
    match run(&mut io::stdout().lock()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("resident: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// One step of the program, in bytes since the start.
#[derive(Clone, Copy, Debug, Default)]
#[allow(dead_code, reason = "`arithmetic` is for the test")]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Live by the account.
    pub(crate) requested: isize,
    /// Live by the program's own arithmetic.
    pub(crate) arithmetic: usize,
    pub(crate) usable: Option<usize>,
    pub(crate) held: Option<isize>,
    pub(crate) resident: Option<isize>,
}

/// The blocks that the program has at the moment.
#[derive(Default)]
struct Blocks {
    small: Vec<Option<Box<[u8]>>>,
    huge: Option<Box<[u8]>>,
}

impl Blocks {
    /// Returns the bytes that were asked for.
    fn requested(&self) -> usize {
        let small: usize = self.small.iter().flatten().map(|block| block.len()).sum();
        let list = self.small.capacity() * size_of::<Option<Box<[u8]>>>();
        small + list + self.huge.as_ref().map_or(0, |block| block.len())
    }

    /// Returns the bytes that could be used, by the allocator's word.
    fn usable(&self) -> Option<usize> {
        let blocks = self.small.iter().chain([&self.huge]).flatten();
        let mut sum = 0;
        for block in blocks {
            sum += usable(block.as_ptr())?;
        }
        if self.small.capacity() > 0 {
            sum += usable(self.small.as_ptr().cast())?;
        }
        Some(sum)
    }
}

/// What every figure was at the start.
struct Start {
    live: usize,
    held: Option<usize>,
    resident: Option<usize>,
}

impl Start {
    fn now() -> Self {
        Self {
            resident: resident(),
            held: held(),
            live: heap().totals().live_bytes(),
        }
    }

    /// Returns the figures of now, less those of the start.
    fn step(&self, name: &'static str, blocks: &Blocks) -> Step {
        let now = Self::now();
        let change = |now: Option<usize>, start: Option<usize>| {
            Some(now?.wrapping_sub(start?).cast_signed())
        };
        Step {
            name,
            requested: now.live.wrapping_sub(self.live).cast_signed(),
            arithmetic: blocks.requested(),
            usable: blocks.usable(),
            held: change(now.held, self.held),
            resident: change(now.resident, self.resident),
        }
    }
}

/// Goes through all steps and prints them to `out`. Fails if the account is wrong.
pub(crate) fn run(out: &mut impl Write) -> Result<[Step; 9], String> {
    // What reading the figures takes for good is taken before the start.
    let _ = Start::now();
    let start = Start::now();
    let mut blocks = Blocks::default();
    let mut steps = [Step::default(); 9];
    let mut done = 0;
    let mut note = |name, blocks: &Blocks| {
        steps[done] = start.step(name, blocks);
        done += 1;
    };

    blocks.huge = Some(vec![0; HUGE].into_boxed_slice());
    note("64 MiB of zeros, not touched", &blocks);
    if let Some(huge) = &mut blocks.huge {
        huge.fill(1);
    }
    note("the same, written", &blocks);
    blocks.huge = None;
    note("freed", &blocks);

    blocks.small = Vec::with_capacity(BLOCKS);
    blocks.small.extend(
        (0..BLOCKS).map(|number| Some(vec![1; 1 + number * 7919 % LARGEST].into_boxed_slice())),
    );
    note("400,000 blocks of 1 to 200 bytes", &blocks);
    for (number, block) in blocks.small.iter_mut().enumerate() {
        if number % SURVIVES != 0 {
            *block = None;
        }
    }
    note("all but one in 100 freed", &blocks);
    trim();
    note("malloc_trim(0)", &blocks);
    blocks.small = Vec::new();
    note("the rest freed", &blocks);
    trim();
    note("malloc_trim(0) again", &blocks);
    drop(blocks);
    note("the end", &Blocks::default());

    print(&steps, out).map_err(|failure| format!("printing: {failure}"))?;
    for step in &steps {
        if usize::try_from(step.requested) != Ok(step.arithmetic) {
            return Err(format!(
                "{}: {} bytes by the account, {} by arithmetic",
                step.name, step.requested, step.arithmetic
            ));
        }
        if step.usable.is_some_and(|usable| usable < step.arithmetic) {
            return Err(format!("{}: less usable than requested", step.name));
        }
    }
    Ok(steps)
}

fn print(steps: &[Step], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "| KiB | requested | usable | held | resident |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: |")?;
    for step in steps {
        let mut line = format!("| {}", step.name);
        let usable = step.usable.map(usize::cast_signed);
        for figure in [Some(step.requested), usable, step.held, step.resident] {
            let text = figure.map_or_else(String::new, kibibytes);
            let _ = write!(line, " | {text}");
        }
        writeln!(out, "{line} |")?;
    }
    writeln!(out, "\n{}, {}", c_library(), std::env::consts::ARCH)
}

/// Returns the name of the C library, and its version where it tells it.
fn c_library() -> String {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[allow(unsafe_code, reason = "asks the C library")]
        // SAFETY: asks for a pointer.
        let version = unsafe { libc::gnu_get_libc_version() };
        #[allow(unsafe_code, reason = "asks the C library")]
        // SAFETY: a string that is never changed, and ends in zero.
        let version = unsafe { std::ffi::CStr::from_ptr(version) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    String::from(std::env::consts::OS)
}

/// Returns bytes as KiB, with a comma for each thousand.
fn kibibytes(bytes: isize) -> String {
    let number = (bytes / 1024).to_string();
    let mut text = String::new();
    for (place, digit) in number.chars().enumerate() {
        let left = number.len() - place;
        if place > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns how many bytes of a block can be used, if the allocator says so.
#[cfg(target_os = "linux")]
fn usable(block: *const u8) -> Option<usize> {
    #[allow(unsafe_code, reason = "asks the C library")]
    // SAFETY: a live block of the system allocator's, which is `malloc`'s.
    Some(unsafe { libc::malloc_usable_size(block.cast_mut().cast()) })
}

#[cfg(not(target_os = "linux"))]
fn usable(_: *const u8) -> Option<usize> {
    None
}

/// Returns how many bytes the allocator has from the system, if it says so.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn held() -> Option<usize> {
    #[allow(unsafe_code, reason = "asks the C library")]
    // SAFETY: asks for figures.
    let figures = unsafe { libc::mallinfo2() };
    Some(figures.arena + figures.hblkhd)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn held() -> Option<usize> {
    None
}

/// Returns how many bytes of the process are in memory, if the system says so.
#[cfg(target_os = "linux")]
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = pages.split(' ').nth(1)?.parse().ok()?;
    #[allow(unsafe_code, reason = "asks the C library")]
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * usize::try_from(page).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn resident() -> Option<usize> {
    None
}

/// Has the allocator give back to the system what it can, where it knows how.
fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "asks the C library")]
    // SAFETY: changes no block that is live.
    unsafe {
        libc::malloc_trim(0);
    }
}
