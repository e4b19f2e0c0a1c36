//! Plots, as SVG.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::full_palette::{GREY, ORANGE, PURPLE};

const COLOURS: [RGBColor; 6] = [
    RGBColor(0x1f, 0x6f, 0xb4),
    ORANGE,
    RGBColor(0x2c, 0x9a, 0x4b),
    PURPLE,
    RGBColor(0xc4, 0x2f, 0x3a),
    GREY,
];

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Each point, with its name beside it.
    Points,
    /// A line through the points.
    Line,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// How they are drawn.
    pub style: Style,
    /// The points, each with a name, which only [`Style::Points`] shows.
    pub points: Vec<(f64, f64, String)>,
}

/// A plot's words and ranges.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Above it.
    pub title: &'a str,
    /// Along the bottom, with the unit.
    pub x: &'a str,
    /// Along the left, with the unit.
    pub y: &'a str,
    /// The largest x.
    pub x_max: f64,
    /// The largest y.
    pub y_max: f64,
}

/// Draws `series` into the file at `path`.
///
/// # Errors
///
/// When the file cannot be written.
pub fn draw(path: &Path, frame: &Frame<'_>, series: &[Series]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (880, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(frame.title, ("sans-serif", 20))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..frame.x_max, 0.0..frame.y_max)?;
    chart
        .configure_mesh()
        .x_desc(frame.x)
        .y_desc(frame.y)
        .axis_desc_style(("sans-serif", 16))
        .label_style(("sans-serif", 14))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.1))
        .draw()?;
    for (one, colour) in series.iter().zip(COLOURS.iter().cycle().copied()) {
        let inside = one
            .points
            .iter()
            .filter(|(x, y, _)| *x <= frame.x_max && *y <= frame.y_max);
        match one.style {
            Style::Line => {
                let line = inside.map(|(x, y, _)| (*x, *y));
                chart
                    .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
                    .label(&one.name)
                    .legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                    });
            }
            Style::Points => {
                let (left, right) = (12, -8);
                chart
                    .draw_series(inside.map(|(x, y, name)| {
                        // Beside the point, on the side where there is room.
                        let near_the_edge = *x > frame.x_max * 0.75;
                        let offset = if near_the_edge {
                            right - 7 * name.len() as i32
                        } else {
                            left
                        };
                        EmptyElement::at((*x, *y))
                            + Circle::new((0, 0), 5, colour.filled())
                            + Text::new(name.clone(), (offset, -7), ("sans-serif", 14))
                    }))?
                    .label(&one.name)
                    .legend(move |(x, y)| Circle::new((x + 9, y), 5, colour.filled()));
            }
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    root.present()?;
    Ok(())
}
