//! How many jobs meet their batch latency targets, over time.

use anyhow::Result;
use paceline_policy::unit::count;
use paceline_sim::satisfaction::{Satisfaction, Standing};
use plotters::style::RGBColor;

use super::pictures::Shown;
use crate::figure::Axis;
use crate::figure::palette::{GREY, colour};
use crate::figure::stack::{self, Span};

/// The sets from the bottom up, with their colours' indices in the palette, as in the simulator's reports.
pub(super) const SETS: [(&str, usize); 3] = [
    ("S: satisfied, within 10 % of the target", 2),
    ("G: ahead, faster than the target", 0),
    ("B: behind, slower than the target", 1),
];

/// Draws the run's sets; `None` without frames, or if no job has such a target.
pub(super) fn draw(shown: &Shown<'_>, time: &Axis) -> Result<Option<String>> {
    let observed = shown.observed;
    let frames = observed.frames.as_ref().ok().and_then(Satisfaction::from_recording);
    let Some((found, offset)) = frames.zip(observed.offset()) else { return Ok(None) };
    let ends = found.over_time.iter().skip(1).map(|standing| standing.at);
    let until = observed.recorded.run.jobs.iter().map(|job| job.ended).fold(0.0, f64::max);
    let ends = ends.map(|at| at + offset).chain([until]);
    let span = |(standing, to): (&Standing, f64)| Span {
        from: (standing.at + offset).max(0.0),
        to: to.max(0.0),
        amounts: [standing.satisfied, standing.ahead, standing.behind, standing.unknown]
            .map(count)
            .to_vec(),
    };
    let spans: Vec<Span> =
        found.over_time.iter().zip(ends).map(span).filter(|span| span.to > span.from).collect();
    let most = spans.iter().map(|span| span.amounts.iter().sum()).fold(1.0, f64::max);
    let mut colours: Vec<RGBColor> = SETS.iter().map(|(_, place)| colour(*place)).collect();
    colours.push(GREY);
    let y = Axis::even("jobs", 0.0, most);
    let alt =
        format!("How many jobs meet their batch latency targets under {}", shown.arm.facts.name);
    stack::draw(time, &y, &colours, &spans, &alt).map(Some)
}
