//! No panic, no allocation and no lock can be reached from the four allocator methods: the linker says
//! so.
//!
//! The package in `reachable/` has the methods, in both modes, as functions with names of their own, over
//! an inner allocator of undefined symbols. It is built as a static library, optimised as a whole, with
//! the standard library inside. We link that with the methods as the only roots and all other sections
//! given up for collection (`--gc-sections`). A section stays only if something that stays refers to it,
//! by a call, an address or an unwinding table, so what the result defines and wants is *all* that can be
//! reached: our own code, the inner allocator, and a handful of names from the C library. Any other name
//! is a fault. That includes the function that runs when a thread ends, whose address is taken.
//!
//! The same is done with overflow checks and debug assertions on: their panics would stay if the
//! optimiser could not prove that they never happen. And controls, roots that do panic, lock, allocate and
//! register a destructor, show that each of those would be seen.
//!
//! Needs GNU/Linux on x86-64 with `cc` and `nm`, and says in its claims' outcome when it has not got them.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

const METHODS: [&str; 8] = [
    "batched_alloc",
    "batched_alloc_zeroed",
    "batched_dealloc",
    "batched_realloc",
    "exact_alloc",
    "exact_alloc_zeroed",
    "exact_dealloc",
    "exact_realloc",
];

/// What the methods may want from outside: the inner allocator, memory for shards, the key that tells of
/// a thread's end, the address of a thread-local, and two system calls by number: the one that wakes a thread
/// which waits for a trigger (`Thread::unpark`; on Linux it wakes, and never waits), and `gettid` for the id of a
/// thread that claims its shard (no memory, no wait, no failure).
const WANTED: [&str; 11] = [
    "inner_alloc",
    "inner_alloc_zeroed",
    "inner_dealloc",
    "inner_realloc",
    "mmap",
    "munmap",
    "pthread_key_create",
    "pthread_key_delete",
    "pthread_setspecific",
    "__tls_get_addr",
    "syscall",
];

/// What is in every library that is linked from the standard library: tables of the linker's, and the
/// start-up function that notes the program's arguments, which no collection removes.
const ALWAYS_THERE: [&str; 5] = [
    "_DYNAMIC",
    "_GLOBAL_OFFSET_TABLE_",
    "__GNU_EH_FRAME_HDR",
    "std::sys::args::unix::imp::ARGV_INIT_ARRAY",
    "std::sys::args::unix::imp::ARGV_INIT_ARRAY::init_wrapper",
];

/// A root that does what the methods may not, and part of a name that must show it.
const CONTROLS: [(&str, &str); 4] = [
    ("control_panics", "core::panicking::panic_bounds_check"),
    ("control_locks", "::Mutex>::lock_contended"),
    ("control_allocates", "malloc"),
    ("control_registers", "__cxa_thread_atexit_impl"),
];

/// Ways to build: a name, and the settings of the release profile.
const BUILDS: [(&str, &[&str]); 2] = [
    ("release", &[]),
    (
        "checked",
        &[
            "profile.release.opt-level=2",
            "profile.release.overflow-checks=true",
            "profile.release.debug-assertions=true",
        ],
    ),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let can = cfg!(all(
        target_os = "linux",
        target_env = "gnu",
        target_arch = "x86_64"
    )) && ["cc", "nm"].iter().all(|tool| {
        Command::new(tool)
            .arg("--version")
            .output()
            .is_ok_and(|answer| answer.status.success())
    });
    let trials = BUILDS.iter().map(|&(build, settings)| {
        let name = format!("only_our_own_code_is_reachable_in_a_{build}_build");
        let look = move || only_our_own_code(build, settings).map_err(Failed::from);
        // Without the tools there is nothing to look with.
        Trial::test(name, look).with_ignored_flag(!can)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn only_our_own_code(build: &str, settings: &[&str]) -> Result<(), Box<dyn Error>> {
    let library = library(build, settings)?;
    let reached = reached(&library, &METHODS)?;
    for method in METHODS {
        if !reached.iter().any(|name| name == method) {
            return Err(format!("{method} is not in the result: {reached:#?}").into());
        }
    }
    let strange: Vec<&String> = reached
        .iter()
        .filter(|name| {
            let name = name.as_str();
            let ours = name.starts_with("tally_alloc::") || name.starts_with("<tally_alloc::");
            let known = [&METHODS[..], &WANTED, &ALWAYS_THERE].concat();
            !ours && !known.contains(&name)
        })
        .collect();
    if !strange.is_empty() {
        // One panic brings hundreds of names with it; the disassembly says who calls it.
        let (count, first) = (strange.len(), &strange[..strange.len().min(20)]);
        let seen = library.with_file_name(format!("from_{}.so", METHODS[0]));
        return Err(format!(
            "{count} names are reachable from the four methods that should not be, among them\n\
             {first:#?}\nSee `objdump --demangle --disassemble {}`.",
            seen.display()
        )
        .into());
    }
    for (control, shows) in CONTROLS {
        let reached = self::reached(&library, &[control])?;
        if !reached.iter().any(|name| name.contains(shows)) {
            return Err(format!("{control} does not show {shows}: {reached:#?}").into());
        }
    }
    Ok(())
}

/// Builds the package and returns the path of the static library.
fn library(build: &str, settings: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reachable/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reachable-{build}"));
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--lib", "--manifest-path"]);
    cargo.arg(manifest).arg("--target-dir").arg(&target);
    for setting in settings {
        cargo.args(["--config", setting]);
    }
    succeed(&mut cargo)?;
    Ok(target.join("release/libtally_alloc_reachable.a"))
}

/// Links with these roots and returns the names of all that stays, defined or wanted.
fn reached(library: &Path, roots: &[&str]) -> Result<Vec<String>, Box<dyn Error>> {
    let linked = library.with_file_name(format!("from_{}.so", roots[0]));
    let exported = linked.with_extension("map");
    let map = format!("{{ global: {}; local: *; }};", roots.join("; "));
    std::fs::write(&exported, map)?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-nostdlib", "-Wl,--gc-sections"]);
    cc.arg(format!("-Wl,--version-script={}", exported.display()));
    cc.args(roots.iter().map(|root| format!("-Wl,--undefined={root}")));
    cc.arg("-o").arg(&linked).arg(library);
    succeed(&mut cc)?;
    let symbols = succeed(Command::new("nm").arg("--demangle").arg(&linked))?;
    Ok(symbols.lines().filter_map(name).map(String::from).collect())
}

/// Returns the name in a line of `nm`: an address, or blanks for what is undefined, a letter, the name.
fn name(line: &str) -> Option<&str> {
    let (_, letter_and_name) = line.split_at_checked(17)?;
    Some(letter_and_name.get(2..)?.trim())
}

fn succeed(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{stderr}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
