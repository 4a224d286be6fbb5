//! The pictures of a bench.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};

use super::super::outcome::{ArmFindings, Findings, Observed};
use super::traces::{Traces, loss_axis, traces};
use super::{bars, cpu_shares, gantt, sets};
use crate::figure::Axis;
use crate::figure::chart::{self, Line, Points, side_by_side};
use crate::figure::palette::{GREY, colour};

/// How a picture's file begins. It has a white background, since it may be shown on a dark page.
const HEAD: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" style=\"background:#fff\" ";

/// One picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    /// Its file's name, without the extension.
    pub(crate) name: String,
    /// The arm that it shows; `None` if it shows all.
    pub(crate) arm: Option<String>,
    /// Its title.
    pub(crate) title: String,
    /// The SVG, as part of a page.
    pub(crate) svg: String,
}

/// The run of an arm that the pictures show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    pub(super) arm: &'a ArmFindings,
    pub(super) observed: &'a Observed<'a>,
}

impl Picture {
    /// The SVG, as a separate file.
    pub(crate) fn file(&self) -> String {
        self.svg.replacen("<svg ", HEAD, 1)
    }
}

/// Removes the pictures of earlier reports in `folder`, so that none can be taken for a current one. Other
/// files are left alone.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    let remove = || -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let named = path.extension().is_some_and(|extension| extension == "svg");
            if named && begins_with(&path, HEAD.as_bytes())? {
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

/// Whether a file begins with these bytes.
fn begins_with(path: &Path, head: &[u8]) -> io::Result<bool> {
    let mut start = Vec::new();
    let most = u64::try_from(head.len()).map_err(io::Error::other)?;
    File::open(path)?.take(most).read_to_end(&mut start)?;
    Ok(start == head)
}

/// All pictures, first those that show all arms.
pub(crate) fn pictures(findings: &Findings, observed: &[Observed<'_>]) -> Result<Vec<Picture>> {
    let shown: Vec<Shown<'_>> =
        findings.arms.iter().filter_map(|arm| median_run(arm, observed)).collect();
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
    if let Some(svg) = cpu_shares::draw(findings, &shown, end)? {
        all.push(of_all("cpu", "Who had the CPU", svg));
    }
    for (shown, its) in shown.iter().zip(&traces) {
        all.extend(of_arm(findings, shown, its, &loss, end)?);
    }
    Ok(all)
}

/// The median run of an arm.
fn median_run<'a>(arm: &'a ArmFindings, observed: &'a [Observed<'a>]) -> Option<Shown<'a>> {
    let repeat = arm.median_run()?.repeat;
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
        all.push(picture("sets", "Jobs by their batch latency targets", svg));
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

/// An arm's name without characters that are special in file names or URLs.
pub(crate) fn file_name(arm: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    arm.chars().map(plain).collect()
}
