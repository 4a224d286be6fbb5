//! Who had the CPU: what each job used over time, one arm below the other.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::outcome::{Findings, ORACLE};
use super::super::record::Recorded;
use super::pictures::Shown;
use crate::figure::palette::{INK, colour};
use crate::figure::plane::Plane;
use crate::figure::stack::{Span, draw_bands};
use crate::figure::{Axis, TEXT, inline};

/// Twice the width at which the picture is shown.
const WIDTH: u32 = 1600;
/// The height of one arm, also doubled.
const ROW: u32 = 400;
/// Room for the names of the jobs above, and for that of an arm above its axes.
const LINE: u32 = 60;
/// The room for the vertical axis.
const LEFT: u32 = 136;
/// The mean width of a letter.
const LETTER: usize = 19;
/// The most arms that are shown: a reader compares two or three.
const MAX_ARMS: usize = 3;

/// Draws the use of each job in each arm but the oracle, over `end` seconds. `None` without samples.
pub(super) fn draw(findings: &Findings, shown: &[Shown<'_>], end: f64) -> Result<Option<String>> {
    let jobs: Vec<&str> = findings.about.jobs.iter().map(|facts| facts.job.name.as_str()).collect();
    let arms: Vec<(&str, Vec<Span>)> = shown
        .iter()
        .filter(|shown| shown.arm.facts.policy != ORACLE)
        .map(|shown| (shown.arm.facts.name.as_str(), spans(&jobs, shown.observed.recorded)))
        .filter(|(_, spans)| !spans.is_empty())
        .take(MAX_ARMS)
        .collect();
    if arms.is_empty() {
        return Ok(None);
    }
    let mut svg = String::new();
    let size = (WIDTH, LINE + ROW * u32::try_from(arms.len())?);
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let (head, body) = root.split_vertically(LINE);
    let font = ("sans-serif", TEXT).into_font();
    let left = font.color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    let mut at = i32::try_from(LEFT)?;
    for (place, job) in jobs.iter().enumerate() {
        head.draw(&Rectangle::new([(at, 18), (at + 28, 46)], colour(place).filled()))?;
        head.draw(&Text::new((*job).to_owned(), (at + 40, 32), left.clone()))?;
        at += 90 + i32::try_from(LETTER * job.chars().count())?;
    }
    let time = Axis::time("seconds after the run began", end);
    let use_axis = Axis::percent("CPU use (%)", 8.0);
    let colours: Vec<RGBColor> = (0..jobs.len()).map(colour).collect();
    for ((arm, spans), row) in arms.iter().zip(body.split_evenly((arms.len(), 1))) {
        let (title, axes) = row.split_vertically(LINE);
        title.draw(&Text::new((*arm).to_owned(), (i32::try_from(LEFT)?, 36), left.clone()))?;
        Plane { size, left: LEFT, x: &time, y: &use_axis, named: false }
            .draw_on(&axes, |canvas| draw_bands(canvas, &colours, spans))?;
    }
    root.present()?;
    drop((head, body, root));
    let names: Vec<&str> = arms.iter().map(|(arm, _)| *arm).collect();
    Ok(Some(inline(&svg, &format!("Who had the CPU, under {}", names.join(", then ")))))
}

/// What each job used from one sample to the next, in percent of the machine.
fn spans(jobs: &[&str], recorded: &Recorded) -> Vec<Span> {
    let time = |unix: f64| (unix - recorded.run.began).max(0.0);
    let pairs = recorded.samples.iter().zip(recorded.samples.iter().skip(1));
    let amounts = pairs.map(|(before, sample)| {
        let used = |job: &&str| {
            let its = sample.jobs.iter().find(|its| its.id == **job);
            100.0 * its.and_then(|its| its.cpu).unwrap_or(0.0)
        };
        Span {
            from: time(before.unix),
            to: time(sample.unix),
            amounts: jobs.iter().map(used).collect(),
        }
    });
    amounts.filter(|span| span.to > span.from).collect()
}
