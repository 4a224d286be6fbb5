//! The structure of a schedule file, before its values are checked.

use std::collections::BTreeMap;

use paceline_api::toml_error;
use serde::Deserialize;
use toml::Spanned;

use super::Problem;

/// A schedule file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScheduleFile {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) policies: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) params: BTreeMap<String, Spanned<BTreeMap<String, f64>>>,
    pub(super) repeats: Option<Spanned<u32>>,
    pub(super) warm_up: Option<bool>,
    #[serde(default = "one")]
    pub(super) seed: u64,
    pub(super) scale: Option<Spanned<f64>>,
    pub(super) until: Option<Spanned<f64>>,
    pub(super) full: Option<FullFile>,
    pub(super) arrivals: Option<Spanned<ArrivalsFile>>,
    #[serde(default, rename = "arm")]
    pub(super) arms: Vec<Spanned<ArmFile>>,
    #[serde(default, rename = "node")]
    pub(super) nodes: Vec<Spanned<NodeFile>>,
    #[serde(default, rename = "job")]
    pub(super) jobs: Vec<Spanned<JobFile>>,
}

/// The `[full]` form of a schedule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FullFile {
    pub(super) repeats: Spanned<u32>,
}

/// The `[arrivals]` of a schedule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ArrivalsFile {
    pub(super) kind: Spanned<String>,
    pub(super) gap: Option<Spanned<f64>>,
    pub(super) within: Option<Spanned<f64>>,
    pub(super) mean_gap: Option<Spanned<f64>>,
}

/// An `[[arm]]` of a schedule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArmFile {
    pub(super) name: Option<Spanned<String>>,
    pub(super) policy: Spanned<String>,
    pub(super) variant: Option<Spanned<String>>,
    pub(super) enforcement: Option<Spanned<String>>,
    pub(super) migration: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) params: BTreeMap<String, f64>,
    /// Whether only the full form has it.
    #[serde(default)]
    pub(super) full: bool,
}

/// A `[[node]]` of a schedule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeFile {
    pub(super) name: Spanned<String>,
    pub(super) cpus: Spanned<String>,
}

/// A `[[job]]` of a schedule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    pub(super) name: Spanned<String>,
    pub(super) image: Spanned<String>,
    #[serde(default)]
    pub(super) command: Vec<Spanned<String>>,
    pub(super) arrive: Option<Spanned<f64>>,
    pub(super) work: Option<Spanned<f64>>,
    pub(super) node: Option<Spanned<String>>,
    pub(super) checkpoint: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Spanned<String>>,
}

/// Parses `text`.
pub(super) fn parse(text: &str) -> Result<ScheduleFile, Problem> {
    toml::from_str(text).map_err(|error| {
        let (line, problem) = toml_error::explain(text, &error);
        let source = text.lines().nth(line - 1).unwrap_or_default().trim();
        Problem::Form { line, problem: format!("{problem}: {source}") }
    })
}

const fn one() -> u64 {
    1
}
