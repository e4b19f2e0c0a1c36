//! See `tally_alloc_fuzzed::policies`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tally_alloc_fuzzed::policies::{Input, run};

fuzz_target!(|input: Input| run(&input));
