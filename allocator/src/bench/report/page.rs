//! The page that the figures and charts are put into.

use anyhow::Result;

use super::super::grid::{grids, remarks};
use super::super::outcome::{ArmOutcome, Findings};
use super::super::record::Recorded;
use super::gantt;
use super::tables::{grid, params, schedule};
use super::traces::{Traces, loss_axis, traces};
use crate::figure::Axis;
use crate::figure::chart::{self, Line, Points, side_by_side};
use crate::figure::html::{each, escape, figure, head, legend};
use crate::figure::palette::{GREY, colour};

/// How the figures came about, for a reader who was not there.
const METHOD: &str = include_str!("method.html");

/// The report on `findings`, whose arms were observed as `records`.
pub(crate) fn page(findings: &Findings, records: &[Recorded]) -> Result<String> {
    let (traces, end) = traces(findings, &shown(findings, records));
    let loss = loss_axis(&traces);
    let mut html = opening(findings);
    for table in grids(findings) {
        html.push_str(&grid(&table));
    }
    html.push_str(&each(remarks(findings), |remark| format!("<p>{}</p>\n", escape(&remark))));
    html.push_str("<h2>When each job ran</h2>\n<p class=\"note\">From arrival to end, with the ");
    html.push_str("completion time; the first policy's bars are pale.</p>\n");
    html.push_str(&figure(&gantt::draw(findings, end)?));
    html.push_str("<h2>Each policy over time</h2>\n");
    html.push_str(&colours(findings));
    html.push_str("<div class=\"policies\">\n");
    for (arm, its) in findings.arms.iter().zip(&traces) {
        html.push_str(&policy(arm, its, &loss, end)?);
    }
    html.push_str("</div>\n");
    html.push_str(&schedule(&findings.jobs));
    html.push_str(METHOD);
    html.push_str("</body></html>\n");
    Ok(html)
}

fn opening(findings: &Findings) -> String {
    format!(
        "{}<p>{}</p>\n<p class=\"note\">{}. {}. Run {}.</p>\n",
        head(&format!("Paceline bench: {}", findings.name)),
        escape(&findings.description),
        escape(&findings.date),
        escape(&findings.machine.words()),
        escape(&findings.run),
    )
}

/// Which colour is which job's, for all charts.
fn colours(findings: &Findings) -> String {
    let jobs = findings.jobs.iter().map(|facts| facts.job.name.as_str()).enumerate();
    let jobs = jobs.map(|(place, name)| (colour(place), name));
    legend(jobs.chain([(GREY, "the whole machine (use)")]))
}

/// The three charts of one policy, one above the other.
fn policy(arm: &ArmOutcome, traces: &Traces, loss: &Axis, end: f64) -> Result<String> {
    let names: Vec<&str> = arm.jobs.iter().map(|job| job.job.as_str()).collect();
    let alt = |what: &str| format!("{what} under {} of {}", arm.policy, names.join(", "));
    let limit = side_by_side(&traces.limit);
    let time = Axis::time("seconds after the run began", end);
    let limit_axis = Axis::percent("CPU limit (% of the machine)", 8.0);
    let cpu_axis = Axis::percent("CPU use (% of the machine)", 8.0);
    let mut cpu = vec![Line { points: &traces.machine, colour: GREY, width: 1 }];
    cpu.extend(lines(&traces.cpu));
    let draw = |y: &_, lines: &[_], alt: &str| chart::draw(chart::WIDE, &time, y, lines, alt);
    let charts = [
        draw(loss, &lines(&traces.loss), &alt("Loss"))?,
        draw(&limit_axis, &lines(&limit), &alt("CPU limits"))?,
        draw(&cpu_axis, &cpu, &alt("CPU use"))?,
    ];
    let charts = each(&charts, |svg| figure(svg));
    let (name, params) = (escape(&arm.policy), escape(&params(&arm.params)));
    Ok(format!("<section><h3>{name} <small>{params}</small></h3>\n{charts}</section>\n"))
}

fn lines(of_jobs: &[Points]) -> Vec<Line<'_>> {
    of_jobs
        .iter()
        .enumerate()
        .map(|(place, points)| Line { points, colour: colour(place), width: 2 })
        .collect()
}

/// The run of each arm that the charts show: its first.
fn shown(findings: &Findings, records: &[Recorded]) -> Vec<Recorded> {
    let of = |arm: &ArmOutcome| {
        records.iter().find(|of| of.run.arm == arm.policy && of.run.repeat > 0).cloned()
    };
    findings.arms.iter().filter_map(of).collect()
}
