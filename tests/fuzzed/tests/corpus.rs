//! The inputs in `fuzz/seeds`, again, with any toolchain.

use std::fs;
use std::path::Path;

use tally_alloc_fuzzed::TARGETS;

#[test]
fn every_input_of_the_corpus_holds() {
    for (name, act) in TARGETS {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/seeds")
            .join(name);
        let mut inputs: Vec<_> = fs::read_dir(&directory)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
            .map(|entry| entry.expect("an entry").path())
            .collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "no inputs in {}", directory.display());
        for input in inputs {
            // Told by the test runner if it fails.
            println!("{}", input.display());
            act(&fs::read(&input).expect("an input can be read"));
        }
    }
}
