//! Reports: comparisons as a table, as JSON and as CSV.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use crate::interval::Interval;
use crate::rounds::Comparison;

/// Returns the comparisons as a Markdown table: one row a workload, ratios with their 95 % intervals, then the
/// writes to the shared line per million allocations.
#[must_use]
pub fn table(comparisons: &[Comparison], base: &str) -> String {
    let Some(first) = comparisons.first() else {
        return String::new();
    };
    let counting: Vec<usize> = (0..first.ways.len())
        .filter(|&way| {
            comparisons
                .iter()
                .any(|row| row.ways[way].writes_per_million.is_some())
        })
        .collect();
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    let mut header = vec!["workload".to_owned(), base.to_owned()];
    header.extend(first.ways.iter().map(|way| way.way.clone()));
    header.extend(
        counting
            .iter()
            .map(|&way| format!("writes/M, {}", first.ways[way].way)),
    );
    table.set_header(header);
    for row in comparisons {
        let mut cells = vec![row.workload.clone(), milliseconds(row.base_nanoseconds)];
        cells.extend(row.ways.iter().map(|way| ratio(way.ratio)));
        cells.extend(counting.iter().map(|&way| {
            row.ways[way]
                .writes_per_million
                .map_or_else(String::new, |writes| format!("{writes:.0}"))
        }));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn milliseconds(nanoseconds: f64) -> String {
    format!("{:.1} ms", nanoseconds / 1e6)
}

/// Returns a ratio as a table shows it.
#[must_use]
pub fn ratio(of: Interval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", of.median, of.low, of.high)
}

/// Returns which machine this is and what time: what belongs beside every table.
#[must_use]
pub fn circumstances() -> String {
    let processor = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            line.split_once(": ").map(|(_, name)| name.to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let mut text = String::new();
    write!(
        text,
        "{processor}, {cores} processors, {}, {}",
        std::env::consts::OS,
        &now[..10]
    )
    .expect("a string takes everything");
    text
}

/// Writes comparisons to a file as JSON.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_json<T: Serialize + ?Sized>(path: &Path, results: &T) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(results)?;
    fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
}

/// Puts `text` into a Markdown file, between its lines `<!-- NAME:begin -->` and `<!-- NAME:end -->`, in place of
/// what was there. So a page says itself which of its tables are measured, and nobody copies figures by hand.
///
/// # Errors
///
/// When the file lacks the lines, or cannot be read or written.
pub fn write_markdown(path: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let page = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let page = between(&page, name, text)
        .with_context(|| format!("{} has no place for '{name}'", path.display()))?;
    fs::write(path, page).with_context(|| format!("writing {}", path.display()))
}

fn between(page: &str, name: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("<!-- {name}:begin -->\n"))?;
    let (_, after) = rest.split_once(&format!("<!-- {name}:end -->"))?;
    let text = text.trim_end();
    Some(format!(
        "{before}<!-- {name}:begin -->\n{text}\n<!-- {name}:end -->{after}"
    ))
}

/// Writes comparisons to a file as CSV: one line for each workload and way.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_csv(path: &Path, comparisons: &[Comparison]) -> anyhow::Result<()> {
    let mut file =
        csv::Writer::from_path(path).with_context(|| format!("writing {}", path.display()))?;
    file.write_record([
        "workload",
        "way",
        "rounds",
        "base_nanoseconds",
        "ratio",
        "ratio_low",
        "ratio_high",
        "writes_per_million",
    ])?;
    for row in comparisons {
        for way in &row.ways {
            file.write_record([
                row.workload.clone(),
                way.way.clone(),
                row.rounds.to_string(),
                row.base_nanoseconds.to_string(),
                way.ratio.median.to_string(),
                way.ratio.low.to_string(),
                way.ratio.high.to_string(),
                way.writes_per_million
                    .map(|writes| writes.to_string())
                    .unwrap_or_default(),
            ])?;
        }
    }
    file.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_what_stood_at_its_place_and_nothing_else() {
        let page = "before\n<!-- a:begin -->\nold\n<!-- a:end -->\nafter <!-- b:begin -->\n";
        let once = between(page, "a", "new\n").expect("the place is there");
        assert_eq!(
            once,
            "before\n<!-- a:begin -->\nnew\n<!-- a:end -->\nafter <!-- b:begin -->\n"
        );
        assert_eq!(between(&once, "a", "new").as_deref(), Some(&*once), "again");
        assert_eq!(between(page, "b", "new"), None, "it has no end");
    }
}
