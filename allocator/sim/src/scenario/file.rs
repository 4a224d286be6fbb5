//! The TOML form of a scenario, as serde reads it.

use std::collections::BTreeMap;

use paceline_policy::limiter::LimiterOptions;
use serde::Deserialize;

use super::{EarlyReports, Failures, Start, Stated};
use crate::curve::Curve;

/// A scenario: which jobs arrive when, on which nodes, how they learn, and which policies are compared.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "Scenario"))]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    /// The name of the scenario.
    pub(super) name: String,
    /// What it is about, for people.
    pub(super) description: String,
    /// The policies that are compared: `NAME`, or `NAME:published`.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "paceline_policy::schema::variants_of_policies")
    )]
    pub(super) policies: Vec<String>,
    /// The number of runs with different random values. The default is 1.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000)))]
    pub(super) seeds: u32,
    /// The end, in seconds; required if jobs never end, or fail at random.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) until: Option<f64>,
    /// Where a job without a node goes, under a policy that does not choose one.
    #[serde(default)]
    pub(super) placement: Placement,
    /// The settings below every policy, as in the configuration of a run.
    #[serde(default)]
    pub(super) limiter: LimiterOptions,
    /// Parameters of policies, by policy and name.
    #[serde(default)]
    pub(super) params: BTreeMap<String, BTreeMap<String, f64>>,
    /// The machines.
    #[serde(rename = "node")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub(super) nodes: Vec<NodeFile>,
    /// The jobs; a scenario has either these or gangs.
    #[serde(default, rename = "job")]
    pub(super) jobs: Vec<JobFile>,
    /// Distributed jobs.
    #[serde(default, rename = "gang")]
    pub(super) gangs: Vec<GangFile>,
    /// Placements of the gangs' parameter servers, to compare policies with.
    #[serde(default, rename = "layout")]
    pub(super) layouts: Vec<LayoutFile>,
}

/// Where a job without a node goes, under a policy that does not choose one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// To the node with the fewest jobs; among equals, the first.
    #[default]
    Fewest,
    /// To one node after the other, in turn.
    RoundRobin,
}

/// A machine, or several equal ones.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NodeFile {
    /// The name; several machines are called `NAME-1`, `NAME-2` and so on.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub(super) name: String,
    /// How many machines these are. The default is 1.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
    pub(super) count: u32,
    /// How many CPUs each has.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub(super) cpus: f64,
    /// The memory of each, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub(super) memory: Option<f64>,
    /// By how much a neighbour of equal share slows jobs down: a part of their time.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) contention: f64,
    /// The share of the machine that no job gets.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = 0, "exclusiveMaximum" = 1)))]
    pub(super) background: f64,
    /// When it fails.
    pub(super) failures: Option<Failures>,
}

/// A job, or several that differ only in what is drawn at random.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct JobFile {
    /// The name; several jobs are called `NAME-1`, `NAME-2` and so on, in the order of their arrival.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub(super) name: String,
    /// How many jobs these are. The default is 1.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 20_000)))]
    pub(super) count: u32,
    /// When they arrive. The default is at 0.
    #[serde(default)]
    pub(super) arrive: ArriveFile,
    /// The start of its first process, before it is observed.
    pub(super) start: Option<Start>,
    /// The node that it is bound to.
    pub(super) node: Option<String>,
    /// Its work, in seconds of a whole node's CPU; without it, it never ends.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) work: Option<f64>,
    /// Random work, in the place of `work`.
    pub(super) heavy_tail: Option<HeavyTail>,
    /// The work that its owner declares, in seconds of a whole node's CPU. The default is `work`.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) declared: Option<f64>,
    /// The number of steps that it states.
    #[serde(default)]
    pub(super) stated_total: Stated,
    /// The largest share of a node that it can use. The default is 1.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1)))]
    pub(super) parallel: Option<f64>,
    /// The number of its threads.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub(super) threads: Option<f64>,
    /// The part of its CPU weight that counts while more than two threads compete for each CPU. The
    /// default is 1.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1)))]
    pub(super) crowded: Option<f64>,
    /// By how much a neighbour of equal share slows it down: a part of its time. The default is its
    /// node's.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) contention: Option<f64>,
    /// The part of its speed that it loses as its limit approaches 0.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = 0, "exclusiveMaximum" = 1)))]
    pub(super) throttle_cost: f64,
    /// Its batches. The default is a thousandth of its work each.
    pub(super) batch: Option<BatchFile>,
    /// The loss as a function of the part of the work that is done; without it, it reports none.
    pub(super) loss: Option<Curve>,
    /// The mean deviations of its reports from `loss` in equal parts of its work, the same in each run.
    #[serde(default)]
    pub(super) residuals: Vec<f64>,
    /// The deviation of one report, relative to the whole fall of the loss.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) noise: f64,
    /// What it reported before its first frame.
    #[serde(rename = "told")]
    pub(super) early_reports: Option<EarlyReports>,
    /// The loss from which on its model is usable.
    pub(super) acceptable: Option<f64>,
    /// The loss at which it is done.
    pub(super) objective: Option<f64>,
    /// The part of its work after which it reports that it has reached `acceptable`; `inf` for never.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) acceptable_at: Option<f64>,
    /// The part of its work after which it reports that it has reached `objective`; `inf` for never.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) objective_at: Option<f64>,
    /// The target of a batch's duration, in seconds.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) batch_latency: Option<f64>,
    /// The target of each of several jobs, in seconds.
    pub(super) batch_latency_each: Option<Vec<f64>>,
    /// The bounds of a random target, in seconds.
    pub(super) batch_latency_between: Option<(f64, f64)>,
    /// Whether a policy may end it at its objective. The default is true.
    #[serde(default = "yes")]
    pub(super) may_terminate: bool,
    /// The least share of a node that its owner allows.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1)))]
    pub(super) min: Option<f64>,
    /// The largest share of a node that its owner allows. The default is 1.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1)))]
    pub(super) max: Option<f64>,
    /// Its weight in the limiter. The default is 1.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub(super) weight: Option<f64>,
    /// Its CPU weight in the kernel, as Docker counts it. The default is 1024.
    #[cfg_attr(feature = "schema", schemars(range(min = 2, max = 262_144)))]
    pub(super) cpu_shares: Option<u64>,
    /// By how much it may be slowed down compared with an equal share.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub(super) max_slowdown: Option<f64>,
    /// Its checkpoints. By default resuming costs nothing.
    pub(super) checkpoint: Option<Checkpoint>,
    /// When it crashes; `at` counts from its arrival.
    pub(super) failures: Option<Failures>,
}

/// When the jobs of a group arrive: one of these ways.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ArriveFile {
    /// All at this time, in seconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1e9)))]
    pub(super) at: Option<f64>,
    /// The time of each, in seconds.
    pub(super) each: Option<Vec<f64>>,
    /// One after the other, this many seconds apart.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1e9)))]
    pub(super) every: Option<f64>,
    /// At random times between two, in seconds.
    pub(super) uniform: Option<(f64, f64)>,
    /// One after the other, with random gaps of this mean, in seconds.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) poisson: Option<f64>,
    /// The arrival of the first of `every`, and the start of `poisson`, in seconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1e9)))]
    pub(super) from: Option<f64>,
}

/// Random work: most jobs are short, and few are very long.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct HeavyTail {
    /// The least work, in seconds of a whole node's CPU.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub(super) least: f64,
    /// How fast the tail falls: the exponent of the bounded Pareto distribution.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub(super) shape: f64,
    /// The most work, in seconds of a whole node's CPU.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) most: f64,
}

/// The batches of a job.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct BatchFile {
    /// The work of a batch, in seconds of a whole node's CPU.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) work: f64,
    /// Seconds that a batch takes in addition, whatever its share.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1e9)))]
    pub(super) fixed: f64,
    /// The deviation of a batch's duration, relative to it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) noise: f64,
}

/// A job's checkpoints. Resuming from one costs time, after a move (which saves one itself) and
/// after a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// For how many seconds the job then stops, on average.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1e9)))]
    pub mean: f64,
    /// With this deviation.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub deviation: f64,
    /// Whether its next process then repeats the job's `start`.
    #[serde(default)]
    pub start: bool,
    /// How much work lies between two checkpoints, as seconds of a whole node. If `None`, it saves
    /// none. After a failure it then resumes from its last move, or from the beginning.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub every: Option<f64>,
}

/// A distributed job: parameter servers and workers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct GangFile {
    /// The name; several are called `NAME-1`, `NAME-2` and so on.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub(super) name: String,
    /// How many distributed jobs these are. The default is 1.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 20_000)))]
    pub(super) count: u32,
    /// When they arrive: `at`, `each` or `every`. The default is at 0.
    #[serde(default)]
    pub(super) arrive: ArriveFile,
    /// Core-seconds of its workers.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1e9)))]
    pub(super) work: f64,
    /// Its parameter servers.
    pub(super) servers: TasksFile,
    /// Its workers.
    pub(super) workers: TasksFile,
    /// By how much each additional worker slows all workers down: a part of their time.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) overhead: f64,
    /// The number of its model's parameters, for the bytes that it sends.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) parameters: f64,
    /// The number of its training steps, for the bytes that it sends.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) steps: f64,
}

/// The tasks of one kind of a distributed job.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct TasksFile {
    /// The number of tasks, where it is fixed.
    #[cfg_attr(feature = "schema", schemars(range(max = 10_000)))]
    pub(super) count: Option<u32>,
    /// The least number of tasks.
    #[cfg_attr(feature = "schema", schemars(range(max = 10_000)))]
    pub(super) min: Option<u32>,
    /// The largest number of tasks. The default is `min`.
    #[cfg_attr(feature = "schema", schemars(range(max = 10_000)))]
    pub(super) max: Option<u32>,
    /// The cores that each needs.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) cpu: f64,
    /// The memory that each needs, in bytes.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(super) memory: f64,
    /// The nodes of tasks that are already bound, in order.
    #[serde(default)]
    pub(super) nodes: Vec<String>,
}

/// A placement for comparison: the nodes of each gang's parameter servers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutFile {
    /// The name of the placement.
    pub(super) name: String,
    /// The nodes of each gang's parameter servers, in order.
    pub(super) servers: Vec<String>,
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}
