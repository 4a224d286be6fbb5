//! The structure of a schedule file, before its values are checked.

use std::collections::BTreeMap;

use paceline_api::toml_error;
use serde::Deserialize;
use toml::Spanned;

use super::Problem;

/// A bench: which jobs arrive when, and under which policies they run.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "Schedule", extend("required" = ["name", "job"])))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScheduleFile {
    /// The name, which is also that of the folder of results.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "String", regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"))
    )]
    pub(super) name: Spanned<String>,
    /// For the report's reader.
    #[serde(default)]
    pub(super) description: String,
    /// The policies. Each becomes an arm with its defaults, its `[params.POLICY]` and hard caps.
    #[serde(default)]
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "paceline_policy::schema::policies_or_oracle")
    )]
    pub(super) policies: Vec<Spanned<String>>,
    /// Parameters of policies, by policy and name.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, BTreeMap<String, f64>>"))]
    pub(super) params: BTreeMap<String, Spanned<BTreeMap<String, f64>>>,
    /// How often each arm runs. The default is 1.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>", range(min = 1, max = 1000)))]
    pub(super) repeats: Option<Spanned<u32>>,
    /// Whether a run that does not count comes before all others. The default is true if there are
    /// repeats.
    pub(super) warm_up: Option<bool>,
    /// The seed of random arrivals. Each repeat draws its own.
    #[serde(default = "one")]
    pub(super) seed: u64,
    /// The paper's times divided by those of the schedule, for the report. The default is 1.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0)))]
    pub(super) scale: Option<Spanned<f64>>,
    /// Seconds after which running jobs are stopped, without a completion time. By default all jobs end
    /// by themselves.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0, "maximum" = 86_400)))]
    pub(super) until: Option<Spanned<f64>>,
    /// Settings of the full form, by `--full`.
    pub(super) full: Option<FullFile>,
    /// When the jobs arrive, unless each has its own `arrive`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ArrivalsFile>"))]
    pub(super) arrivals: Option<Spanned<ArrivalsFile>>,
    /// Policies with settings of their own.
    #[serde(default, rename = "arm")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ArmFile>"))]
    pub(super) arms: Vec<Spanned<ArmFile>>,
    /// Parts of the machine, for policies that move jobs: at least two, or none.
    #[serde(default, rename = "node")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<NodeFile>"))]
    pub(super) nodes: Vec<Spanned<NodeFile>>,
    /// The jobs: at least one.
    #[serde(default, rename = "job")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<JobFile>", length(min = 1)))]
    pub(super) jobs: Vec<Spanned<JobFile>>,
}

/// The `[full]` form of a schedule.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct FullFile {
    /// How often each arm runs.
    #[cfg_attr(feature = "schema", schemars(with = "u32", range(min = 1, max = 1000)))]
    pub(super) repeats: Spanned<u32>,
}

/// The `[arrivals]` of a schedule.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ArrivalsFile {
    /// All at once; one after the other, `gap` apart; at random times `within`; or with random gaps of mean
    /// `mean-gap`.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("enum" = ["burst", "every", "uniform", "poisson"])))]
    pub(super) kind: Spanned<String>,
    /// The time between two arrivals of `every`, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", range(min = 0, max = 86_400)))]
    pub(super) gap: Option<Spanned<f64>>,
    /// The time within which all arrive by `uniform`, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", range(min = 0, max = 86_400)))]
    pub(super) within: Option<Spanned<f64>>,
    /// The mean time between two arrivals of `poisson`, in seconds.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", range(min = 0, max = 86_400)))]
    pub(super) mean_gap: Option<Spanned<f64>>,
}

/// An `[[arm]]` of a schedule: a policy with its settings.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ArmFile {
    /// The name. By default it is made from the settings, such as `flowcon-published-shares`.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<String>", regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"))
    )]
    pub(super) name: Option<Spanned<String>>,
    /// The policy; `oracle` knows each job's work.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "paceline_policy::schema::policy_or_oracle")
    )]
    pub(super) policy: Spanned<String>,
    /// The variant. The default is `resolved`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<paceline_policy::Variant>"))]
    pub(super) variant: Option<Spanned<String>>,
    /// What a share means to the kernel. The default is `quota`.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<paceline_policy::limiter::Enforcement>")
    )]
    pub(super) enforcement: Option<Spanned<String>>,
    /// How jobs move between nodes.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<paceline_node::migration::MigrationMethod>")
    )]
    pub(super) migration: Option<Spanned<String>>,
    /// Parameters of the policy. They take precedence over `[params.POLICY]`.
    #[serde(default)]
    pub(super) params: BTreeMap<String, f64>,
    /// Whether only the full form has it.
    #[serde(default)]
    pub(super) full: bool,
}

/// A `[[node]]` of a schedule: a part of the machine.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NodeFile {
    /// Its name: letters, digits, `-`, `_` and `.`.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "String", regex(pattern = "^[A-Za-z0-9._-]+$"))
    )]
    pub(super) name: Spanned<String>,
    /// Its CPUs.
    #[cfg_attr(feature = "schema", schemars(with = "paceline_api::nodes::Cpuset"))]
    pub(super) cpus: Spanned<String>,
}

/// A `[[job]]` of a schedule: a container.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    /// The job's name.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "String", regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"))
    )]
    pub(super) name: Spanned<String>,
    /// The image that it is run from.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1)))]
    pub(super) image: Spanned<String>,
    /// The command; `{steps}` becomes the number of steps of `work` on this machine.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub(super) command: Vec<Spanned<String>>,
    /// Seconds after the run began; required without `[arrivals]`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", range(min = 0, max = 86_400)))]
    pub(super) arrive: Option<Spanned<f64>>,
    /// Seconds that the job takes alone on the machine or its node; needs `{steps}` in the command.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0, "maximum" = 86_400)))]
    pub(super) work: Option<Spanned<f64>>,
    /// The node that it begins on.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) node: Option<Spanned<String>>,
    /// The path in its container of a folder for checkpoints.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) checkpoint: Option<Spanned<String>>,
    /// Its environment.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub(super) env: BTreeMap<String, Spanned<String>>,
    /// Its labels, apart from those that the bench sets.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub(super) labels: BTreeMap<String, Spanned<String>>,
}

/// Parses `text`.
pub(super) fn parse(text: &str) -> Result<ScheduleFile, Problem> {
    toml::from_str(text).map_err(|error| {
        let (line, problem) = toml_error::explain(text, &error);
        let source = text.lines().nth(line - 1).unwrap_or_default().trim();
        // An empty file has no line to show.
        let problem = if source.is_empty() { problem } else { format!("{problem}: {source}") };
        Problem::Form { line, problem }
    })
}

const fn one() -> u64 {
    1
}
