//! How each policy trades one objective for another.

use std::ops::Range;

use anyhow::Result;
use paceline_sim::compare::{Comparison, Results};
use paceline_sim::metrics::{Interval, Metric};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Section, alone};
use crate::command::compared::marked;
use crate::figure::palette::{GREY, INK, colour};
use crate::figure::plane::{Canvas, Plane};
use crate::figure::{Axis, TEXT};
use crate::text::titled;

/// Twice the width of a narrow screen.
const SIZE: (u32, u32) = (960, 640);
const LEFT: u32 = 136;
/// The radius of a circle at fairness 0, and how much larger it is at fairness 1.
const MIN_RADIUS: f64 = 4.0;
const RADIUS_GROWTH: f64 = 18.0;
/// The most room for intervals around the means, as a multiple of the range of the means.
const MAX_INTERVAL_ROOM: f64 = 0.5;
/// The height of a line of text.
const LINE: i32 = 40;

/// One policy in the picture.
#[derive(Debug)]
struct Dot {
    name: String,
    colour: RGBColor,
    x: Interval,
    y: Interval,
    fairness: Option<f64>,
}

pub(super) fn section(all: &Comparison) -> Result<Option<Section>> {
    let objectives = Metric::named("completion_mean").zip(Metric::named("loss_area"));
    let Some((completion, area)) = objectives else { return Ok(None) };
    let dot = |(place, results): (usize, &Results)| {
        Some(Dot {
            name: marked(results.arm.to_string(), results.leaves_out_jobs(completion)),
            colour: colour(place),
            x: results.mean(completion)?,
            y: results.mean(area)?,
            fairness: Metric::named("jain")
                .and_then(|jain| results.mean(jain))
                .map(|mean| mean.mean),
        })
    };
    let dots: Vec<Dot> = all.results.iter().enumerate().filter_map(dot).collect();
    if dots.is_empty() {
        return Ok(None);
    }
    let bounds = [completion, area].map(|metric| all.bound(metric).map(|bound| bound.mean));
    let x = axis(completion, dots.iter().map(|dot| dot.x), bounds[0]);
    let y = axis(area, dots.iter().map(|dot| dot.y), bounds[1]);
    let names: Vec<&str> = dots.iter().map(|dot| dot.name.as_str()).collect();
    let alt =
        format!("Mean completion time against the area under the loss of {}", names.join(", "));
    let svg =
        Plane { size: SIZE, left: LEFT, x: &x, y: &y, named: false }.draw(&alt, |canvas| {
            bound_lines(canvas, &x, &y, bounds)?;
            draw(canvas, &dots)
        })?;
    Ok(Some(Section {
        title: "One objective against another",
        caption: "Further left, jobs finish sooner; further down, they learn sooner. A policy that is \
                  both left of and below another one beats it. Larger circles are fairer, by Jain's \
                  index, which is written after the name. Bars are 95 % intervals over the seeds. \
                  Broken lines are bounds, which no policy can pass.",
        body: alone(&svg),
    }))
}

/// An axis that shows all policies and the bound.
fn axis(metric: &Metric, all: impl Iterator<Item = Interval>, bound: Option<f64>) -> Axis {
    let extent = |values: &[f64]| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let (all, half): (Vec<f64>, Vec<f64>) =
        all.map(|Interval { mean, half }| (mean, half.unwrap_or(0.0))).unzip();
    let (least, most) = extent(&all.into_iter().chain(bound).collect::<Vec<f64>>());
    let range = most - least;
    // With two or three seeds an interval can be so wide that it would hide everything else.
    let whole = extent(&half).1.min(MAX_INTERVAL_ROOM * range);
    let around = (0.1 * range + whole).max(0.02 * most.abs()).max(1e-9);
    Axis::even(&titled(metric.title, metric.unit), (least - around).max(0.0), most + around)
}

/// The position `x`, cut to the axis.
fn within(range: &Range<f64>, x: f64) -> f64 {
    x.clamp(range.start, range.end)
}

fn bound_lines(canvas: &mut Canvas<'_>, x: &Axis, y: &Axis, at: [Option<f64>; 2]) -> Result<()> {
    let (x, y) = (x.marked(), y.marked());
    let upright = at[0].map(|at| [(at, y.low), (at, y.high)]);
    let level = at[1].map(|at| [(x.low, at), (x.high, at)]);
    for line in [upright, level].into_iter().flatten() {
        canvas.draw_series(DashedLineSeries::new(line, 12, 8, INK.stroke_width(2)))?;
    }
    Ok(())
}

fn draw(canvas: &mut Canvas<'_>, dots: &[Dot]) -> Result<()> {
    let mut dots: Vec<(i32, &Dot)> =
        dots.iter().map(|dot| (canvas.backend_coord(&dot.at()).1, dot)).collect();
    dots.sort_by_key(|(down, _)| *down);
    // Names that would overlap are moved apart.
    let mut free = i32::MIN;
    for (down, dot) in dots {
        dot.draw(canvas)?;
        let line = down.max(free);
        free = line.saturating_add(LINE);
        dot.label(canvas, line - down)?;
    }
    Ok(())
}

impl Dot {
    fn at(&self) -> (f64, f64) {
        (self.x.mean, self.y.mean)
    }

    /// Draws the circle and its intervals.
    fn draw(&self, canvas: &mut Canvas<'_>) -> Result<()> {
        let (columns, rows) = (canvas.x_range(), canvas.y_range());
        let (x, y) = self.at();
        let level = self.x.half.map(|half| [(x - half, y), (x + half, y)]);
        let upright = self.y.half.map(|half| [(x, y - half), (x, y + half)]);
        for bar in [level, upright].into_iter().flatten() {
            let ends = bar.map(|(x, y)| (within(&columns, x), within(&rows, y)));
            canvas.draw_series(LineSeries::new(ends, self.colour.stroke_width(3)))?;
        }
        let radius = MIN_RADIUS + RADIUS_GROWTH * self.fairness.unwrap_or(0.0);
        canvas.draw_series([Circle::new((x, y), radius, self.colour.mix(0.8).filled())])?;
        Ok(())
    }

    /// Writes its name on the side that has room, `below` pixels below the circle.
    fn label(&self, canvas: &mut Canvas<'_>, below: i32) -> Result<()> {
        let (columns, _) = canvas.plotting_area().get_pixel_range();
        let left = canvas.backend_coord(&self.at()).0 > i32::midpoint(columns.start, columns.end);
        let (side, anchor) = if left { (-30, HPos::Right) } else { (30, HPos::Left) };
        let font = ("sans-serif", TEXT).into_font();
        let style = font.color(&INK).pos(Pos::new(anchor, VPos::Center));
        let fairness = self.fairness.map_or_else(String::new, |jain| format!(", {jain:.2}"));
        // Otherwise the interval's bar would run through the name.
        let above = if self.x.half.is_some_and(|half| half > 0.0) { LINE / 2 } else { 0 };
        let name = Text::new(format!("{}{fairness}", self.name), (side, below - above), style);
        canvas.draw_series([EmptyElement::at(self.at()) + name])?;
        if below > 0 {
            let lead = PathElement::new([(0, 0), (side, below)], GREY.stroke_width(1));
            canvas.draw_series([EmptyElement::at(self.at()) + lead])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(all: &[(f64, Option<f64>)], bound: Option<f64>) -> (f64, f64) {
        let all = all.iter().map(|(mean, half)| Interval { mean: *mean, half: *half });
        let marked = axis(Metric::named("completion_mean").unwrap(), all, bound).marked();
        (marked.low, marked.high)
    }

    #[test]
    fn policies_intervals_and_the_bound_are_on_the_picture() {
        let (low, high) = ends(&[(250.0, Some(9.0)), (270.0, Some(5.0))], Some(200.0));
        assert!(low < 200.0 && high > 279.0, "{low} to {high}");
    }

    #[test]
    fn wide_intervals_of_two_seeds_hide_nothing() {
        let (low, high) = ends(&[(650.0, Some(1200.0)), (680.0, Some(1000.0))], Some(390.0));
        assert!(low > 100.0 && high < 1000.0, "{low} to {high}");
    }

    #[test]
    fn single_policy_has_a_picture() {
        let (low, high) = ends(&[(100.0, None)], None);
        assert!(low < 100.0 && high > 100.0, "{low} to {high}");
        let (low, high) = ends(&[(0.0, None)], None);
        assert!(low <= 0.0 && high > 0.0, "{low} to {high}");
    }
}
