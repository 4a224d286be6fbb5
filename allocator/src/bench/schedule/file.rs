//! The form of a schedule file, before anything is known about its values.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::Problem;
use crate::toml_error;

/// A schedule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleFile {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) policies: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) params: BTreeMap<String, Spanned<BTreeMap<String, f64>>>,
    #[serde(default, rename = "job")]
    pub(super) jobs: Vec<Spanned<JobFile>>,
}

/// A `[[job]]` of a schedule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    pub(super) name: Spanned<String>,
    pub(super) image: Spanned<String>,
    #[serde(default)]
    pub(super) command: Vec<Spanned<String>>,
    pub(super) arrive: Spanned<f64>,
    pub(super) work: Option<Spanned<f64>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Spanned<String>>,
}

/// Reads the form of `text`.
pub(super) fn parse(text: &str) -> Result<ScheduleFile, Problem> {
    toml::from_str(text).map_err(|error| {
        let (line, problem) = toml_error::explain(text, &error);
        let source = text.lines().nth(line - 1).unwrap_or_default().trim();
        Problem::Form { line, problem: format!("{problem}: {source}") }
    })
}
