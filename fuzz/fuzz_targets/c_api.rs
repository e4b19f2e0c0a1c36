//! See `tally_alloc_fuzzed::c_api`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tally_alloc_fuzzed::c_api::{Input, run};

fuzz_target!(|input: Input| run(&input));
