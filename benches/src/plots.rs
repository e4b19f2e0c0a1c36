//! Plots, as SVG, of what the commands have measured.

use std::path::Path;

use anyhow::Context as _;
use plotters::prelude::*;
use plotters::style::full_palette::{GREY, ORANGE, PURPLE, TEAL};

use crate::interval::Interval;
use crate::rounds::{Compared, Comparison};

/// What lies between two marks on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The same difference. For ratios: a line marks 1.
    Linear,
    /// A factor of 10; a plot's values on it are above 0.
    Logarithmic,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Each with an interval around it; an interval of no width is not drawn.
    pub points: Vec<(f64, Interval)>,
}

/// A plot's words and axes.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Above it.
    pub title: &'a str,
    /// Along the bottom, with the unit; each mark is twice the one before.
    pub x: &'a str,
    /// Along the left, with the unit.
    pub y: &'a str,
    /// The left axis.
    pub scale: Scale,
    /// The largest value shown, or what the points need.
    pub y_max: Option<f64>,
    /// The least value shown.
    pub y_min: f64,
}

const COLOURS: [RGBColor; 8] = [
    RGBColor(0x1f, 0x6f, 0xb4),
    ORANGE,
    RGBColor(0xc4, 0x2f, 0x3a),
    RGBColor(0x2c, 0x9a, 0x4b),
    PURPLE,
    TEAL,
    RGBColor(0x8a, 0x5a, 0x2b),
    GREY,
];

/// Sizes in pixels that are legible in a README, which is about 800 wide.
const SIZE: (u32, u32) = (860, 440);
const LEGEND: u32 = 190;
const LABELS: (&str, u32) = ("sans-serif", 15);

/// Draws `series` into the file at `path`.
///
/// # Errors
///
/// When the file cannot be written.
pub fn draw(path: &Path, frame: &Frame<'_>, series: &[Series]) -> anyhow::Result<()> {
    // The backend's errors borrow from it.
    try_draw(path, frame, series)
        .map_err(|error| anyhow::anyhow!("{error}"))
        .with_context(|| format!("drawing {}", path.display()))
}

fn try_draw(
    path: &Path,
    frame: &Frame<'_>,
    series: &[Series],
) -> Result<(), Box<dyn std::error::Error>> {
    let logarithmic = frame.scale == Scale::Logarithmic;
    let down = |y: f64| {
        let y = y.max(frame.y_min);
        if logarithmic { y.log10() } else { y }
    };
    let all = || series.iter().flat_map(|one| &one.points);
    let x_of = |x: f64| x.log2();
    let x_low = all().map(|(x, _)| x_of(*x)).fold(f64::INFINITY, f64::min);
    let x_high = all()
        .map(|(x, _)| x_of(*x))
        .fold(f64::NEG_INFINITY, f64::max);
    // Medians only: one interval of a noisy run would press everything else to the bottom. What is above is cut off.
    let highest = all().map(|(_, y)| y.median).fold(frame.y_min, f64::max);
    let y_high = frame.y_max.unwrap_or(highest);
    let y_high = if logarithmic {
        down(y_high).ceil()
    } else {
        y_high + (y_high - frame.y_min) * 0.15
    };

    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(frame.title, ("sans-serif", 19))?;
    let (left, right) = root.split_horizontally(SIZE.0 - LEGEND);
    let mut chart = ChartBuilder::on(&left)
        .margin(10)
        .x_label_area_size(46)
        .y_label_area_size(78)
        .build_cartesian_2d(x_low - 0.15..x_high + 0.15, down(frame.y_min)..y_high)?;
    let number = |y: f64| {
        if logarithmic && frame.y.contains('%') {
            format!("{} %", 10_f64.powf(y))
        } else if logarithmic {
            thousands(10_f64.powf(y))
        } else if y_high > 3.0 {
            format!("{y:.1}")
        } else {
            format!("{y:.2}")
        }
    };
    let decades = (y_high - down(frame.y_min)).abs() as usize + 1;
    chart
        .configure_mesh()
        .x_desc(frame.x)
        .y_desc(frame.y)
        .axis_desc_style(("sans-serif", 16))
        .label_style(LABELS)
        .x_labels((x_high - x_low) as usize + 1)
        .x_label_formatter(&|x| thousands(x.exp2()))
        .y_labels(if logarithmic { decades } else { 8 })
        .y_label_formatter(&|y| number(*y))
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    if !logarithmic {
        // A ratio of 1: no difference.
        let ends = [(x_low - 0.15, 1.0), (x_high + 0.15, 1.0)];
        chart.draw_series([PathElement::new(ends, BLACK.mix(0.5).stroke_width(1))])?;
    }
    for (index, (one, colour)) in series
        .iter()
        .zip(COLOURS.iter().cycle().copied())
        .enumerate()
    {
        let points = one
            .points
            .iter()
            .map(|(x, y)| (x_of(*x), down(y.median)))
            .collect::<Vec<_>>();
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            colour.stroke_width(2),
        ))?;
        chart.draw_series(points.iter().map(|at| Circle::new(*at, 3, colour.filled())))?;
        // Side by side, so that each interval can be seen.
        let aside = (index as f64 - (series.len() - 1) as f64 / 2.0) * 0.02;
        let intervals = one.points.iter().filter(|(_, y)| y.low < y.high);
        chart.draw_series(intervals.map(|(x, y)| {
            let x = x_of(*x) + aside;
            PathElement::new(
                [(x, down(y.low)), (x, down(y.high).min(y_high))],
                colour.mix(0.7).stroke_width(2),
            )
        }))?;
        let y = 40 + index as i32 * 24;
        right.draw(&PathElement::new([(4, y), (28, y)], colour.stroke_width(3)))?;
        right.draw(&Text::new(one.name.clone(), (36, y - 8), LABELS))?;
    }
    root.present()?;
    Ok(())
}

/// Writes a whole number with its thousands apart.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The workloads in the plots by threshold: those that allocate most, and one whose blocks are freed by other threads.
const BY_THRESHOLD: [&str; 6] = [
    "pair 64 B, 8 threads",
    "grow to 64 KiB, written, 8 threads",
    "mergesort",
    "tree_immutable",
    "objarray",
    "handoff",
];

/// Draws what the `overhead` command has measured with all ways: the ratio by threads, the ratio by threshold and
/// the writes by threshold.
///
/// # Errors
///
/// When a file in `directory` cannot be written, or the results lack what a plot shows.
pub fn of_overhead(directory: &Path, results: &[Comparison]) -> anyhow::Result<()> {
    draw(
        &directory.join("contention-threads.svg"),
        &Frame {
            title: "A 64-byte malloc and free: time as a ratio to uncounted",
            x: "threads",
            y: "ratio of time to uncounted",
            scale: Scale::Linear,
            y_min: 0.0,
            y_max: None,
        },
        &by_threads(results)?,
    )?;
    draw(
        &directory.join("contention-thresholds.svg"),
        &Frame {
            title: "Batched, 8 threads: time as a ratio to uncounted",
            x: "threshold, KiB",
            y: "ratio of time to uncounted",
            scale: Scale::Linear,
            y_min: 0.8,
            y_max: None,
        },
        &by_threshold(results, |way| Some(way.ratio)),
    )?;
    let writes = |way: &Compared| {
        let writes = way.writes_per_million.filter(|writes| *writes > 0.0)?;
        Some(Interval {
            median: writes,
            low: writes,
            high: writes,
        })
    };
    draw(
        &directory.join("contention-writes.svg"),
        &Frame {
            title: "Batched, 8 threads: writes to the shared cache line",
            x: "threshold, KiB",
            y: "writes per million allocations",
            scale: Scale::Logarithmic,
            y_min: 1.0,
            y_max: None,
        },
        &by_threshold(results, writes),
    )
}

fn by_threads(results: &[Comparison]) -> anyhow::Result<Vec<Series>> {
    let rows: Vec<(f64, &Comparison)> = results
        .iter()
        .filter_map(|row| {
            let threads = row.workload.strip_prefix("pair 64 B, ")?;
            Some((threads.split_once(' ')?.0.parse().ok()?, row))
        })
        .filter(|(_, row)| !row.workload.contains("mimalloc"))
        .collect();
    let (_, first) = rows.first().context("no pairs were measured")?;
    let series = ["one atomic", "exact", "batched 16 KiB", "control"].map(|name| {
        let way = first.ways.iter().position(|way| way.way == name);
        let name = match name {
            "control" => "uncounted again",
            name => name,
        };
        let way = way.context("measure with --all-ways")?;
        Ok(Series {
            name: name.to_owned(),
            points: rows
                .iter()
                .map(|(threads, row)| (*threads, row.ways[way].ratio))
                .collect(),
        })
    });
    series.into_iter().collect()
}

fn by_threshold(
    results: &[Comparison],
    value: impl Fn(&Compared) -> Option<Interval>,
) -> Vec<Series> {
    let kib = |way: &Compared| {
        let kib = way.way.strip_prefix("batched ")?.strip_suffix(" KiB")?;
        kib.parse::<f64>().ok()
    };
    BY_THRESHOLD
        .iter()
        .filter_map(|name| {
            let row = results.iter().find(|row| row.workload == *name)?;
            let points = row.ways.iter();
            let points: Vec<_> = points
                .filter_map(|way| Some((kib(way)?, value(way)?)))
                .collect();
            let name = name.trim_end_matches(", 8 threads").to_owned();
            (!points.is_empty()).then_some(Series { name, points })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [
            (1.0, "1"),
            (999.0, "999"),
            (1_000.0, "1,000"),
            (1e6, "1,000,000"),
        ] {
            assert_eq!(thousands(number), text);
        }
    }
}
