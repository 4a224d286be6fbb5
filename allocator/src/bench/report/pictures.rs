//! The pictures of a bench.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, Result};

use super::super::outcome::{ArmFindings, Findings, Observed};
use super::traces::{Traces, loss_axis, traces};
use super::{bars, gantt, sets};
use crate::figure::Axis;
use crate::figure::chart::{self, Line, Points, side_by_side};
use crate::figure::palette::{GREY, colour};

/// How a picture's file begins: on white, since whoever shows it may have a dark page.
const HEAD: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" style=\"background:#fff\" ";

/// One picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    /// Its file's name, without an ending.
    pub(crate) name: String,
    /// The arm that it is of; `None` of one that is of all.
    pub(crate) arm: Option<String>,
    /// What is to be seen.
    pub(crate) title: String,
    /// As a part of a page.
    pub(crate) svg: String,
}

/// The run of an arm that stands for the others in pictures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    pub(super) arm: &'a ArmFindings,
    pub(super) observed: &'a Observed<'a>,
}

impl Picture {
    /// As a file of its own.
    pub(crate) fn file(&self) -> String {
        self.svg.replacen("<svg ", HEAD, 1)
    }
}

/// Removes the pictures of earlier reports in `folder`: what is not drawn anew would be shown as if it
/// were. What else is there may be anybody's.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    let remove = || -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let named = path.extension().is_some_and(|extension| extension == "svg");
            if named && fs::read(&path)?.starts_with(HEAD.as_bytes()) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    };
    match remove() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot clear {}", folder.display())),
    }
}

/// All of them: those of all arms first.
pub(crate) fn pictures(findings: &Findings, observed: &[Observed<'_>]) -> Result<Vec<Picture>> {
    let shown: Vec<Shown<'_>> =
        findings.arms.iter().filter_map(|arm| middle(arm, observed)).collect();
    let (traces, end) = traces(findings, &shown);
    let loss = loss_axis(&traces);
    let of_all = |name: &str, title: &str, svg: String| Picture {
        name: name.to_owned(),
        arm: None,
        title: title.to_owned(),
        svg,
    };
    let mut all = Vec::new();
    if let Some(svg) = bars::draw(findings)? {
        all.push(of_all("completion", "Completion times", svg));
    }
    all.push(of_all("runs", "When each job ran", gantt::draw(findings, &shown, end)?));
    for (shown, its) in shown.iter().zip(&traces) {
        all.extend(of_arm(findings, shown, its, &loss, end)?);
    }
    Ok(all)
}

/// The run in the middle of an arm.
fn middle<'a>(arm: &'a ArmFindings, observed: &'a [Observed<'a>]) -> Option<Shown<'a>> {
    let repeat = arm.middle()?.repeat;
    let mut runs = observed.iter().filter(|observed| {
        let run = &observed.recorded.run;
        run.arm == arm.facts.name && run.repeat == repeat
    });
    Some(Shown { arm, observed: runs.next()? })
}

/// The pictures of one arm over time.
fn of_arm(
    findings: &Findings,
    shown: &Shown<'_>,
    traces: &Traces,
    loss: &Axis,
    end: f64,
) -> Result<Vec<Picture>> {
    let arm = shown.arm.facts.name.as_str();
    let jobs: Vec<&str> = findings.about.jobs.iter().map(|facts| facts.job.name.as_str()).collect();
    let picture = |name: &str, title: &str, svg: String| Picture {
        name: format!("{name}-{}", file_name(arm)),
        arm: Some(arm.to_owned()),
        title: title.to_owned(),
        svg,
    };
    let time = Axis::time("seconds after the run began", end);
    let limit_axis = Axis::percent("CPU limit (% of the machine)", 8.0);
    let cpu_axis = Axis::percent("CPU use (% of the machine)", 8.0);
    let mut cpu = vec![Line { points: &traces.machine, colour: GREY, width: 1 }];
    cpu.extend(lines(&traces.cpu));
    let draw = |y: &Axis, lines: &[Line<'_>], what: &str| {
        let alt = format!("{what} under {arm} of {}", jobs.join(", "));
        chart::draw(chart::WIDE, &time, y, lines, &alt)
    };
    let limits = side_by_side(&traces.limit);
    let mut all = Vec::new();
    if traces.loss.iter().any(|points| !points.is_empty()) {
        all.push(picture("loss", "Loss", draw(loss, &lines(&traces.loss), "Loss")?));
    }
    all.push(picture("limits", "CPU limits", draw(&limit_axis, &lines(&limits), "CPU limits")?));
    all.push(picture("use", "CPU use", draw(&cpu_axis, &cpu, "CPU use")?));
    if let Some(svg) = sets::draw(shown, &time)? {
        all.push(picture("sets", "Jobs by the targets of their batches", svg));
    }
    Ok(all)
}

fn lines(of_jobs: &[Points]) -> Vec<Line<'_>> {
    of_jobs
        .iter()
        .enumerate()
        .map(|(place, points)| Line { points, colour: colour(place), width: 2 })
        .collect()
}

/// An arm's name without what means something in the name of a file or in an address.
pub(crate) fn file_name(arm: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    arm.chars().map(plain).collect()
}
