//! The sets into which a policy puts its jobs, over time.

use std::collections::BTreeSet;

use anyhow::Result;
use paceline_sim::Trace;
use paceline_sim::trace::Held;
use plotters::style::RGBColor;

use super::over_time::{highest, spans};
use super::{Section, Subject, side_by_side};
use crate::figure::html::legend;
use crate::figure::palette::{GREY, colour};
use crate::figure::{Axis, stack};

/// A set that jobs can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Set {
    label: &'static str,
    about: &'static str,
    /// The index of its colour in the palette; sets with the same meaning share a colour.
    colour: usize,
}

/// All sets, from those that jobs begin in to those that they should reach.
const SETS: [Set; 17] = [
    set("waiting", "waiting for their tasks to fit", 1),
    set("running", "running", 2),
    set("NL", "NL: new list, its loss falls", 1),
    set("WL", "WL: watching list", 4),
    set("CL", "CL: completing list, its loss hardly falls", 2),
    set("B", "B: behind, slower than its target", 1),
    set("S", "S: satisfied, at its target", 2),
    set("G", "G: ahead, faster than its target", 0),
    set("PC", "PC: progressing", 1),
    set("WC", "WC: watched", 4),
    set("CC", "CC: converged", 2),
    set("AS", "AS: acceptable loss", 2),
    set("new", "new: measured to see what it can use", 3),
    set("waits", "waits for a job with less work left", 1),
    set("shares", "states no remaining work, gets its equal share", 4),
    set("service", "gets the CPU that its target needs", 0),
    set("runs", "runs", 2),
];

const fn set(label: &'static str, about: &'static str, colour: usize) -> Set {
    Set { label, about, colour }
}

pub(super) fn section(subject: &Subject<'_>) -> Result<Option<Section>> {
    let (mut legends, mut without) = (BTreeSet::new(), false);
    let mut pictures = Vec::new();
    let x = Axis::time("seconds after the run began", subject.end());
    for (name, trace) in subject.names().into_iter().zip(&subject.traces) {
        let sets = sets_of(trace);
        if sets.is_empty() {
            continue;
        }
        // Jobs in no set are drawn on top.
        let of = |held: &Held| {
            let place = sets
                .iter()
                .position(|place| SETS.get(*place).is_some_and(|set| set.label == held.class));
            (place.unwrap_or(sets.len()), 1.0)
        };
        let spans = spans(trace, sets.len() + 1, of);
        without |= spans.iter().any(|span| span.amounts.last().is_some_and(|jobs| *jobs > 0.0));
        let members = sets.iter().filter_map(|place| SETS.get(*place));
        let mut colours: Vec<RGBColor> = members.map(|set| colour(set.colour)).collect();
        colours.push(GREY);
        let y = Axis::even("jobs", 0.0, highest(&spans));
        let alt = format!("How many jobs are in which set of {name} over time");
        pictures.push((name, stack::draw(&x, &y, &colours, &spans, &alt)?));
        legends.extend(sets);
    }
    if pictures.is_empty() {
        return Ok(None);
    }
    let sets = legends.into_iter().filter_map(|place| SETS.get(place));
    let entries = sets
        .map(|set| (colour(set.colour), set.about))
        .chain(without.then_some((GREY, "in no set")));
    Ok(Some(Section {
        title: "Convergence of sets",
        caption: "The number of running jobs in each of the policy's sets. Green is the set that jobs \
                  should reach.",
        body: legend(entries) + &side_by_side(pictures),
    }))
}

/// The sets that some job is in at some time, as indices into `SETS`.
fn sets_of(trace: &Trace) -> Vec<usize> {
    let all = trace.moments.iter().flat_map(|moment| &moment.jobs).map(|held| held.class);
    let seen: BTreeSet<&str> = all.collect();
    let sets = SETS.iter().enumerate().filter(|(_, set)| seen.contains(set.label));
    sets.map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sim::Scenario;
    use paceline_sim::scenario::LIBRARY;

    /// Slow scenarios. Their policies also appear in other scenarios.
    const SLOW: [&str; 6] = ["STRESS", "DL-3", "DL-min", "PA-50", "PA-50b", "LONG"];

    #[test]
    fn every_set_of_a_policy_has_a_label() {
        for listed in LIBRARY.iter().filter(|listed| !SLOW.contains(&listed.name)) {
            let scenario = Scenario::parse(listed.text).unwrap();
            for trace in super::super::traces(&scenario, &scenario.arms).unwrap() {
                let held = trace.moments.iter().flat_map(|moment| &moment.jobs);
                for class in held.map(|held| held.class).filter(|class| *class != "-") {
                    assert!(SETS.iter().any(|set| set.label == class), "{}: {class}", listed.name);
                }
            }
        }
    }
}
