//! The report's tables.

use std::collections::BTreeMap;

use super::super::grid::{Cell, Grid, Tone};
use super::super::outcome::JobFacts;
use crate::figure::html::{each, escape};
use crate::figure::scale::mark_text;

/// The HTML table of `grid`.
pub(super) fn grid(grid: &Grid) -> String {
    let head = each(&grid.head, |text| format!("<th>{}</th>", escape(text)));
    let row = |row: &Vec<Cell>| format!("<tr>{}</tr>\n", each(row, cell));
    format!(
        "<div class=\"wide\"><table><caption>{}</caption>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>{}</tbody></table></div>\n{}",
        escape(&grid.title),
        each(&grid.rows, row),
        notes(&grid.notes),
    )
}

/// Lines under a table or a picture.
pub(super) fn notes(lines: &[String]) -> String {
    each(lines, |line| format!("<p class=\"note\">{}</p>\n", escape(line)))
}

fn cell(cell: &Cell) -> String {
    let class = match cell.tone {
        Tone::Failed => "failed",
        Tone::Better => "sooner",
        Tone::Worse => "later",
        Tone::Disturbed => "disturbed",
        // A row that adds to the one above it.
        Tone::Plain if cell.text.starts_with("  ") || cell.text.ends_with(" x") => "part",
        Tone::Plain => "",
    };
    format!("<td class=\"{class}\">{}</td>", escape(cell.text.trim()))
}

/// The schedule, with the calibration's results.
pub(super) fn schedule(jobs: &[JobFacts]) -> String {
    let head = ["job", "image", "command", "arrives", "work", "solo rate", "steps"];
    let head = each(head, |text| format!("<th>{text}</th>"));
    let row = |facts: &JobFacts| {
        let or_dash = |known: Option<String>| known.unwrap_or_else(|| "-".to_owned());
        let job = &facts.job;
        let cells = [
            job.name.clone(),
            job.image.clone(),
            job.command.join(" "),
            format!("{} s", mark_text(job.arrive)),
            or_dash(job.work.map(|work| format!("{} s", mark_text(work)))),
            or_dash(facts.solo_rate.map(|rate| format!("{rate:.1} steps/s"))),
            or_dash(facts.steps.map(|steps| steps.to_string())),
        ];
        format!("<tr>{}</tr>\n", each(cells, |text| format!("<td>{}</td>", escape(&text))))
    };
    format!(
        "<h2>Schedule</h2>\n<div class=\"wide\"><table class=\"schedule\">\
         <thead><tr>{head}</tr></thead>\n<tbody>{}</tbody></table></div>\n",
        each(jobs, row)
    )
}

/// A policy's parameters on one line.
pub(super) fn params(params: &BTreeMap<String, f64>) -> String {
    let each: Vec<_> = params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    each.join(", ")
}
