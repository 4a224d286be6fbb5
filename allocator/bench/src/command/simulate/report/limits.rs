//! The jobs' CPU limits over time.

use anyhow::Result;
use paceline_sim::Trace;
use paceline_sim::trace::Moment;

use super::over_time::colours;
use super::{Section, Subject, side_by_side};
use crate::figure::Axis;
use crate::figure::chart::{self, Line, Points, fewer, steps};

/// The lines of more jobs would hide each other.
const MAX_JOBS: usize = 12;

pub(super) fn section(subject: &Subject<'_>) -> Result<Option<Section>> {
    let first = subject.comparison.results.first().and_then(|results| results.outcomes.first());
    let jobs = first.map_or(0, |run| run.jobs.len());
    if jobs > MAX_JOBS {
        return Ok(None);
    }
    let x = Axis::time("seconds after the run began", subject.end());
    let y = Axis::percent("limit [% of its node]", 8.0);
    let colours = colours(jobs)?;
    let mut pictures = Vec::new();
    for (name, trace) in subject.names().into_iter().zip(&subject.traces) {
        let lines: Vec<Points> = (0..jobs).map(|job| line(trace, job)).collect();
        if lines.iter().flatten().all(|(_, limit)| *limit >= 100.0) {
            continue;
        }
        let lines = chart::side_by_side(&lines);
        let lines: Vec<Line<'_>> = lines
            .iter()
            .zip(&colours)
            .map(|(points, colour)| Line { points, colour: *colour, width: 2 })
            .collect();
        let alt = format!("The jobs' limits over time under {name}");
        pictures.push((name, chart::draw(chart::NARROW, &x, &y, &lines, &alt)?));
    }
    Ok((!pictures.is_empty()).then(|| Section {
        title: "CPU limits over time",
        caption: "Each job's limit, in the colours of the shares above. Lines that coincide are drawn \
                  slightly apart.",
        body: side_by_side(pictures),
    }))
}

/// A job's limit in percent, from its arrival to its end.
fn line(trace: &Trace, job: usize) -> Points {
    let limit = |moment: &Moment| {
        moment.jobs.iter().find(|held| held.job == job).map(|held| 100.0 * held.limit)
    };
    let there: Vec<(f64, f64, f64)> =
        trace.spans().filter_map(|(moment, end)| Some((moment.at, limit(moment)?, end))).collect();
    let end = there.last().map_or(0.0, |(_, _, end)| *end);
    fewer(steps(&there.into_iter().map(|(at, limit, _)| (at, limit)).collect(), end))
}
