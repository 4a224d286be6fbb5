//! What all pictures with two axes share.

use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;

use super::Axis;
use super::html::escape;
use super::marked::Marked;
use super::palette::{GREY, GRID, INK};

/// The font size. It is 14 px on the page: pictures are shown at half their size, and the library
/// divides sizes by 1.24 in SVG.
pub(crate) const TEXT: u32 = 35;

/// The drawing area, in the units of the axes.
pub(crate) type Canvas<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Marked, Marked>>;

/// Two axes and the room around them. Lengths are twice those on the page: coordinates are whole
/// numbers, and steps of half a pixel make lines smooth.
#[derive(Clone, Debug)]
pub(crate) struct Plane<'a> {
    pub(crate) size: (u32, u32),
    /// The room for the labels of the vertical axis.
    pub(crate) left: u32,
    pub(crate) x: &'a Axis,
    pub(crate) y: &'a Axis,
    /// Whether `contents` draws names along the vertical axis, instead of marks.
    pub(crate) named: bool,
}

impl Plane<'_> {
    /// Draws the axes, and `contents` between them. `alt` describes the picture for people who cannot
    /// see it.
    pub(crate) fn draw(
        &self,
        alt: &str,
        contents: impl FnOnce(&mut Canvas<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<String> {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
        self.draw_on(&root, contents)?;
        root.present()?;
        drop(root);
        Ok(inline(&svg, alt))
    }

    /// Draws the axes on a part of a picture, and `contents` between them.
    pub(crate) fn draw_on(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        contents: impl FnOnce(&mut Canvas<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut chart = ChartBuilder::on(area)
            .margin_top(14)
            .margin_right(24)
            .x_label_area_size(100)
            .y_label_area_size(self.left)
            .build_cartesian_2d(self.x.marked(), self.y.marked())?;
        let x_text = |position: &f64| self.x.text(*position);
        let y_text = |position: &f64| self.y.text(*position);
        let mut mesh = chart.configure_mesh();
        mesh.bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(GREY)
            .label_style(("sans-serif", TEXT).into_font().color(&INK))
            .x_desc(self.x.title.as_str())
            .x_label_formatter(&x_text)
            .y_label_formatter(&y_text);
        if self.named {
            mesh.disable_y_mesh().disable_y_axis().y_labels(0);
        } else {
            mesh.y_desc(self.y.title.as_str());
        }
        mesh.draw()?;
        contents(&mut chart)
    }
}

/// Makes the drawing `svg` part of a page, as wide as its place allows.
pub(crate) fn inline(svg: &str, alt: &str) -> String {
    let body = svg.split_once(" viewBox").map_or(svg, |(_, body)| body);
    let body = body.replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    format!("<svg role=\"img\" aria-label=\"{}\" viewBox{body}", escape(alt))
}
