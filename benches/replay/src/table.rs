//! Tables, in Markdown.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use crate::outcome::Outcome;

/// Makes a table with its first column to the left and the others to the right.
#[must_use]
pub fn of(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// A share as a percentage.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Bytes in MB.
#[must_use]
pub fn megabytes(bytes: f64) -> String {
    if bytes >= 100e6 {
        format!("{:.0}", bytes / 1e6)
    } else {
        format!("{:.1}", bytes / 1e6)
    }
}

/// The columns that [`cells`] fills.
pub const COLUMNS: [&str; 8] = [
    "collections",
    "time collecting",
    "first tenth",
    "last tenth",
    "growth steps",
    "reserved MB",
    "mean resident MB",
    "peak resident MB",
];

/// What there is to say of every run.
#[must_use]
pub fn cells(outcome: &Outcome) -> Vec<String> {
    vec![
        outcome.collections.to_string(),
        percent(outcome.share()),
        percent(outcome.tenths[0]),
        percent(outcome.tenths[9]),
        outcome.growth_steps.to_string(),
        megabytes(outcome.reserved as f64),
        megabytes(outcome.mean_resident),
        megabytes(outcome.peak_resident as f64),
    ]
}
