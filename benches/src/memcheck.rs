//! A heap account beside another one: what memcheck counted in a run, and what our allocator counted in the same run.
//!
//! # Where the figures come from
//!
//! One run under valgrind gives four independent records.
//!
//! * The *summary*: the calls of `malloc` and its like in the whole process, the calls of `free`, and the bytes
//!   asked for. A `realloc` is to valgrind one of each: a block of the new size allocated, the old one freed.
//! * The *stacks* (`--xtree-memory=full`): the same figures by the stack that asked. They tell the blocks that our
//!   allocator asked for from those that the C library, or `std` past the global allocator, asked for.
//! * The *trace* (`--trace-malloc=yes`): every call with its sizes. It tells what the stacks do not, how many bytes
//!   of each block that was resized are the old block's.
//! * The *account*: the program's own [`Totals`](tally_alloc::Totals), read when everything else has run.
//!
//! # What has to hold
//!
//! With `outside` for the blocks that others asked for and `carried` for the bytes that resized blocks had before and
//! after:
//!
//! | memcheck | is | and nothing else |
//! | --- | --- | --- |
//! | allocs | allocations + reallocations | + outside |
//! | frees | deallocations + reallocations | + outside |
//! | bytes allocated | bytes allocated + carried | + outside |
//! | bytes in use at exit | live bytes | + outside |
//!
//! Whether it holds is for the caller to ask ([`Line::difference`]).

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, bail, ensure};

/// What valgrind's summary says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Blocks allocated.
    pub allocations: usize,
    /// Blocks freed.
    pub frees: usize,
    /// Bytes allocated.
    pub bytes: usize,
    /// Bytes in use at exit.
    pub live_bytes: usize,
}

impl Summary {
    /// Reads valgrind's log.
    ///
    /// # Errors
    ///
    /// When there is no summary in it.
    pub fn of(log: &str) -> anyhow::Result<Self> {
        let numbers = |begin: &str| {
            let line = log.lines().find_map(|line| Some(line.split_once(begin)?.1));
            let line = line.with_context(|| format!("valgrind does not say '{begin}'"))?;
            line.split_whitespace()
                .filter(|word| word.starts_with(|first: char| first.is_ascii_digit()))
                .map(|word| Ok(word.replace(',', "").parse()?))
                .collect::<anyhow::Result<Vec<usize>>>()
        };
        match (
            &*numbers("total heap usage: ")?,
            &*numbers("in use at exit: ")?,
        ) {
            (&[allocations, frees, bytes], &[live_bytes, _]) => Ok(Self {
                allocations,
                frees,
                bytes,
                live_bytes,
            }),
            _ => bail!("valgrind's summary has other figures than expected"),
        }
    }
}

/// What the program said of itself at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// [`Totals::bytes_allocated`](tally_alloc::Totals::bytes_allocated).
    pub bytes_allocated: usize,
    /// [`Totals::bytes_deallocated`](tally_alloc::Totals::bytes_deallocated).
    pub bytes_deallocated: usize,
    /// [`Totals::allocations`](tally_alloc::Totals::allocations).
    pub allocations: usize,
    /// [`Totals::deallocations`](tally_alloc::Totals::deallocations).
    pub deallocations: usize,
    /// [`Totals::reallocations`](tally_alloc::Totals::reallocations).
    pub reallocations: usize,
}

impl Account {
    /// Reads the five figures in the order of the fields.
    ///
    /// # Errors
    ///
    /// When there are others.
    pub fn of(said: &str) -> anyhow::Result<Self> {
        let figures: Vec<usize> = said
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [
            bytes_allocated,
            bytes_deallocated,
            allocations,
            deallocations,
            reallocations,
        ] = figures[..]
        else {
            bail!("five figures, not '{said}'");
        };
        Ok(Self {
            bytes_allocated,
            bytes_deallocated,
            allocations,
            deallocations,
            reallocations,
        })
    }
}

/// Blocks that were resized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resized {
    /// How often.
    pub blocks: usize,
    /// The lesser of the old and the new size, summed.
    pub carried: usize,
}

/// Every call, as the trace has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The summary by the trace.
    pub summary: Summary,
    /// What was resized, by anybody.
    pub resized: Resized,
}

impl Trace {
    /// Reads the calls out of valgrind's log.
    ///
    /// # Errors
    ///
    /// When a line is not understood: a thread that lost its turn in the middle of one leaves such lines, and another
    /// run need not.
    pub fn of(log: &str) -> anyhow::Result<Self> {
        let mut trace = Self::default();
        let mut live: HashMap<&str, usize> = HashMap::new();
        for line in log.lines() {
            let Some(call) = line
                .strip_prefix("--")
                .and_then(|line| line.split_once("-- "))
                .map(|(_, call)| call)
            else {
                continue;
            };
            trace
                .follow(call, &mut live)
                .with_context(|| format!("the trace has '{line}'"))?;
        }
        trace.summary.live_bytes = live.values().sum();
        Ok(trace)
    }

    fn follow<'a>(
        &mut self,
        call: &'a str,
        live: &mut HashMap<&'a str, usize>,
    ) -> anyhow::Result<()> {
        let (name, rest) = call.split_once('(').context("no call")?;
        let (arguments, result) = rest.split_once(')').context("no end")?;
        let (first, second) = arguments.split_once(',').unwrap_or((arguments, ""));
        let summary = &mut self.summary;
        if name == "free" {
            ensure!(result.is_empty(), "something follows");
            if first != "0x0" {
                live.remove(first).context("freed, and not allocated")?;
                summary.frees += 1;
            }
            return Ok(());
        }
        if name == "realloc" && first == "0x0" {
            // Followed, on the same line, by the `malloc` that it comes to.
            return self.follow(result, live);
        }
        let block = result.strip_prefix(" = ").context("no result")?;
        let size = match name {
            "malloc" => first.parse()?,
            "calloc" => first.parse::<usize>()? * second.parse::<usize>()?,
            "memalign" => second.strip_prefix(" size ").context("no size")?.parse()?,
            "realloc" => {
                let size: usize = second.parse()?;
                ensure!(size > 0 && block != "0x0", "a resize that frees or fails");
                let old = live.remove(first).context("resized, and not allocated")?;
                summary.frees += 1;
                self.resized.blocks += 1;
                self.resized.carried += old.min(size);
                size
            }
            _ => bail!("an unknown call"),
        };
        ensure!(block != "0x0", "a request was refused");
        ensure!(
            live.insert(block, size).is_none(),
            "allocated, and not freed before"
        );
        summary.allocations += 1;
        summary.bytes += size;
        Ok(())
    }
}

/// Blocks by who asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks allocated.
    pub allocated: usize,
    /// Bytes allocated.
    pub bytes: usize,
    /// Blocks that were never freed.
    pub live: usize,
    /// Bytes that were never freed.
    pub live_bytes: usize,
}

impl Blocks {
    fn add(&mut self, more: Self) {
        self.allocated += more.allocated;
        self.bytes += more.bytes;
        self.live += more.live;
        self.live_bytes += more.live_bytes;
    }
}

/// What the stacks tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// What our allocator asked for.
    pub ours: Blocks,
    /// What others asked for, by the function that Rust code had called.
    pub outside: BTreeMap<String, Blocks>,
    /// Blocks that others resized.
    pub resized_outside: Resized,
}

/// The functions that stand between our allocator and the call that valgrind saw.
const BETWEEN: [&str; 3] = ["posix_memalign", "memalign", "aligned_alloc"];

/// The functions of our allocator, as they are in a symbol, demangled or not.
const OURS: &str = "tally_alloc";

impl Stacks {
    /// Reads the file that `--xtree-memory-file` names: a paragraph for each stack, from the outermost function in,
    /// with the stack's figures repeated after each call and after the innermost function.
    ///
    /// # Errors
    ///
    /// When it is not as expected; when Rust code, other than `std`, asked for blocks past our allocator; or when our
    /// allocator resized a block of an alignment that `realloc` does not take: the trace then lacks a resize.
    pub fn of(file: &str) -> anyhow::Result<Self> {
        let (_, body) = file
            .split_once("events: curB  curBk  totB  totBk  totFdB  totFdBk")
            .context("the file has other figures than expected")?;
        let mut names = HashMap::new();
        let mut stacks = Self::default();
        // At the end are the sums.
        let body = body
            .split_once("totals:")
            .map_or(body, |(stacks, _)| stacks);
        for paragraph in body.split("\n\n") {
            let mut stack = Vec::new();
            let mut figures = None;
            for line in paragraph.lines() {
                if let Some(name) = line.strip_prefix("fn=") {
                    stack.push(named(name, &mut names)?);
                } else if let Some(name) = line.strip_prefix("cfn=") {
                    named(name, &mut names)?;
                } else if !line.contains('=') {
                    let of_line: Vec<usize> = line
                        .split_whitespace()
                        .skip(1)
                        .map(str::parse)
                        .collect::<Result<_, _>>()?;
                    figures = <[usize; 6]>::try_from(of_line).ok().or(figures);
                }
            }
            if let Some(figures) = figures {
                stacks.take(&stack, figures)?;
            }
        }
        Ok(stacks)
    }

    fn take(&mut self, stack: &[&str], figures: [usize; 6]) -> anyhow::Result<()> {
        let [live_bytes, live, bytes, allocated, freed_bytes, freed] = figures;
        let blocks = Blocks {
            allocated,
            bytes,
            live,
            live_bytes,
        };
        let asked = stack.iter().rev().find(|name| !BETWEEN.contains(*name));
        let asked = asked.context("a stack without a function")?;
        if asked.contains(OURS) {
            ensure!(
                freed == 0 || freed == allocated,
                "{asked} resized a block that `realloc` does not take"
            );
            self.ours.add(blocks);
        } else if allocated > 0 {
            // A call from our allocator that nothing follows is a jump, and leaves no trace of us. (Nothing follows
            // where counting was forgotten.)
            ensure!(
                !is_rust(asked) || asked.trim_start_matches('<').starts_with("std::"),
                "{asked} asked for {allocated} blocks, and is neither our allocator nor the C library nor `std`"
            );
            // What both allocates and frees is `realloc`.
            self.resized_outside.blocks += allocated.min(freed);
            self.resized_outside.carried += bytes.min(freed_bytes);
            self.outside
                .entry(entry(stack).to_owned())
                .or_default()
                .add(blocks);
        }
        Ok(())
    }

    fn all_outside(&self) -> Blocks {
        let mut all = Blocks::default();
        for &blocks in self.outside.values() {
            all.add(blocks);
        }
        all
    }
}

/// Follows the names' abbreviation: `(1) name` the first time, `(1)` from then on.
fn named<'a>(name: &'a str, names: &mut HashMap<&'a str, &'a str>) -> anyhow::Result<&'a str> {
    let (number, full) = name.split_once(')').context("a function has a number")?;
    if !full.is_empty() {
        names.insert(number, full.trim_start());
    }
    names
        .get(number)
        .copied()
        .context("a name that was given before")
}

fn is_rust(name: &str) -> bool {
    name.contains("::") || name.starts_with("_R")
}

/// Returns the function of the C library that Rust code, or the start of a thread, had called; where Rust code itself
/// asked, that.
fn entry<'a>(stack: &[&'a str]) -> &'a str {
    let starts = ["main", "start_thread", "clone", "(below main)"];
    let called = stack
        .iter()
        .rposition(|name| is_rust(name) || starts.contains(name))
        .map_or(0, |at| at + 1);
    let function = stack.get(called).or(stack.last()).copied().unwrap_or("");
    function.split('@').next().unwrap_or(function)
}

/// One figure of a run, both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub figure: &'static str,
    /// By valgrind's summary.
    pub memcheck: usize,
    /// By our account.
    pub counted: usize,
    /// What valgrind counts again when a block is resized.
    pub resized: usize,
    /// What others asked for.
    pub outside: usize,
}

impl Line {
    /// Returns what is left unexplained.
    #[must_use]
    pub fn difference(&self) -> isize {
        self.memcheck
            .wrapping_sub(self.counted)
            .wrapping_sub(self.resized)
            .wrapping_sub(self.outside)
            .cast_signed()
    }
}

/// Sets the account of a run beside memcheck's.
///
/// # Errors
///
/// When valgrind's three records do not agree with one another, or the account's resizes with the trace.
pub fn compare(log: &str, stacks: &Stacks, account: Account) -> anyhow::Result<[Line; 4]> {
    let summary = Summary::of(log)?;
    let trace = Trace::of(log)?;
    ensure!(
        trace.summary == summary,
        "the trace comes to {:?}, the summary to {summary:?}",
        trace.summary
    );
    let outside = stacks.all_outside();
    let by_stack = [
        stacks.ours.allocated + outside.allocated,
        stacks.ours.bytes + outside.bytes,
        stacks.ours.live_bytes + outside.live_bytes,
    ];
    ensure!(
        by_stack == [summary.allocations, summary.bytes, summary.live_bytes],
        "the stacks come to {by_stack:?}, the summary to {summary:?}"
    );
    let resized = trace.resized.blocks - stacks.resized_outside.blocks;
    ensure!(
        resized == account.reallocations,
        "{resized} blocks of ours were resized; counted were {}",
        account.reallocations
    );
    let carried = trace.resized.carried - stacks.resized_outside.carried;
    Ok([
        Line {
            figure: "blocks allocated",
            memcheck: summary.allocations,
            counted: account.allocations,
            resized,
            outside: outside.allocated,
        },
        Line {
            figure: "blocks freed",
            memcheck: summary.frees,
            counted: account.deallocations,
            resized,
            outside: outside.allocated - outside.live,
        },
        Line {
            figure: "bytes allocated",
            memcheck: summary.bytes,
            counted: account.bytes_allocated,
            resized: carried,
            outside: outside.bytes,
        },
        Line {
            figure: "bytes in use at exit",
            memcheck: summary.live_bytes,
            counted: account
                .bytes_allocated
                .wrapping_sub(account.bytes_deallocated),
            resized: 0,
            outside: outside.live_bytes,
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
==7== Memcheck, a memory error detector
--7-- malloc(100) = 0x10
--7-- realloc(0x10,250) = 0x20
--7-- calloc(3,8) = 0x30
--7-- realloc(0x20,50) = 0x10
--7-- realloc(0x0,32)malloc(32) = 0x40
--7-- memalign(al 64, size 128) = 0x50
--7-- free(0x30)
--7-- free(0x0)
--7-- free(0x40)
==7==     in use at exit: 178 bytes in 2 blocks
==7==   total heap usage: 6 allocs, 4 frees, 584 bytes allocated
";

    const STACKS: &str = "\
# callgrind format
events: curB  curBk  totB  totBk  totFdB  totFdBk 
fn=(1) main
0
cfn=(2) <tally_alloc::alloc::TallyAlloc<A,M> as core::alloc::global::GlobalAlloc>::alloc
calls=0 1
0 0 0 124 2 0 0
fl=(2)
fn=(2)
1 0 0 124 2 0 0

fn=(1)
0
cfn=(3) tally_alloc::alloc::TallyAlloc<A,M>::look_and_realloc
calls=0 1
0 50 1 300 2 350 2
fn=(3)
1 50 1 300 2 350 2

fn=(1)
0
cfn=(4) tally_alloc::alloc::TallyAlloc<A,M>::alloc_slowly
calls=0 1
0 128 1 128 1 0 0
fn=(4)
2
cfn=(5) posix_memalign
calls=0 1
2 128 1 128 1 0 0
fn=(5)
3 128 1 128 1 0 0

fn=(1)
0
cfn=(6) opendir@@GLIBC_2.2.5
calls=0 1
0 0 0 32 1 0 0
fn=(6)
3
cfn=(7) __alloc_dir
calls=0 1
3 0 0 32 1 0 0
fn=(7)
4 0 0 32 1 0 0

fn=(1)
9 0 0 0 0 56 2

totals: 178 2 584 6 406 4
";

    fn account() -> Account {
        Account::of("402 224 3 1 2").expect("five figures")
    }

    #[test]
    fn every_block_of_a_run_is_found_on_one_side_or_the_other() {
        let stacks = Stacks::of(STACKS).expect("stacks");
        assert_eq!(stacks.ours.allocated, 5);
        assert_eq!(
            stacks.outside.keys().collect::<Vec<_>>(),
            ["opendir"],
            "named by what was called, without its version"
        );
        let lines = compare(LOG, &stacks, account()).expect("records that agree");
        for line in lines {
            assert_eq!(line.difference(), 0, "{line:?}");
        }
        assert_eq!(lines[2].resized, 100 + 50, "carried over by two resizes");
    }

    #[test]
    fn a_block_that_was_not_counted_is_a_difference() {
        let stacks = Stacks::of(STACKS).expect("stacks");
        let missing = Account {
            allocations: account().allocations - 1,
            bytes_allocated: account().bytes_allocated - 24,
            ..account()
        };
        let lines = compare(LOG, &stacks, missing).expect("records that agree");
        assert_eq!(
            lines.map(|line| line.difference()),
            [1, 0, 24, 24],
            "one block of 24 bytes"
        );
    }

    #[test]
    fn a_resize_that_was_not_counted_is_refused() {
        let stacks = Stacks::of(STACKS).expect("stacks");
        let missing = Account {
            reallocations: 1,
            ..account()
        };
        compare(LOG, &stacks, missing).expect_err("two resizes, one counted");
    }

    #[test]
    fn blocks_that_rust_code_got_past_us_are_refused() {
        let past = STACKS
            .replace("opendir@@GLIBC_2.2.5", "some::program")
            .replace("__alloc_dir", "<T as alloc::Vec>::grow");
        Stacks::of(&past).expect_err("a vector that is not counted");
        let std = STACKS.replace("__alloc_dir", "<std::thread::thread::Thread>::new");
        Stacks::of(&std).expect("a handle that is not counted");
    }

    #[test]
    fn a_torn_line_of_the_trace_is_refused() {
        for torn in [
            "--7-- malloc(1)malloc(2) = 0x10\n = 0x20\n",
            "--7-- free(0x10)\n",
            "--7-- malloc(1) = 0x10\n--7-- malloc(1) = 0x10\n",
        ] {
            Trace::of(torn).expect_err(torn);
        }
    }
}
