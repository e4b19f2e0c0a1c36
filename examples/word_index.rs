//! A word index over the files and folders given on the command line, built by eight threads, with the
//! heap's account printed as it grows.
//!
//! ```text
//! cargo run --release --example word_index -- [--find WORD] [PATH]...
//! ```
//!
//! Without a path it indexes this repository's own text. Folders are walked without following links;
//! hidden ones, and caches marked as such (`target` is), are left out. What cannot be read, is not a
//! plain file, is binary or is larger than [`LARGEST_FILE`] is passed over and counted.
//!
//! The program ends with two checks, which hold to the byte or fail it: the index knows how much memory
//! it holds by its own arithmetic, and the account must say the same; and when the index is dropped,
//! the account must be back where it started.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use std::thread::{self, Thread};

use tally_alloc::{TallyAlloc, Totals, heap};
use walkdir::{DirEntry, WalkDir};

#[global_allocator]
static GLOBAL: TallyAlloc = TallyAlloc::system();

const THREADS: usize = 8;

/// Larger files, in bytes, are not text that somebody wrote.
const LARGEST_FILE: u64 = 64 << 20;

/// A file with a NUL among its first bytes, this many, counts as binary.
const SNIFFED: usize = 8 << 10;

/// Words are from 2 to this many bytes long; what is longer is data.
const LONGEST_WORD: usize = 64;

#[allow(dead_code, reason = "the test of this program has a `main` of its own")]
fn main() -> ExitCode {
    let mut find = None;
    let mut paths = Vec::new();
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("-h" | "--help") => {
                println!("usage: word_index [--find WORD] [PATH]...");
                return ExitCode::SUCCESS;
            }
            Some("--find") => match arguments.next() {
                Some(word) => find = Some(word.to_string_lossy().to_lowercase()),
                None => {
                    eprintln!("word_index: --find needs a word");
                    return ExitCode::from(2);
                }
            },
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    if paths.is_empty() {
        paths.push(PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    }
    match run(&paths, find.as_deref(), &mut io::stdout().lock()) {
        Ok(_) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough of it.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("word_index: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// What a run found, for whoever calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) files: usize,
    pub(crate) passed_over: usize,
    pub(crate) words: usize,
    /// How many files hold the word that was looked for.
    pub(crate) found: usize,
}

/// Why a run failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Output(io::Error),
    /// The account and the program disagree: on what, by the program, by the account.
    Miscounted(&'static str, Held, Held),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => write!(f, "cannot write the report: {error}"),
            Self::Miscounted(what, truth, counted) => {
                write!(f, "{what}: {truth} is right, the account says {counted}")
            }
        }
    }
}

/// Bytes and blocks that something holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    bytes: usize,
    blocks: usize,
}

impl Held {
    /// What is live now, exactly.
    fn now() -> Self {
        let totals = heap().totals();
        Self {
            bytes: totals.live_bytes(),
            blocks: totals.live_blocks(),
        }
    }

    fn add_block(&mut self, bytes: usize) {
        // Empty collections have no block.
        if bytes != 0 {
            self.bytes += bytes;
            self.blocks += 1;
        }
    }

    fn since(self, start: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_sub(start.bytes),
            blocks: self.blocks.wrapping_sub(start.blocks),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} blocks", Bytes(self.bytes), Count(self.blocks))
    }
}

/// Builds the index over `paths`, reports to `out`, and checks the account.
pub(crate) fn run(
    paths: &[PathBuf],
    find: Option<&str>,
    out: &mut impl Write,
) -> Result<Outcome, Failure> {
    // What the standard library sets up once and keeps is set up before the start is taken: the
    // handle of this thread and the buffer of the output.
    let _ = thread::current();
    writeln!(out, "Reading the folders ...")?;
    let start = Held::now();

    let (index, workers) = Index::build(paths, out)?;
    let passed_over = index.passed_over;
    let outcome = Outcome {
        files: workers.iter().map(|worker| worker.files).sum(),
        passed_over: passed_over.sum(),
        words: index.entries.len(),
        found: find.map_or(0, |word| index.find(word).len()),
    };

    writeln!(out, "\nWhat each thread did (its own totals, exact)")?;
    writeln!(
        out,
        "  thread    files        text   allocated       freed         net  blocks allocated   resized"
    )?;
    for (number, worker) in workers.iter().enumerate() {
        let totals = worker.totals;
        writeln!(
            out,
            "  {:>6}  {:>7}  {:>10}  {:>10}  {:>10}  {:>10}  {:>16}  {:>8}",
            number + 1,
            Count(worker.files).to_string(),
            Short(worker.text).to_string(),
            Short(totals.bytes_allocated).to_string(),
            Short(totals.bytes_deallocated).to_string(),
            Net(totals.net_bytes()).to_string(),
            Count(totals.allocations).to_string(),
            Count(totals.reallocations).to_string(),
        )?;
    }
    drop(workers);

    writeln!(out, "\nThe process (exact)")?;
    report_totals(out, heap().totals())?;
    writeln!(out, "  peak         {}", Bytes(heap().peak_bytes()))?;
    writeln!(
        out,
        "  live, published  {}, off by at most {}",
        Bytes(heap().live_bytes()),
        Bytes(heap().error_bound())
    )?;

    writeln!(out, "\nThe index")?;
    writeln!(
        out,
        "  {} words in {} files; passed over: {passed_over}",
        Count(outcome.words),
        Count(outcome.files)
    )?;
    report_common(out, &index)?;
    if let Some(word) = find {
        report_found(out, &index, word)?;
    }

    let held = index.held();
    let counted = Held::now().since(start);
    writeln!(out, "  by its own arithmetic  {held}")?;
    writeln!(out, "  by the account         {counted}")?;
    if counted != held {
        return Err(Failure::Miscounted("what the index holds", held, counted));
    }

    drop(index);
    let end = Held::now();
    writeln!(
        out,
        "\nThe index dropped: live is {end}, as it was at the start"
    )?;
    if end != start {
        return Err(Failure::Miscounted("what is live at the end", start, end));
    }
    Ok(outcome)
}

fn report_totals(out: &mut impl Write, totals: Totals) -> io::Result<()> {
    writeln!(
        out,
        "  allocated    {} in {} blocks, {} resized",
        Bytes(totals.bytes_allocated),
        Count(totals.allocations),
        Count(totals.reallocations)
    )?;
    writeln!(
        out,
        "  freed        {} in {} blocks",
        Bytes(totals.bytes_deallocated),
        Count(totals.deallocations)
    )?;
    writeln!(
        out,
        "  live         {} in {} blocks",
        Bytes(totals.live_bytes()),
        Count(totals.live_blocks())
    )
}

fn report_common(out: &mut impl Write, index: &Index) -> io::Result<()> {
    let mut common: Vec<_> = index.entries.iter().collect();
    common.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.times()));
    write!(out, "  most frequent:")?;
    for entry in common.iter().take(8) {
        write!(out, " {} ({})", entry.word, Count(entry.times()))?;
    }
    writeln!(out)
}

fn report_found(out: &mut impl Write, index: &Index, word: &str) -> io::Result<()> {
    let found = index.find(word);
    writeln!(out, "  `{word}` is in {} files", Count(found.len()))?;
    for posting in found.iter().take(10) {
        let file = index.files[posting.file as usize].display();
        writeln!(
            out,
            "    {:>6} times in {file}",
            Count(posting.times as usize).to_string()
        )?;
    }
    if found.len() > 10 {
        writeln!(out, "    and {} more", Count(found.len() - 10))?;
    }
    Ok(())
}

/// A word is in this file, so many times.
#[derive(Debug, Clone, Copy)]
struct Posting {
    file: u32,
    times: u32,
}

#[derive(Debug)]
struct Entry {
    word: Box<str>,
    postings: Box<[Posting]>,
}

impl Entry {
    fn times(&self) -> usize {
        self.postings
            .iter()
            .map(|posting| posting.times as usize)
            .sum()
    }
}

type Part = HashMap<Box<str>, Vec<Posting>>;

#[derive(Debug)]
struct Index {
    files: Vec<PathBuf>,
    /// Sorted by word.
    entries: Vec<Entry>,
    passed_over: PassedOver,
}

/// What one thread did.
struct Worker {
    files: usize,
    text: usize,
    totals: Totals,
}

impl Index {
    fn build(paths: &[PathBuf], out: &mut impl Write) -> io::Result<(Self, Vec<Worker>)> {
        let mut passed_over = PassedOver::default();
        let files = walk(paths, &mut passed_over);
        writeln!(
            out,
            "{} files, {THREADS} threads

{:>9}  {:>32}  {:>32}  {:>11}  {:>10}",
            Count(files.len()),
            "indexed",
            "live, exact",
            "live, published",
            "off at most",
            "peak"
        )?;

        let next = AtomicUsize::new(THREADS);
        let done = AtomicUsize::new(0);
        let reporter = thread::current();
        let (parts, reported) = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|first| {
                    let (files, next, done, reporter) = (&files, &next, &done, &reporter);
                    scope.spawn(move || {
                        work(files, first, next, || Done {
                            files: done,
                            reporter,
                        })
                    })
                })
                .collect();
            let reported = report_progress(out, files.len(), &done);
            // Joined one by one: the scope itself may end before its threads' last deallocations.
            let parts: Vec<_> = threads
                .into_iter()
                .map(|thread| thread.join().expect("a worker does not panic"))
                .collect();
            (parts, reported)
        });
        reported?;

        let mut whole = Part::new();
        let mut workers = Vec::with_capacity(THREADS);
        for (part, in_part, worker) in parts {
            for (word, postings) in part {
                whole.entry(word).or_default().extend(postings);
            }
            passed_over.add(in_part);
            workers.push(worker);
        }
        let mut entries = Vec::with_capacity(whole.len());
        entries.extend(whole.into_iter().map(|(word, mut postings)| {
            postings.sort_unstable_by_key(|posting| posting.file);
            Entry {
                word,
                postings: postings.into_boxed_slice(),
            }
        }));
        entries.sort_unstable_by(|a, b| a.word.cmp(&b.word));
        Ok((
            Self {
                files,
                entries,
                passed_over,
            },
            workers,
        ))
    }

    fn find(&self, word: &str) -> &[Posting] {
        self.entries
            .binary_search_by(|entry| (*entry.word).cmp(word))
            .map_or(&[], |at| &self.entries[at].postings)
    }

    /// Returns what the index holds, by its own arithmetic.
    fn held(&self) -> Held {
        let mut held = Held::default();
        held.add_block(self.files.capacity() * size_of::<PathBuf>());
        for file in &self.files {
            held.add_block(file.capacity());
        }
        held.add_block(self.entries.capacity() * size_of::<Entry>());
        for entry in &self.entries {
            held.add_block(entry.word.len());
            held.add_block(size_of_val(&*entry.postings));
        }
        held
    }
}

/// Prints a line whenever another tenth of the files has been dealt with, woken by the workers.
fn report_progress(out: &mut impl Write, files: usize, done: &AtomicUsize) -> io::Result<()> {
    let mut shown = None;
    loop {
        let tenths = (done.load(Acquire) * 10).checked_div(files).unwrap_or(10);
        if shown < Some(tenths) {
            shown = Some(tenths);
            writeln!(
                out,
                "{:>7} %  {:>32}  {:>32}  {:>11}  {:>10}",
                tenths * 10,
                Bytes(heap().totals().live_bytes()).to_string(),
                Bytes(heap().live_bytes()).to_string(),
                Short(heap().error_bound()).to_string(),
                Short(heap().peak_bytes()).to_string(),
            )?;
        }
        if tenths == 10 {
            return Ok(());
        }
        thread::park();
    }
}

/// Tells the reporter, when it is dropped, that one more file has been dealt with, also by a panic.
struct Done<'a> {
    files: &'a AtomicUsize,
    reporter: &'a Thread,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.files.fetch_add(1, Release);
        self.reporter.unpark();
    }
}

/// What was not indexed.
#[derive(Debug, Default, Clone, Copy)]
struct PassedOver {
    unreadable: usize,
    special: usize,
    binary: usize,
    large: usize,
}

impl PassedOver {
    fn add(&mut self, other: Self) {
        self.unreadable += other.unreadable;
        self.special += other.special;
        self.binary += other.binary;
        self.large += other.large;
    }

    fn sum(self) -> usize {
        self.unreadable + self.special + self.binary + self.large
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} binary, {} too large, {} unreadable, {} links and special files",
            Count(self.binary),
            Count(self.large),
            Count(self.unreadable),
            Count(self.special)
        )
    }
}

fn complain(what: &dyn fmt::Display) {
    // Nobody may be listening.
    let _ = writeln!(io::stderr(), "word_index: passing over {what}");
}

/// Lists the plain files under `paths`.
fn walk(paths: &[PathBuf], passed_over: &mut PassedOver) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        for entry in WalkDir::new(path).into_iter().filter_entry(is_wanted) {
            match entry {
                Ok(entry) if entry.file_type().is_file() => files.push(entry.into_path()),
                Ok(entry) if entry.file_type().is_dir() => {}
                Ok(_) => passed_over.special += 1,
                Err(error) => {
                    complain(&error);
                    passed_over.unreadable += 1;
                }
            }
        }
    }
    files
}

/// Leaves out what is hidden and what is marked as a cache, except where it was named itself.
fn is_wanted(entry: &DirEntry) -> bool {
    let hidden = || entry.file_name().as_encoded_bytes().starts_with(b".");
    let cache = || entry.file_type().is_dir() && entry.path().join("CACHEDIR.TAG").exists();
    entry.depth() == 0 || !(hidden() || cache())
}

/// Indexes files until there are none left: the one numbered `first`, so that each thread has a share of
/// the smallest work, then whichever is `next`. `begin` gives what is to be dropped after each.
fn work<D>(
    files: &[PathBuf],
    first: usize,
    next: &AtomicUsize,
    begin: impl Fn() -> D,
) -> (Part, PassedOver, Worker) {
    let mut part = Part::new();
    let mut passed_over = PassedOver::default();
    let mut indexed = 0;
    let mut text = 0;
    let mut content = Vec::new();
    let mut number = first;
    while let Some(path) = files.get(number) {
        let _done = begin();
        match read(path, &mut content) {
            Ok(Found::Text) => {
                let file = u32::try_from(number).expect("fewer files than a u32 can number");
                add_words(&mut part, file, &String::from_utf8_lossy(&content));
                indexed += 1;
                text += content.len();
            }
            Ok(Found::Binary) => passed_over.binary += 1,
            Ok(Found::Large) => passed_over.large += 1,
            Err(error) => {
                complain(&format_args!("{}: {error}", path.display()));
                passed_over.unreadable += 1;
            }
        }
        number = next.fetch_add(1, Relaxed);
    }
    let worker = Worker {
        files: indexed,
        text,
        totals: heap().thread_totals(),
    };
    (part, passed_over, worker)
}

enum Found {
    Text,
    Binary,
    Large,
}

fn read(path: &Path, content: &mut Vec<u8>) -> io::Result<Found> {
    content.clear();
    // The size that the system states may be of a moment ago, or zero.
    File::open(path)?
        .take(LARGEST_FILE + 1)
        .read_to_end(content)?;
    let sniffed = &content[..content.len().min(SNIFFED)];
    Ok(if sniffed.contains(&0) {
        Found::Binary
    } else if content.len() as u64 > LARGEST_FILE {
        Found::Large
    } else {
        Found::Text
    })
}

fn add_words(part: &mut Part, file: u32, text: &str) {
    let mut word = String::new();
    for raw in text.split(|c: char| !c.is_alphanumeric()) {
        if !(2..=LONGEST_WORD).contains(&raw.len()) {
            continue;
        }
        word.clear();
        word.extend(raw.chars().flat_map(char::to_lowercase));
        if let Some(postings) = part.get_mut(word.as_str()) {
            match postings.last_mut() {
                Some(last) if last.file == file => last.times += 1,
                _ => postings.push(Posting { file, times: 1 }),
            }
        } else {
            part.insert(word.as_str().into(), vec![Posting { file, times: 1 }]);
        }
    }
}

/// A number with its thousands set apart.
struct Count(usize);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at != 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// Bytes in the unit that suits them.
struct Short(usize);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut figure = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // What would be shown as 1024.0 is shown as 1.0 of the next unit.
        while figure >= 1023.95 && unit + 1 < UNITS.len() {
            figure /= 1024.0;
            unit += 1;
        }
        write!(f, "{figure:.1} {}", UNITS[unit])
    }
}

/// Bytes in the unit that suits them, and the exact number beside it.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1024 {
            return Short(self.0).fmt(f);
        }
        write!(f, "{} ({} B)", Short(self.0), Count(self.0))
    }
}

/// Bytes that may be below zero, in the unit that suits them.
struct Net(isize);

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        Short(self.0.unsigned_abs()).fmt(f)
    }
}
