//! What the fuzz targets in `fuzz/` do with an input. Each reads one as a sequence of steps, takes them, and panics when
//! something does not hold. The same code replays a corpus with any toolchain (`tests/corpus.rs`).

pub mod c_api;
pub mod operations;
pub mod policies;

mod figures;
#[path = "../../support/pretend.rs"]
#[allow(unsafe_code, reason = "an allocator")]
mod pretend;

use arbitrary::{Arbitrary, Unstructured};

/// A target: its name, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// The targets.
pub const TARGETS: [Target; 3] = [
    ("operations", |data| with(data, operations::run)),
    ("c_api", |data| with(data, c_api::run)),
    ("policies", |data| with(data, policies::run)),
];

/// Reads an input as the fuzzer does, and acts on it. What can not be read is passed over.
fn with<T: for<'a> Arbitrary<'a>>(data: &[u8], act: fn(&T)) {
    if let Ok(input) = T::arbitrary_take_rest(Unstructured::new(data)) {
        act(&input);
    }
}
