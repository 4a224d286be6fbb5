//! The report: one HTML file that needs nothing else, neither a network nor a script, and beside it
//! its figures as JSON, its pictures, and the scenario that was fitted.

mod bars;
mod gantt;
mod page;
mod pictures;
mod sets;
mod tables;
mod traces;

use anyhow::Result;

use super::outcome::{Judged, Observed};
use page::page;
use pictures::{Picture, pictures};
pub(crate) use pictures::{clear, file_name};

/// The report's own file.
pub(crate) const PAGE: &str = "report.html";
/// The figures for programs.
pub(crate) const RESULT: &str = "result.json";
/// The folder of the pictures, each of which is a file of its own as well.
pub(crate) const PICTURES: &str = "pictures";

/// All files of the report: their names from its folder on, and what is in them.
pub(crate) fn files(judged: &Judged, observed: &[Observed<'_>]) -> Result<Vec<(String, String)>> {
    let findings = &judged.findings;
    let pictures = pictures(findings, observed)?;
    let mut files = vec![
        (PAGE.to_owned(), page(findings, &pictures)),
        (RESULT.to_owned(), serde_json::to_string_pretty(findings)?),
    ];
    files.extend(judged.scenario.clone().map(|text| ("fitted.toml".to_owned(), text)));
    let file = |picture: &Picture| (format!("{PICTURES}/{}.svg", picture.name), picture.file());
    files.extend(pictures.iter().map(file));
    Ok(files)
}

#[cfg(test)]
mod tests;
