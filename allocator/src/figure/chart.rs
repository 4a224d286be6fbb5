//! One chart of lines, as SVG.

use plotters::prelude::*;

use super::Axis;
use super::plane::Plane;

/// Twice the size at which a chart is shown beside another on a page of 1280 px.
pub(crate) const WIDE: (u32, u32) = (1200, 500);
/// Twice the size at which it is shown on a narrow screen.
pub(crate) const NARROW: (u32, u32) = (960, 500);
/// The room for the vertical axis.
const LEFT: u32 = 136;

/// Percent of the machine: about the width of a line of the limits' chart.
const LIFT: f64 = 1.2;

/// So many points of a line are more than are seen.
const SEEN: usize = 2000;

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

/// Draws `lines`; `alt` says what is seen to those who cannot see it.
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

/// Lifts each line a little above the one before, so that lines that coincide are all seen.
pub(crate) fn side_by_side(lines: &[Points]) -> Vec<Points> {
    let lift = |place: u32| f64::from(place % 6) * LIFT;
    let places = 0_u32..;
    let lifted = |(place, line): (u32, &Points)| {
        line.iter().map(|(t, value)| (*t, value + lift(place))).collect()
    };
    places.zip(lines).map(lifted).collect()
}

/// The corners of a line that keeps its value until the next point, and the last one until `end`.
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

/// The line with no more points than are seen, among them its last.
pub(crate) fn fewer(points: Points) -> Points {
    let step = points.len().div_ceil(SEEN).max(1);
    points.into_iter().rev().step_by(step).collect::<Points>().into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_drawn_as_steps_until_the_jobs_end() {
        let points = vec![(1.0, 100.0), (2.0, 100.0), (3.0, 25.0), (4.0, 25.0)];
        assert_eq!(steps(&points, 5.0), [(1.0, 100.0), (3.0, 100.0), (3.0, 25.0), (5.0, 25.0)]);
        assert_eq!(steps(&Points::new(), 5.0), []);
    }

    #[test]
    fn a_line_of_many_points_is_thinned_and_ends_where_it_did() {
        let points: Points = (0..5001).map(|x| (f64::from(x), 1.0)).collect();
        let thin = fewer(points.clone());
        assert!(thin.len() <= SEEN && thin.last() == points.last(), "{} points", thin.len());
        assert_eq!(fewer(points[..10].to_vec()), points[..10]);
    }
}
