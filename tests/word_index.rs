//! The word index of `examples/word_index.rs`, run on files whose words are known. The program checks
//! the account against its own arithmetic to the byte and block, so it fails when counting is broken.
//!
//! A process of its own: the checks are exact, and a test harness would allocate beside them.

#[path = "../examples/word_index.rs"]
mod word_index;

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    // What a runner that lists tests first expects of a test program.
    if std::env::args().any(|argument| argument == "--list") {
        if !std::env::args().any(|argument| argument == "--ignored") {
            println!("word_index: test");
        }
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("word_index");
    let _ = fs::remove_dir_all(&folder);
    the_index_is_right_and_the_account_agrees(&folder);
    nothing_to_index_is_no_failure(&folder);
    fs::remove_dir_all(&folder).expect("the folder is ours");
    println!("test word_index ... ok");
}

fn the_index_is_right_and_the_account_agrees(folder: &Path) {
    fs::create_dir_all(folder.join("deep/er")).expect("a folder of ours");
    fs::create_dir_all(folder.join(".hidden")).expect("a folder of ours");
    for number in 0..100 {
        // Two words of its own in each: enough for the table of words to be a large block.
        let text = format!("Shared words, one word{number} in each file{number}.\nShared: żółw\n");
        write(folder, &format!("deep/{number}.txt"), text.as_bytes());
    }
    write(folder, "deep/er/empty", b"");
    write(folder, "deep/er/not-utf-8", b"caf\xe9 shared\n");
    write(folder, "deep/er/binary", b"shared\0shared");
    write(folder, ".hidden/text", b"shared");

    // Large enough not to grow: that would be counted as the index's.
    let mut report = Vec::with_capacity(64 << 10);
    let paths = [folder.to_owned(), folder.join("is not there")];
    let outcome = word_index::run(&paths, Some("shared"), &mut report);
    let report = String::from_utf8(report).expect("the report is text");
    let outcome = outcome.unwrap_or_else(|failure| panic!("{failure}\n\n{report}"));
    assert_eq!(
        outcome,
        word_index::Outcome {
            files: 102,
            passed_over: 2,
            // shared words one in each żółw caf, and the numbered ones
            words: 7 + 200,
            found: 101,
        },
        "\n{report}"
    );
    for line in [
        "  100 %",
        "What each thread did",
        "`shared` is in 101 files",
    ] {
        assert!(report.contains(line), "no {line:?} in\n{report}");
    }
}

fn nothing_to_index_is_no_failure(folder: &Path) {
    let none: PathBuf = folder.join("deep/er/empty");
    let outcome = word_index::run(&[none], None, &mut std::io::sink()).expect("counted right");
    assert_eq!((outcome.files, outcome.words), (1, 0));
}

fn write(folder: &Path, name: &str, content: &[u8]) {
    fs::write(folder.join(name), content).expect("a file of ours");
}
