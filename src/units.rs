//! How figures are shown to people: bytes in binary units, three digits of them.
//!
//! # Rounding
//!
//! Below 10 KiB every byte is shown. From there on a figure is rounded to three significant digits (four from
//! 1000 to 1023 of a unit), half up, in the largest unit of which it is at least one *after* rounding: 1023.99 KiB
//! is `1.00 MiB`, never `1024 KiB`. What is shown is off by at most 0.5 % of the figure, and
//! a larger figure is never shown as less than a smaller one.
//!
//! # Memory
//!
//! Everything here is integers written straight into the formatter, so nothing is allocated: figures of a heap are
//! looked at when memory is short.

use std::fmt;

/// Figures below this many bytes are shown exactly.
const EXACT_BELOW: u64 = 10 << 10;

/// By which share of a figure, at most, what is shown may be off: half a digit in the last of three places, of
/// which the first is at least 1.
#[cfg(all(test, not(loom)))]
const RELATIVE_ERROR: f64 = 0.005;

/// Units from 2^10 bytes on, each 2^10 of the one before; the last one holds any `u64`.
const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Shows a number of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) u64);

impl From<usize> for Bytes {
    fn from(bytes: usize) -> Self {
        Self(bytes as u64)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        if bytes < EXACT_BELOW {
            return write!(f, "{bytes} B");
        }
        let mut shift = 0;
        for unit in UNITS {
            shift += 10;
            let hundredths = rounded(bytes, 100, shift);
            if hundredths < 1_000 {
                let (whole, part) = (hundredths / 100, hundredths % 100);
                return write!(f, "{whole}.{part:02} {unit}");
            }
            let tenths = rounded(bytes, 10, shift);
            if tenths < 1_000 {
                let (whole, part) = (tenths / 10, tenths % 10);
                return write!(f, "{whole}.{part} {unit}");
            }
            let whole = rounded(bytes, 1, shift);
            if whole < 1_024 {
                return write!(f, "{whole} {unit}");
            }
        }
        unreachable!("2^64 bytes are 16 of the last unit")
    }
}

/// Returns `bytes * parts / 2^shift`, rounded half up.
const fn rounded(bytes: u64, parts: u64, shift: u32) -> u64 {
    // In 128 bits nothing is lost: there are at most 100 parts.
    let half = 1_u128 << (shift - 1);
    ((bytes as u128 * parts as u128 + half) >> shift) as u64
}

/// Shows a change in bytes, with a minus where it is one.
#[derive(Clone, Copy)]
pub(crate) struct NetBytes(pub(crate) isize);

impl fmt::Display for NetBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        Bytes::from(self.0.unsigned_abs()).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::{Bytes, EXACT_BELOW, NetBytes, RELATIVE_ERROR, UNITS};

    /// Returns the bytes that a text stands for.
    fn parsed(text: &str) -> f64 {
        let (number, unit) = text.split_once(' ').expect("a number and a unit");
        let number: f64 = number.parse().expect("a number");
        let power = match unit {
            "B" => 0,
            _ => 1 + UNITS.iter().position(|&it| it == unit).expect("a unit"),
        };
        number * 1024_f64.powi(i32::try_from(power).expect("a few"))
    }

    /// Figures of all sizes alike, those just about any number of units, and more of those just about the next unit.
    fn figures() -> impl Strategy<Value = u64> {
        let any_size = (0_u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
        let thousandths = prop_oneof![0_u64..1_024_000, 1_022_000_u64..1_026_000];
        let near = (0_u32..7, thousandths, -2_i64..=2).prop_map(|(unit, thousandths, off)| {
            let bytes = (u128::from(thousandths) << (10 * unit)) / 1_000;
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            bytes.saturating_add_signed(off)
        });
        prop_oneof![any_size, near]
    }

    proptest! {
        #[test]
        fn what_is_shown_is_off_by_no_more_than_is_said(bytes in figures()) {
            let text = Bytes(bytes).to_string();
            let off = (parsed(&text) - bytes as f64).abs();
            let allowed = if bytes < EXACT_BELOW { 0.0 } else { bytes as f64 * RELATIVE_ERROR };
            prop_assert!(off <= allowed, "{bytes} is shown as {text}, off by {off}");
        }

        #[test]
        fn a_larger_figure_is_never_shown_as_less(one in figures(), other in figures(), near in 0_u64..2048) {
            for other in [other, one.saturating_add(near)] {
                let (less, more) = (one.min(other), one.max(other));
                let (low, high) = (Bytes(less).to_string(), Bytes(more).to_string());
                prop_assert!(parsed(&low) <= parsed(&high), "{less} is {low}, {more} is {high}");
            }
        }

        #[test]
        fn no_figure_reaches_the_next_unit_or_takes_more_than_three_places(bytes in figures()) {
            let text = Bytes(bytes).to_string();
            let (number, unit) = text.split_once(' ').expect("a number and a unit");
            if unit == "B" {
                prop_assert!(bytes < EXACT_BELOW, "{bytes} is shown as {text}");
            } else {
                let value: f64 = number.parse().expect("a number");
                prop_assert!((1.0..1024.0).contains(&value), "{bytes} is shown as {text}");
                let digits = number.chars().filter(char::is_ascii_digit).count();
                prop_assert_eq!(digits, if value < 1000.0 { 3 } else { 4 }, "{} is shown as {}", bytes, text);
            }
        }

        #[test]
        fn a_change_is_shown_as_its_size_with_a_sign(bytes in any::<isize>()) {
            let size = Bytes::from(bytes.unsigned_abs()).to_string();
            let sign = if bytes < 0 { "-" } else { "" };
            prop_assert_eq!(NetBytes(bytes).to_string(), format!("{sign}{size}"));
        }
    }

    #[test]
    fn edges_are_shown_in_the_unit_they_round_to() {
        for (bytes, text) in [
            (0, "0 B"),
            (10_239, "10239 B"),
            (10_240, "10.0 KiB"),
            (100 << 10, "100 KiB"),
            // 1023.99 KiB.
            ((1 << 20) - 10, "1.00 MiB"),
            ((1 << 20) - 513, "1023 KiB"),
            ((1 << 20) - 512, "1.00 MiB"),
            (1 << 20, "1.00 MiB"),
            ((10 << 20) - 1, "10.0 MiB"),
            ((100 << 30) - 1, "100 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text, "{bytes} bytes");
        }
        assert_eq!(
            NetBytes(isize::MIN).to_string(),
            if cfg!(target_pointer_width = "64") {
                "-8.00 EiB"
            } else {
                "-2.00 GiB"
            }
        );
    }
}
