//! One chart of lines over time, as SVG.

use plotters::prelude::*;

use super::html::escape;
use super::marked::Marked;
use super::palette::{GREY, GRID, INK};
use super::scale::{mark_text, time_marks};

/// Twice the size at which a chart is shown beside another on a page of 1280 px: coordinates of
/// the drawing are whole numbers, and half a pixel makes lines smooth.
pub(super) const WIDTH: u32 = 1200;
const HEIGHT: u32 = 500;

/// 14 px on the page: the library writes letters of a size smaller by 1.24 into SVG.
pub(super) const TEXT: u32 = 35;

/// The vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    /// What is measured, and in which unit.
    pub(super) title: &'static str,
    /// The values that are marked, ascending.
    pub(super) marks: Vec<f64>,
    /// Room above the last mark, in the axis's own measure.
    pub(super) above: f64,
    /// Whether equal distances are equal ratios. All values must be above 0 then.
    pub(super) log: bool,
}

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// Seconds and value.
    pub(super) points: &'a [(f64, f64)],
    pub(super) colour: RGBColor,
    /// In pixels of the page.
    pub(super) width: u32,
}

impl Axis {
    /// 0 to 100 %.
    pub(super) fn percent(title: &'static str, above: f64) -> Self {
        Self { title, marks: vec![0.0, 25.0, 50.0, 75.0, 100.0], above, log: false }
    }

    fn position(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    fn text(&self, position: f64) -> String {
        mark_text(if self.log { 10_f64.powf(position) } else { position })
    }
}

/// Draws `lines` from 0 to `end` seconds; `alt` says what is seen to those who cannot see it.
pub(super) fn draw(axis: &Axis, end: f64, lines: &[Line<'_>], alt: &str) -> anyhow::Result<String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
    let marks: Vec<f64> = axis.marks.iter().map(|mark| axis.position(*mark)).collect();
    let low = marks.first().copied().unwrap_or(0.0);
    let high = marks.last().copied().unwrap_or(1.0) + axis.above;
    let mut chart = ChartBuilder::on(&root)
        .margin_top(14)
        .margin_right(24)
        .x_label_area_size(100)
        .y_label_area_size(136)
        .build_cartesian_2d(
            Marked { low: 0.0, high: 1.02 * end, marks: time_marks(end) },
            Marked { low, high, marks },
        )?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GREY)
        .label_style(("sans-serif", TEXT).into_font().color(&INK))
        .x_desc("seconds after the run began")
        .y_desc(axis.title)
        .x_label_formatter(&|t| mark_text(*t))
        .y_label_formatter(&|position| axis.text(*position))
        .draw()?;
    for line in lines {
        let points = line.points.iter().map(|(t, value)| (*t, axis.position(*value)));
        chart.draw_series(LineSeries::new(points, line.colour.stroke_width(2 * line.width)))?;
    }
    root.present()?;
    drop(chart);
    drop(root);
    Ok(inline(&svg, alt))
}

/// Makes the drawing `svg` a part of a page, as wide as there is room.
pub(super) fn inline(svg: &str, alt: &str) -> String {
    let body = svg.split_once(" viewBox").map_or(svg, |(_, body)| body);
    let body = body.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    format!("<svg role=\"img\" aria-label=\"{}\" viewBox{body}", escape(alt))
}
