//! A line chart, as SVG.

use plotters::prelude::*;

use super::Axis;
use super::plane::Plane;

/// Twice the size at which a chart is shown beside another on a page of 1280 px.
pub(crate) const WIDE: (u32, u32) = (1200, 500);
/// Twice the size at which it is shown on a narrow screen.
pub(crate) const NARROW: (u32, u32) = (960, 500);
/// The room for the vertical axis.
const LEFT: u32 = 136;

/// How far lines that coincide are moved apart, in percent of the machine: about one line's width.
const LIFT: f64 = 1.2;

/// The most points of a line: more could not be seen.
const MAX_POINTS: usize = 2000;

/// Points of time (seconds after the run began) and value.
pub(crate) type Points = Vec<(f64, f64)>;

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line<'a> {
    /// Positions on both axes.
    pub(crate) points: &'a [(f64, f64)],
    pub(crate) colour: RGBColor,
    /// In pixels of the page.
    pub(crate) width: u32,
}

/// Draws `lines`; `alt` describes the chart for people who cannot see it.
pub(crate) fn draw(
    size: (u32, u32),
    x: &Axis,
    y: &Axis,
    lines: &[Line<'_>],
    alt: &str,
) -> anyhow::Result<String> {
    Plane { size, left: LEFT, x, y, named: false }.draw(alt, |canvas| {
        for line in lines {
            let points = line.points.iter().map(|(t, value)| (x.position(*t), y.position(*value)));
            canvas
                .draw_series(LineSeries::new(points, line.colour.stroke_width(2 * line.width)))?;
        }
        Ok(())
    })
}

/// Moves each line a little above the one before, so that lines that coincide stay visible.
pub(crate) fn side_by_side(lines: &[Points]) -> Vec<Points> {
    let lift = |place: u32| f64::from(place % 6) * LIFT;
    let places = 0_u32..;
    let lifted = |(place, line): (u32, &Points)| {
        line.iter().map(|(t, value)| (*t, value + lift(place))).collect()
    };
    places.zip(lines).map(lifted).collect()
}

/// The corners of a step line: each value lasts until the next point, the last one until `end`.
pub(crate) fn steps(points: &Points, end: f64) -> Points {
    let mut corners = Points::new();
    for (t, value) in points {
        match corners.last() {
            Some((_, last)) if (last - value).abs() < 1e-9 => {}
            Some((_, last)) => corners.extend([(*t, *last), (*t, *value)]),
            None => corners.push((*t, *value)),
        }
    }
    corners.extend(corners.last().map(|(t, last)| (end.max(*t), *last)));
    corners
}

/// The line with at most `MAX_POINTS` points, including its last.
pub(crate) fn fewer(points: Points) -> Points {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    points.into_iter().rev().step_by(step).collect::<Points>().into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_drawn_as_steps_until_the_jobs_end() {
        let points = vec![(1.0, 100.0), (2.0, 100.0), (3.0, 25.0), (4.0, 25.0)];
        assert_eq!(steps(&points, 5.0), [(1.0, 100.0), (3.0, 100.0), (3.0, 25.0), (5.0, 25.0)]);
        assert_eq!(steps(&Points::new(), 5.0), []);
    }

    #[test]
    fn line_of_many_points_is_thinned_and_keeps_its_end() {
        let points: Points = (0..5001).map(|x| (f64::from(x), 1.0)).collect();
        let thin = fewer(points.clone());
        assert!(thin.len() <= MAX_POINTS && thin.last() == points.last(), "{} points", thin.len());
        assert_eq!(fewer(points[..10].to_vec()), points[..10]);
    }
}
