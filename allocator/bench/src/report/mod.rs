//! The report: one HTML file that needs neither a network nor a script. Beside it lie its figures as JSON,
//! its pictures and the fitted scenario.

mod bars;
mod cpu_shares;
mod gantt;
mod page;
mod pictures;
mod sets;
mod tables;
mod traces;

use anyhow::Result;

use super::analysis::Analysis;
use super::outcome::Observed;
use page::page;
use pictures::{Picture, pictures};
pub(crate) use pictures::{clear, file_name};

/// The report's own file.
pub(crate) const PAGE: &str = "report.html";
/// The figures for programs.
pub(crate) const RESULT: &str = "result.json";
/// The folder with each picture as a separate file.
pub(crate) const PICTURES: &str = "pictures";

/// All files of the report: paths relative to its folder, and contents.
pub(crate) fn files(
    analysis: &Analysis,
    observed: &[Observed<'_>],
) -> Result<Vec<(String, String)>> {
    let findings = &analysis.findings;
    let pictures = pictures(findings, observed)?;
    let mut files = vec![
        (PAGE.to_owned(), page(findings, &pictures)),
        (RESULT.to_owned(), serde_json::to_string_pretty(findings)?),
    ];
    files.extend(analysis.scenario.clone().map(|text| ("fitted.toml".to_owned(), text)));
    let file = |picture: &Picture| (format!("{PICTURES}/{}.svg", picture.name), picture.file());
    files.extend(pictures.iter().map(file));
    Ok(files)
}

#[cfg(test)]
mod tests;
