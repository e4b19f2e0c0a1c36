//! C and C++ programs that use the header and the library as a stranger would: compiled by the
//! system's compilers, linked to the static and to the shared library, run, and run under valgrind.
//!
//! `CC` and `CXX` name other compilers. Where there is no valgrind, that part is skipped and says so.
#![cfg(unix)]
#![allow(missing_docs, reason = "an integration test")]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

#[derive(Clone, Copy)]
enum Language {
    C,
    Cpp,
}

#[derive(Clone, Copy, Debug)]
enum Linked {
    Statically,
    Dynamically,
}

impl Language {
    fn compiler(self) -> Command {
        let (variable, default, standard) = match self {
            Self::C => ("CC", "cc", "-std=c11"),
            Self::Cpp => ("CXX", "c++", "-std=c++11"),
        };
        let compiler = env::var_os(variable).unwrap_or_else(|| OsString::from(default));
        let mut command = Command::new(compiler);
        command.args([
            standard,
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O1",
            "-g",
        ]);
        // `pthread_create` and its like, beside the standard.
        command.arg("-D_GNU_SOURCE");
        command
    }
}

/// Where cargo has put the libraries that were built with this test: beside it.
fn libraries() -> PathBuf {
    let test = env::current_exe().expect("this program's path");
    test.parent().expect("it lies in a directory").to_path_buf()
}

fn checked(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn compile(source: &Path, language: Language, linked: Linked, into: &TempDir) -> PathBuf {
    let program = into.path().join("program");
    let mut compiler = language.compiler();
    compiler
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program);
    match linked {
        Linked::Statically => {
            compiler.arg(libraries().join("libtally_alloc_capi.a"));
        }
        Linked::Dynamically => {
            let directory = libraries().into_os_string();
            let mut rpath = OsString::from("-Wl,-rpath,");
            rpath.push(&directory);
            compiler
                .arg("-L")
                .arg(directory)
                .arg("-ltally_alloc_capi")
                .arg(rpath);
        }
    }
    checked(compiler.args(["-lpthread", "-ldl", "-lm"]));
    program
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// Compiles and runs a program, alone and under valgrind.
fn run(source: &Path, language: Language, linked: Linked) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = compile(source, language, linked, &directory);
    let output = checked(&mut Command::new(&program));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all as promised\n");
    if !has_valgrind() {
        println!("no valgrind: {} not checked for leaks", source.display());
        return;
    }
    // What stays reachable at the end are the statics of the thread numbering.
    checked(
        Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
            .args(["--errors-for-leak-kinds=definite,indirect,possible"])
            .arg("--show-leak-kinds=definite,indirect,possible")
            .arg(&program),
    );
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

#[test]
fn a_c_program_linked_statically_sees_every_function_do_as_the_header_says() {
    run(&source("account.c"), Language::C, Linked::Statically);
}

#[test]
fn a_c_program_linked_dynamically_sees_every_function_do_as_the_header_says() {
    run(&source("account.c"), Language::C, Linked::Dynamically);
}

#[test]
fn a_cpp_program_charges_its_containers_to_an_account() {
    run(&source("containers.cpp"), Language::Cpp, Linked::Statically);
}

/// The blocks marked as C in a page.
fn c_blocks(page: &str) -> Vec<String> {
    page.split("\n```c\n")
        .skip(1)
        .map(|rest| {
            rest.split("\n```")
                .next()
                .expect("a first part")
                .to_string()
        })
        .collect()
}

#[test]
fn the_c_examples_of_the_readme_compile_and_run() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(package.join("README.md")).expect("the package has one");
    let mut ran = 0;
    for example in c_blocks(&page) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = directory.path().join("example.c");
        fs::write(&source, example).expect("written");
        let program = compile(&source, Language::C, Linked::Statically, &directory);
        checked(&mut Command::new(program));
        ran += 1;
    }
    assert!(ran >= 1, "{ran} examples found");
}
