//! See `tally_alloc_fuzzed::operations`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tally_alloc_fuzzed::operations::{Input, run};

fuzz_target!(|input: Input| run(&input));
