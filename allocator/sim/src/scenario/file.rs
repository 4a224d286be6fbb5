//! The TOML form of a scenario, as serde reads it.

use std::collections::BTreeMap;

use paceline_policy::limiter::LimiterOptions;
use serde::Deserialize;

use super::{EarlyReports, Failures, Start, Stated};
use crate::curve::Curve;

/// A whole file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) policies: Vec<String>,
    #[serde(default = "one")]
    pub(super) seeds: u32,
    pub(super) until: Option<f64>,
    #[serde(default)]
    pub(super) placement: Placement,
    #[serde(default)]
    pub(super) limiter: LimiterOptions,
    #[serde(default)]
    pub(super) params: BTreeMap<String, BTreeMap<String, f64>>,
    #[serde(rename = "node")]
    pub(super) nodes: Vec<NodeFile>,
    #[serde(default, rename = "job")]
    pub(super) jobs: Vec<JobFile>,
    #[serde(default, rename = "gang")]
    pub(super) gangs: Vec<GangFile>,
    #[serde(default, rename = "layout")]
    pub(super) layouts: Vec<LayoutFile>,
}

/// Where a job without a node goes, under a policy that does not choose one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// To the node with the fewest jobs; among equals, the first.
    #[default]
    Fewest,
    /// To one node after the other, in turn.
    RoundRobin,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeFile {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) count: u32,
    pub(super) cpus: f64,
    pub(super) memory: Option<f64>,
    #[serde(default)]
    pub(super) contention: f64,
    #[serde(default)]
    pub(super) background: f64,
    pub(super) failures: Option<Failures>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) count: u32,
    #[serde(default)]
    pub(super) arrive: ArriveFile,
    pub(super) start: Option<Start>,
    pub(super) node: Option<String>,
    pub(super) work: Option<f64>,
    pub(super) heavy_tail: Option<HeavyTail>,
    pub(super) declared: Option<f64>,
    #[serde(default)]
    pub(super) stated_total: Stated,
    pub(super) parallel: Option<f64>,
    pub(super) threads: Option<f64>,
    pub(super) crowded: Option<f64>,
    pub(super) contention: Option<f64>,
    #[serde(default)]
    pub(super) throttle_cost: f64,
    pub(super) batch: Option<BatchFile>,
    pub(super) loss: Option<Curve>,
    #[serde(default)]
    pub(super) residuals: Vec<f64>,
    #[serde(default)]
    pub(super) noise: f64,
    #[serde(rename = "told")]
    pub(super) early_reports: Option<EarlyReports>,
    pub(super) acceptable: Option<f64>,
    pub(super) objective: Option<f64>,
    /// The parts of its work after which it reports that it has reached them; infinite for never.
    pub(super) acceptable_at: Option<f64>,
    pub(super) objective_at: Option<f64>,
    pub(super) batch_latency: Option<f64>,
    pub(super) batch_latency_each: Option<Vec<f64>>,
    pub(super) batch_latency_between: Option<(f64, f64)>,
    #[serde(default = "yes")]
    pub(super) may_terminate: bool,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) weight: Option<f64>,
    pub(super) cpu_shares: Option<u64>,
    pub(super) max_slowdown: Option<f64>,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) failures: Option<Failures>,
}

/// When the jobs of a group arrive: one of these ways.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArriveFile {
    pub(super) at: Option<f64>,
    pub(super) each: Option<Vec<f64>>,
    pub(super) every: Option<f64>,
    pub(super) uniform: Option<(f64, f64)>,
    pub(super) poisson: Option<f64>,
    /// The arrival of the first of `every`, and the start of `poisson`.
    pub(super) from: Option<f64>,
}

/// Random work: most jobs are short, and few are very long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeavyTail {
    pub(super) least: f64,
    pub(super) shape: f64,
    pub(super) most: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchFile {
    pub(super) work: f64,
    #[serde(default)]
    pub(super) fixed: f64,
    #[serde(default)]
    pub(super) noise: f64,
}

/// A job's checkpoints. Resuming from one costs time, after a move (which saves one itself) and
/// after a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// For how many seconds the job then stops, on average.
    #[serde(default)]
    pub mean: f64,
    /// With this deviation.
    #[serde(default)]
    pub deviation: f64,
    /// Whether its next process then repeats the job's `start`.
    #[serde(default)]
    pub start: bool,
    /// How much work lies between two checkpoints, as seconds of a whole node. If `None`, it saves
    /// none. After a failure it then resumes from its last move, or from the beginning.
    pub every: Option<f64>,
}

/// A distributed job: parameter servers and workers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GangFile {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) count: u32,
    #[serde(default)]
    pub(super) arrive: ArriveFile,
    /// Core-seconds of its workers.
    pub(super) work: f64,
    pub(super) servers: TasksFile,
    pub(super) workers: TasksFile,
    /// By how much each additional worker slows all workers down.
    #[serde(default)]
    pub(super) overhead: f64,
    /// The number of its model's parameters and of its training steps, for the bytes that it sends.
    #[serde(default)]
    pub(super) parameters: f64,
    #[serde(default)]
    pub(super) steps: f64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TasksFile {
    pub(super) count: Option<u32>,
    pub(super) min: Option<u32>,
    pub(super) max: Option<u32>,
    pub(super) cpu: f64,
    #[serde(default)]
    pub(super) memory: f64,
    /// The nodes of tasks that are already bound, in order.
    #[serde(default)]
    pub(super) nodes: Vec<String>,
}

/// A placement for comparison: the nodes of each gang's parameter servers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutFile {
    pub(super) name: String,
    pub(super) servers: Vec<String>,
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}
