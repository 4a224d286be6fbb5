//! The jobs' CPU shares over time.

use anyhow::Result;
use paceline_sim::trace::Held;

use super::over_time::{band, colours, spans};
use super::{Section, Subject, side_by_side};
use crate::figure::html::legend;
use crate::figure::{Axis, stack};

/// The most jobs that the legend names.
const NAMED: usize = 12;

pub(super) fn section(subject: &Subject<'_>) -> Result<Option<Section>> {
    let first = subject.comparison.results.first().and_then(|results| results.outcomes.first());
    let jobs: Vec<&str> =
        first.iter().flat_map(|run| &run.jobs).map(|job| job.id.as_str()).collect();
    let colours = colours(jobs.len())?;
    let of = |held: &Held| (band(held.job, jobs.len(), colours.len()), 100.0 * held.share);
    let x = Axis::time("seconds after the run began", subject.end());
    let y = Axis::percent("CPU [% of all nodes]", 2.0);
    let mut pictures = Vec::new();
    for (name, trace) in subject.names().into_iter().zip(&subject.traces) {
        let alt = format!("The jobs' shares of the CPU over time under {name}");
        let spans = spans(trace, colours.len(), of);
        pictures.push((name, stack::draw(&x, &y, &colours, &spans, &alt)?));
    }
    let legend = if jobs.len() <= NAMED {
        legend(colours.into_iter().zip(jobs))
    } else {
        let named = colours.first().zip(jobs.first()).into_iter();
        let last = colours.last().zip(jobs.last());
        legend(named.chain(last).map(|(colour, name)| (*colour, *name)))
    };
    Ok(Some(Section {
        title: "CPU share over time",
        caption: "Each job's share, stacked in the order of the scenario. Space at the top is unused \
                  CPU. With many jobs the legend names the first and the last; the others have colours \
                  in between.",
        body: legend + &side_by_side(pictures),
    }))
}
