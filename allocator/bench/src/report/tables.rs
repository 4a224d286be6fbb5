//! The report's tables.

use std::collections::BTreeMap;

use super::super::grid::{Cell, Grid, Tone};
use super::super::outcome::JobFacts;
use crate::figure::html::{each, escape};
use crate::figure::scale::mark_text;

/// The HTML table of `grid`.
pub(super) fn grid(grid: &Grid) -> String {
    let open = format!("<table><caption>{}</caption>\n", escape(&grid.title));
    let rows = grid.rows.iter().map(|row| each(row, cell));
    html(&open, &grid.head, rows) + &notes(&grid.notes)
}

/// A table that begins with `open`, with the HTML of the cells of each row.
fn html<T: AsRef<str>>(open: &str, head: &[T], rows: impl Iterator<Item = String>) -> String {
    let head = each(head, |text| format!("<th>{}</th>", escape(text.as_ref())));
    let rows = each(rows, |cells| format!("<tr>{cells}</tr>\n"));
    format!(
        "<div class=\"wide\">{open}<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
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
        each(cells, |text| format!("<td>{}</td>", escape(&text)))
    };
    let table = html("<table class=\"schedule\">", &head, jobs.iter().map(row));
    format!("<h2>Schedule</h2>\n{table}")
}

/// A policy's parameters on one line.
pub(super) fn params(params: &BTreeMap<String, f64>) -> String {
    let each: Vec<_> = params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    each.join(", ")
}
