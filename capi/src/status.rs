//! What went wrong, and which version this is.

#![allow(unsafe_code, reason = "exports symbols")]

use std::ffi::{CStr, c_char};

use tally_alloc::ThresholdError;

/// What came of a call. Anything but `TALLY_OK` means that nothing was done.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "the names that C programs use")]
pub enum TallyStatus {
    /// It was done.
    TALLY_OK = 0,
    /// A pointer that must not be null was null.
    TALLY_NULL_POINTER = 1,
    /// There was no memory.
    TALLY_NO_MEMORY = 2,
    /// The mode is neither `TALLY_BATCHED` nor `TALLY_EXACT`.
    TALLY_UNKNOWN_MODE = 3,
    /// The threshold is above the maximum: 1 GiB, or 128 KiB where pointers have 32 bits.
    TALLY_THRESHOLD_TOO_LARGE = 4,
    /// A parameter of a policy is outside the values that mean something.
    TALLY_BAD_PARAMETER = 5,
    /// The measure is none of `TALLY_LIVE_BYTES`, `TALLY_LIVE_BLOCKS` and `TALLY_ALLOCATED_BYTES`.
    TALLY_UNKNOWN_MEASURE = 6,
}

impl From<Result<(), ThresholdError>> for TallyStatus {
    fn from(result: Result<(), ThresholdError>) -> Self {
        match result {
            Ok(()) => Self::TALLY_OK,
            Err(_) => Self::TALLY_THRESHOLD_TOO_LARGE,
        }
    }
}

/// Returns what a status means, in English: a string that lives as long as the program. Takes any
/// number.
#[unsafe(no_mangle)]
pub extern "C" fn tally_status_message(status: i32) -> *const c_char {
    let message: &'static CStr = match status {
        0 => c"done",
        1 => c"a pointer that must not be null was null",
        2 => c"out of memory",
        3 => c"unknown mode",
        4 => c"the threshold is above the maximum",
        5 => c"a parameter of the policy means nothing",
        6 => c"unknown measure",
        _ => c"unknown status",
    };
    message.as_ptr()
}

/// The version that this header was made for, as `tally_version_number` returns it: major × 65536 +
/// minor × 256 + patch.
pub const TALLY_VERSION: u32 = 0x00_01_00;

/// Returns the version of the library that was linked, to be compared with `TALLY_VERSION`. While
/// the major number is 0, libraries of another minor number may differ in what they offer.
#[unsafe(no_mangle)]
pub extern "C" fn tally_version_number() -> u32 {
    TALLY_VERSION
}

/// Returns the version of the library that was linked, as text such as "1.2.3".
#[unsafe(no_mangle)]
pub extern "C" fn tally_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_number_is_the_packages() {
        let number = format!(
            "{}.{}.{}",
            TALLY_VERSION >> 16,
            TALLY_VERSION >> 8 & 0xff,
            TALLY_VERSION & 0xff
        );
        assert_eq!(number, env!("CARGO_PKG_VERSION"));
    }
}
