//! How long each job takes under each policy.

use anyhow::Result;
use paceline_policy::unit::count;
use paceline_sim::Outcome;
use paceline_sim::outcome::JobOutcome;

use super::{Section, Subject, alone};
use crate::command::compared::figure;
use crate::figure::Axis;
use crate::figure::bars::{self, Bar, Group};
use crate::figure::chart::{self, Line, Points};
use crate::figure::palette::colour;

/// More jobs are drawn as a distribution.
const MAX_JOBS: usize = 20;

pub(super) fn section(subject: &Subject<'_>) -> Result<Option<Section>> {
    let runs: Vec<&Outcome> =
        subject.comparison.results.iter().filter_map(|results| results.outcomes.first()).collect();
    let times = runs.iter().flat_map(|run| &run.jobs).filter_map(JobOutcome::completion);
    let longest = times.fold(0.0, f64::max);
    let jobs = runs.iter().map(|run| run.jobs.len()).max().unwrap_or(0);
    if longest <= 0.0 {
        return Ok(None);
    }
    let names = subject.names().join(", ");
    if jobs > MAX_JOBS {
        let svg = distribution(&runs, longest, &format!("Completion times under {names}"))?;
        return Ok(Some(Section {
            title: "Completion times",
            caption: "The share of jobs that took at most this long, from arrival to end. A line \
                      further left is better. Where lines cross, one policy is better for short jobs \
                      and the other for long ones. A line that ends below 100 % has jobs that did not \
                      finish.",
            body: alone(&svg),
        }));
    }
    let group = |place: usize| {
        let name = runs.iter().find_map(|run| run.jobs.get(place)).map(|job| job.id.clone());
        let bar = |(number, run): (usize, &&Outcome)| {
            let value = run.jobs.get(place).and_then(JobOutcome::completion);
            let text = value.map_or_else(|| "not done".to_owned(), |x| format!("{} s", figure(x)));
            Bar::new(value, colour(number), text)
        };
        Group { name: name.unwrap_or_default(), bars: runs.iter().enumerate().map(bar).collect() }
    };
    let groups: Vec<Group> = (0..jobs).map(group).collect();
    let x = Axis::even("seconds from arrival to end", 0.0, 1.22 * longest);
    let svg = bars::draw(&x, &groups, None, &format!("Each job's completion time under {names}"))?;
    Ok(Some(Section {
        title: "Completion times",
        caption: "The time from each job's arrival to its end, under each policy. Shorter is better. \
                  A gain of one job is often a loss of another.",
        body: alone(&svg),
    }))
}

/// A line for each policy: the share of jobs that were done within each time.
fn distribution(runs: &[&Outcome], longest: f64, alt: &str) -> Result<String> {
    let of = |run: &&Outcome| {
        let mut times: Vec<f64> = run.jobs.iter().filter_map(JobOutcome::completion).collect();
        times.sort_by(f64::total_cmp);
        let mut below = 0.0;
        let mut corners = Points::new();
        for (place, time) in times.into_iter().enumerate() {
            let part = 100.0 * count(place + 1) / count(run.jobs.len());
            corners.extend([(time, below), (time, part)]);
            below = part;
        }
        corners.push((longest, below));
        chart::fewer(corners)
    };
    let lines: Vec<Points> = runs.iter().map(of).collect();
    let line = |(place, points)| Line { points, colour: colour(place), width: 2 };
    let lines: Vec<Line<'_>> = lines.iter().map(Vec::as_slice).enumerate().map(line).collect();
    let x = Axis::even("seconds from arrival to end", 0.0, longest);
    chart::draw(chart::NARROW, &x, &Axis::percent("jobs done [%]", 4.0), &lines, alt)
}
