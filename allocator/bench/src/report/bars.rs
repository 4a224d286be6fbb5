//! Each job's completion time in each arm, with its interval and its prediction.

use anyhow::Result;

use super::super::grid::{marks, value};
use super::super::outcome::{ArmFindings, Findings};
use crate::figure::Axis;
use crate::figure::bars::{self, Bar, Group};
use crate::figure::palette::colour;

/// The axis's length as a multiple of the longest bar: the text after a bar needs room.
const TEXT: f64 = 1.3;

/// Draws a group of bars for each job and one for the mean; `None` if no job ended.
pub(super) fn draw(findings: &Findings) -> Result<Option<String>> {
    let group = |at: Option<usize>, name: &str| {
        let bars = findings.arms.iter().enumerate().map(|(place, arm)| bar(arm, place, at));
        Group { name: name.to_owned(), bars: bars.collect() }
    };
    let jobs = findings.about.jobs.iter().enumerate();
    let mut groups: Vec<Group> = jobs.map(|(at, facts)| group(Some(at), &facts.job.name)).collect();
    groups.push(group(None, "mean"));
    let longest = groups.iter().flat_map(|group| &group.bars).map(Bar::reach).fold(0.0, f64::max);
    if longest <= 0.0 {
        return Ok(None);
    }
    let x = Axis::even("seconds from arrival to end", 0.0, TEXT * longest);
    let arms: Vec<&str> = findings.arms.iter().map(|arm| arm.facts.name.as_str()).collect();
    let alt = format!("Each job's completion time under {}", arms.join(", "));
    bars::draw(&x, &groups, None, &alt).map(Some)
}

/// The arm's bar of the job at `at`, or of the mean.
fn bar(arm: &ArmFindings, place: usize, at: Option<usize>) -> Bar {
    let figure = match at {
        Some(at) => arm.jobs.get(at).and_then(|job| job.figure("completion")),
        None => arm.figure("completion_mean"),
    };
    let text =
        figure.map(|it| format!("{} s{}", value(it.measured.mean, it.measured.half), marks(it)));
    Bar {
        half: figure.and_then(|it| it.measured.half),
        ring: figure.and_then(|it| it.predicted),
        ..Bar::new(
            figure.map(|it| it.measured.mean),
            colour(place),
            text.unwrap_or_else(|| "-".to_owned()),
        )
    }
}
