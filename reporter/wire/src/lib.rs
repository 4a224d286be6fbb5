//! The progress of a training job: the bodies of `GET /v1/progress` and `GET /v1/history`.
//!
//! The reporter and the sidecar write it; the allocator and users' scripts read it. Times are Unix
//! seconds, durations are seconds. An unknown value is `null`, never 0. This crate has types and the
//! mean between two readings, so that both ends can share it at no cost.

mod history;
mod mean;

use serde::{Deserialize, Serialize};

pub use history::History;
pub use mean::{mean_between, mean_or_recent};

/// The version of the JSON that this crate describes: the value of [`Progress::schema`].
///
/// Fields are only ever added within one version; readers ignore the ones they do not know.
pub const SCHEMA: u32 = 1;

/// The default port of a job's endpoint.
pub const DEFAULT_PORT: u16 = 7223;

/// One reading of a job's progress.
///
/// The counts and sums only grow while [`Progress::instance`] stays the same, so
/// two readings give the exact mean over the time between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progress {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The job's name.
    pub job: String,
    /// The process id, as the job itself sees it.
    pub pid: u32,
    /// New with every start of the process: when it changes, the counters have restarted.
    pub instance: String,
    /// The measuring program: `reporter` or `sidecar`.
    pub source: String,
    /// The state of the job.
    pub state: State,
    /// Start of the reporting, in Unix seconds.
    pub started_at: f64,
    /// Time of this reading, in Unix seconds by the job's clock.
    pub now: f64,
    /// Optimizer steps so far.
    pub step: Option<u64>,
    /// Epoch, counted from 1.
    pub epoch: Option<u64>,
    /// The most steps that the job takes.
    pub total_steps: Option<u64>,
    /// The steps that the job expects to take, if it may stop before [`Progress::total_steps`]; never
    /// more than that.
    #[serde(default)]
    pub expected_steps: Option<u64>,
    /// The training data in use, as the job names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The loss.
    pub eval: Eval,
    /// Durations of batches.
    pub batch_latency: Latency,
    /// The targets of the job.
    pub targets: Targets,
    /// When the targets were reached.
    pub reached: Reached,
    /// The last checkpoint.
    pub checkpoint: Checkpoint,
    /// The loss on held-out data, apart from [`Progress::eval`].
    #[serde(default)]
    pub validation: Option<Validation>,
    /// Values derived from the reports so far.
    #[serde(default)]
    pub signals: Signals,
    /// The CPU that the process may use.
    #[serde(default)]
    pub cpu: Cpu,
    /// The rank of this process, if the job has several.
    #[serde(default)]
    pub rank: Option<Rank>,
    /// The sources of a sidecar; `null` from a reporter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Sidecar>,
    /// The points in TensorBoard's event files; left out if none are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensorboard: Option<Forward>,
    /// Reports lost because too many came at once.
    pub dropped: u64,
    /// Reports refused because the value was not finite.
    pub rejected: u64,
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No report has arrived yet.
    Starting,
    /// At least one report has arrived.
    Running,
    /// The job finished normally.
    Finished,
    /// The job ended by an error.
    Failed,
}

/// Whether a smaller or a larger value is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Smaller is better: a loss.
    #[default]
    Minimize,
    /// Larger is better: an accuracy or a reward.
    Maximize,
}

impl Direction {
    /// Whether `value` is as good as `target` or better. NaN reaches nothing.
    pub fn reached(self, value: f64, target: f64) -> bool {
        match self {
            Self::Minimize => value <= target,
            Self::Maximize => value >= target,
        }
    }

    /// Whether `a` is strictly better than `b`.
    pub fn better(self, a: f64, b: f64) -> bool {
        match self {
            Self::Minimize => a < b,
            Self::Maximize => a > b,
        }
    }
}

/// The loss since the process began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Eval {
    /// The name of the loss.
    pub name: String,
    /// Whether smaller or larger is better.
    pub direction: Direction,
    /// Mean of the last [`Eval::window`] reports.
    pub value: Option<f64>,
    /// The most reports in the mean [`Eval::value`].
    pub window: u32,
    /// Time of the last report, in Unix seconds.
    pub updated_at: Option<f64>,
    /// Number of finite reports.
    pub count: u64,
    /// Sum of the finite reports.
    pub sum: f64,
    /// The first of them.
    pub first: Option<f64>,
    /// The best of them.
    pub best: Option<f64>,
    /// The largest of them by absolute value.
    pub max_abs: Option<f64>,
}

/// Durations of batches, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Number of batches that have ended.
    pub count: u64,
    /// Total duration of these batches.
    pub sum: f64,
    /// The duration of the last one.
    pub last: Option<f64>,
    /// Median since the process began.
    pub p50: Option<f64>,
    /// 95th percentile since the process began.
    pub p95: Option<f64>,
    /// 99th percentile since the process began.
    pub p99: Option<f64>,
}

/// The targets of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Targets {
    /// The loss from which on the model is usable.
    pub acceptable: Option<f64>,
    /// The loss at which the job is done.
    pub objective: Option<f64>,
    /// The target for the duration of a batch, in seconds.
    pub batch_latency: Option<f64>,
}

/// When the targets were reached, in Unix seconds. Once set, it stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reached {
    /// When [`Targets::acceptable`] was.
    pub acceptable_at: Option<f64>,
    /// When [`Targets::objective`] was.
    pub objective_at: Option<f64>,
}

/// The checkpoints of a job.
///
/// A request has a number, counted from 1, which the answer to `POST /v1/checkpoint` returns. Once
/// [`Checkpoint::answered`] is that number or more, it has been saved or has failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// Number of requests.
    pub requested: u64,
    /// The number of the last answered request, whether saved or failed.
    #[serde(default)]
    pub answered: u64,
    /// Number of checkpoints written.
    pub saved: u64,
    /// The step of the last one.
    pub step: Option<u64>,
    /// The mean loss at that step.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Its path.
    pub path: Option<String>,
    /// When it was written, in Unix seconds.
    pub at: Option<f64>,
    /// Why the last attempt failed, if it did.
    pub error: Option<String>,
    /// The best one since the acceptable loss was reached. A worse one never replaces it.
    #[serde(default)]
    pub kept: Option<Kept>,
}

/// A checkpoint that is kept because the model is usable from there on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    /// Its path.
    pub path: String,
    /// The mean loss when it was saved.
    pub loss: f64,
    /// The step when it was saved.
    pub step: u64,
    /// The time when it was saved, in Unix seconds.
    pub at: f64,
}

/// The loss on held-out data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Validation {
    /// The last one.
    pub value: f64,
    /// The best one.
    pub best: f64,
    /// Number of finite ones.
    pub count: u64,
    /// Time of the last one, in Unix seconds.
    pub updated_at: f64,
}

/// Values derived from the reports, computed on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Signals {
    /// What the job is doing.
    pub activity: Activity,
    /// Seconds since the last report.
    pub quiet_seconds: Option<f64>,
    /// Whether the loss is finite and does not diverge.
    pub health: Health,
    /// The loss without its noise, never beyond the losses that were reported.
    pub loss_smoothed: Option<f64>,
    /// The change of the smoothed loss with one step.
    pub loss_slope: Option<f64>,
    /// Recent steps per second.
    pub steps_per_second: Option<f64>,
    /// The fraction of all steps that is done, from 0 to 1.
    pub progress_ratio: Option<f64>,
    /// Seconds until all steps are done.
    pub eta_seconds: Option<f64>,
    /// Forecast of when the mean loss reaches the acceptable loss. `null` without one, once it is
    /// reached, and while there are too few reports.
    pub to_acceptable: Option<Forecast>,
    /// The same for the objective.
    pub to_objective: Option<Forecast>,
}

/// How far a loss is from its target, with an interval that is right with 80 % probability.
///
/// The seconds are those at the present pace. A job that waits for CPU is slow, so its seconds say
/// little about its remaining work; use [`Forecast::steps`] for that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forecast {
    /// Median of the seconds from now; `null` if it is more likely never reached.
    pub seconds: Option<f64>,
    /// Seconds with 10 % probability of being sooner; `null` if it is most likely never reached.
    pub low: Option<f64>,
    /// Seconds with 10 % probability of being later; `null` if it may never be reached.
    pub high: Option<f64>,
    /// Remaining steps; `null` from older writers.
    #[serde(default)]
    pub steps: Option<ForecastSteps>,
}

/// Remaining steps until a loss reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForecastSteps {
    /// Steps with 10 % probability of being fewer; `null` if it is most likely never reached.
    pub low: Option<f64>,
    /// Median of the steps; `null` if it is more likely never reached.
    pub median: Option<f64>,
    /// Steps with 10 % probability of being more; `null` if it may never be reached.
    pub high: Option<f64>,
}

/// What a job is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// No report yet: the job loads data or compiles code.
    #[default]
    Starting,
    /// It makes steps.
    Training,
    /// It evaluates held-out data; no step is expected.
    Evaluating,
    /// It writes a checkpoint; no step is expected.
    Checkpointing,
    /// An expected step takes much longer than earlier ones did.
    Stalled,
    /// The job has ended.
    Ended,
}

/// Whether a loss is finite and does not diverge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It is finite and does not diverge.
    #[default]
    Fine,
    /// The last report was NaN or infinite.
    Nonfinite,
    /// It has been far worse than its best for a while.
    Diverging,
}

/// The CPU that a process may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cpu {
    /// Its quota in cores; `null` without one.
    pub quota: Option<f64>,
    /// The number of threads that can run at once under its quota and affinity: a hint for thread
    /// pools.
    pub threads: Option<u32>,
    /// Periods of the quota so far in which its control group ran.
    pub periods: Option<u64>,
    /// Those of them in which the quota was used up.
    pub throttled_periods: Option<u64>,
    /// How long threads waited for the next period so far, all together, in seconds.
    pub throttled_seconds: Option<f64>,
    /// The part of the periods that was throttled, from 0 to 1: since the reading before, at least a
    /// second ago.
    pub throttled_ratio: Option<f64>,
    /// The part of the last 10 s in which a thread waited for a CPU, from 0 to 1; `null` without
    /// cgroup v2.
    pub pressure: Option<f64>,
}

/// The rank of a process among several of one job, numbered by its launcher from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rank {
    /// Rank among all processes.
    pub global: u32,
    /// Rank among those of the machine.
    pub local: Option<u32>,
    /// Number of processes.
    pub world: Option<u32>,
}

/// The sources that a sidecar reads, and how well it reads them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sidecar {
    /// The name of the source of the training loss.
    pub loss_from: Option<String>,
    /// If the loss is a mean over more than a step: over what.
    pub loss_span: Option<String>,
    /// The origin of batch latencies: `reported` by the framework, or `inferred` from the times
    /// between its lines.
    pub latency_from: Option<String>,
    /// Whether the job's output arrives in blocks, as Python writes it into a pipe. Times are then
    /// inaccurate; `PYTHONUNBUFFERED=1` avoids this.
    pub block_buffered: bool,
    /// Each source.
    pub sources: Vec<Source>,
    /// The batch latency of each rank, if several ranks print into one source.
    pub ranks: Vec<RankLatency>,
    /// Where the progress is forwarded to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<Forward>,
}

/// A target that the progress is forwarded to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Forward {
    /// Its name, such as `katib`.
    pub name: String,
    /// Readings, events or points that were sent.
    pub sent: u64,
    /// Those that could not be sent.
    pub failed: u64,
    /// Those that were lost because the target was too slow: newer ones replaced them, or too many waited.
    pub dropped: u64,
    /// Why the last one could not be sent; `null` once one was.
    pub error: Option<String>,
}

/// A source that a sidecar reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Source {
    /// Its name, such as `log:/logs/train.log`.
    pub name: String,
    /// Whether it can be read.
    pub up: bool,
    /// The recognised format, such as `keras bar`; `null` while there is none.
    pub grammar: Option<String>,
    /// The fraction of its lines with a loss that this format explains, from 0 to 1.
    pub confidence: Option<f64>,
    /// Bytes read.
    pub bytes: u64,
    /// Lines and frames, records, or rows read.
    pub lines: u64,
    /// Those of them with an observation.
    pub observations: u64,
    /// Those of them that could not be read, or were cut for their length.
    pub errors: u64,
    /// Pieces of a command's output that were not forwarded, or forwarded without being read. During a
    /// flood the oldest unread pieces are dropped, never the last ones.
    pub dropped: u64,
    /// Time of the last read, in Unix seconds.
    pub updated_at: Option<f64>,
    /// Why it cannot be read.
    pub error: Option<String>,
    /// What the user can do, if it is read but no loss is found in it; `null` from older writers.
    pub hint: Option<String>,
}

/// The batch latency of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RankLatency {
    /// The rank.
    pub rank: u32,
    /// Number of batches.
    pub count: u64,
    /// Their total duration, in seconds.
    pub sum: f64,
}
