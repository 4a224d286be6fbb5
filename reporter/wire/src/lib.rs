//! What a training job's endpoint says: the body of `GET /v1/progress`.
//!
//! The reporter and the sidecar write it, the allocator and users' scripts read it. Times are Unix
//! seconds, durations are seconds. A value that is not known is `null`, never 0. This crate holds
//! types and nothing else, so that both ends can share it at no cost.

use serde::{Deserialize, Serialize};

/// The version of the JSON that this crate describes: the value of [`Progress::schema`].
///
/// Fields are only ever added within one version; readers ignore the ones they do not know.
pub const SCHEMA: u32 = 1;

/// The port that a job's endpoint has unless it is told otherwise.
pub const DEFAULT_PORT: u16 = 7223;

/// One reading of a job's progress.
///
/// The counts and sums only grow while [`Progress::instance`] stays the same, so
/// two readings give the exact mean over the time between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The job's name.
    pub job: String,
    /// The process, as the job itself sees its id.
    pub pid: u32,
    /// New with every start of the process: when it changes, the counters began anew.
    pub instance: String,
    /// Who measured: `reporter` or `sidecar`.
    pub source: String,
    /// What the job is doing.
    pub state: State,
    /// When the process began to report, in Unix seconds.
    pub started_at: f64,
    /// When this reading was taken, in Unix seconds by the job's clock.
    pub now: f64,
    /// Optimizer steps so far.
    pub step: Option<u64>,
    /// Epoch, counted from 1.
    pub epoch: Option<u64>,
    /// How many steps the job means to take.
    pub total_steps: Option<u64>,
    /// How many steps the job expects to take, where [`Progress::total_steps`] is a cap that it may
    /// stop short of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_steps: Option<u64>,
    /// The training data in use, as the job names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The loss.
    pub eval: Eval,
    /// How long a batch takes.
    pub batch_latency: Latency,
    /// What the job is asked to reach.
    pub targets: Targets,
    /// When it did.
    pub reached: Reached,
    /// The last checkpoint.
    pub checkpoint: Checkpoint,
    /// The loss on held-out data, apart from [`Progress::eval`].
    #[serde(default)]
    pub validation: Option<Validation>,
    /// What follows from the reports so far.
    #[serde(default)]
    pub signals: Signals,
    /// The CPU that the process has.
    #[serde(default)]
    pub cpu: Cpu,
    /// Which of several processes of one job this is.
    #[serde(default)]
    pub rank: Option<Rank>,
    /// What a sidecar reads from; a reporter has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Sidecar>,
    /// Reports that were lost because the reporter could not keep up.
    pub dropped: u64,
    /// Reports that were refused because the value was not a finite number.
    pub rejected: u64,
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No report has arrived yet.
    Starting,
    /// At least one report has arrived.
    Running,
    /// The job ended as it meant to.
    Finished,
    /// The job ended by an error.
    Failed,
}

/// Which way the loss is meant to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct Eval {
    /// What the loss is called.
    pub name: String,
    /// Which way it is meant to go.
    pub direction: Direction,
    /// Mean of the last [`Eval::window`] reports.
    pub value: Option<f64>,
    /// How many reports [`Eval::value`] is the mean of, at most.
    pub window: u32,
    /// When the last report came, in Unix seconds.
    pub updated_at: Option<f64>,
    /// How many finite reports came.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The first of them.
    pub first: Option<f64>,
    /// The best of them.
    pub best: Option<f64>,
    /// The largest of them by absolute value.
    pub max_abs: Option<f64>,
}

/// How long batches took, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many batches ended.
    pub count: u64,
    /// Their total duration.
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

/// What a job is asked to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// The loss from which on the model is usable.
    pub acceptable: Option<f64>,
    /// The loss at which the job is done.
    pub objective: Option<f64>,
    /// The batch duration to keep, in seconds.
    pub batch_latency: Option<f64>,
}

/// When the targets were reached, in Unix seconds. Once set, it stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// When [`Targets::acceptable`] was.
    pub acceptable_at: Option<f64>,
    /// When [`Targets::objective`] was.
    pub objective_at: Option<f64>,
}

/// The checkpoints of a job.
///
/// A request has a number, counted from 1: the answer to `POST /v1/checkpoint` says which. Once
/// [`Checkpoint::answered`] is that number or more, it has been saved or has failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// How many were asked for.
    pub requested: u64,
    /// The number of the last request that was answered, well or not.
    #[serde(default)]
    pub answered: u64,
    /// How many were written.
    pub saved: u64,
    /// The step of the last one.
    pub step: Option<u64>,
    /// The mean loss at that step.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Where it lies.
    pub path: Option<String>,
    /// When it was written, in Unix seconds.
    pub at: Option<f64>,
    /// Why the last attempt failed, if it did.
    pub error: Option<String>,
    /// The best one since the acceptable loss was reached: never replaced by a worse one.
    #[serde(default)]
    pub kept: Option<Kept>,
}

/// A checkpoint that is kept because the model is usable from there on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Where it lies.
    pub path: String,
    /// The mean loss that it was saved at.
    pub loss: f64,
    /// The step that it was saved at.
    pub step: u64,
    /// When, in Unix seconds.
    pub at: f64,
}

/// The loss on held-out data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The last one.
    pub value: f64,
    /// The best one.
    pub best: f64,
    /// How many finite ones there were.
    pub count: u64,
    /// When the last one came, in Unix seconds.
    pub updated_at: f64,
}

/// What follows from the reports, worked out when somebody asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Signals {
    /// What the job is at.
    pub activity: Activity,
    /// Seconds since the last report.
    pub quiet_seconds: Option<f64>,
    /// Whether the loss is still a loss.
    pub health: Health,
    /// The loss without its noise.
    pub loss_smoothed: Option<f64>,
    /// The change of the smoothed loss with one step.
    pub loss_slope: Option<f64>,
    /// Steps per second of late.
    pub steps_per_second: Option<f64>,
    /// Steps done of those that the job means to take, from 0 to 1.
    pub progress_ratio: Option<f64>,
    /// Seconds until all steps are done.
    pub eta_seconds: Option<f64>,
    /// The way until the mean loss reaches the acceptable loss; left out where it is not forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_acceptable: Option<Forecast>,
    /// The way until the mean loss reaches the objective; `null` without an objective, once it is
    /// reached, and while there is too little to go by.
    pub to_objective: Option<Forecast>,
}

/// A time to come, in seconds from now, with the interval that holds it with 80 % probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// As likely sooner as later; `null`: more likely never.
    pub seconds: Option<f64>,
    /// Sooner than this with 10 % probability only; `null`: most likely never.
    pub low: Option<f64>,
    /// Later than this with 10 % probability only; `null`: perhaps never.
    pub high: Option<f64>,
    /// The same way in optimizer steps: it does not depend on how much CPU the job has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepsForecast>,
}

/// Optimizer steps still to be taken, with the interval that holds them with 80 % probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepsForecast {
    /// Fewer than this with 10 % probability only; `null`: most likely never.
    pub low: Option<f64>,
    /// As likely fewer as more; `null`: more likely never.
    pub median: Option<f64>,
    /// More than this with 10 % probability only; `null`: perhaps never.
    pub high: Option<f64>,
}

/// What a job is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// No report has come yet: data is loaded, code is compiled.
    #[default]
    Starting,
    /// Steps are made.
    Training,
    /// Held-out data is looked at; no step is expected.
    Evaluating,
    /// A checkpoint is written; no step is expected.
    Checkpointing,
    /// Steps were expected and have not come for much longer than they used to take.
    Stalled,
    /// The job has ended.
    Ended,
}

/// Whether a loss is still a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// It is a finite number that does not run away.
    #[default]
    Fine,
    /// The last report was NaN or infinite.
    Nonfinite,
    /// It has been far worse than it once was for a while.
    Diverging,
}

/// The CPU that a process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Its quota in cores; `null` without one.
    pub quota: Option<f64>,
    /// So many threads can run at once under its quota and affinity: a hint for thread pools.
    pub threads: Option<u32>,
}

/// Which of several processes of one job a process is, as its launcher numbers them from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Among all processes.
    pub global: u32,
    /// Among those of the machine.
    pub local: Option<u32>,
    /// How many processes there are.
    pub world: Option<u32>,
}

/// What a sidecar reads from, and how well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sidecar {
    /// Where the training loss comes from: the name of one of the sources.
    pub loss_from: Option<String>,
    /// Whether the loss is the mean of more than a step, and of what.
    pub loss_span: Option<String>,
    /// Where batch latencies come from: `reported` by the framework, or `inferred` from the times
    /// between its lines.
    pub latency_from: Option<String>,
    /// Whether the job's output comes in blocks, as Python writes it into a pipe: its times mean
    /// little then, and `PYTHONUNBUFFERED=1` mends it.
    pub block_buffered: bool,
    /// Each source.
    pub sources: Vec<Source>,
    /// What each rank's batches take, where several ranks print into one source.
    pub ranks: Vec<RankLatency>,
}

/// Something that a sidecar reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// What it is, such as `log:/logs/train.log`.
    pub name: String,
    /// Whether it is there.
    pub up: bool,
    /// What it was read as, such as `keras bar`; `null` while nothing was recognised.
    pub grammar: Option<String>,
    /// The part of its lines with a loss that this explains, from 0 to 1.
    pub confidence: Option<f64>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines and frames, or records, or rows.
    pub lines: u64,
    /// Those that said something.
    pub observations: u64,
    /// Those that could not be read, and what was cut off for its length.
    pub errors: u64,
    /// Pieces of a command's output that were not passed on, or passed on without being read.
    pub dropped: u64,
    /// When something was read last, in Unix seconds.
    pub updated_at: Option<f64>,
    /// What keeps it away, in words.
    pub error: Option<String>,
}

/// The batch latency of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankLatency {
    /// The rank.
    pub rank: u32,
    /// Batches.
    pub count: u64,
    /// Their duration, in seconds.
    pub sum: f64,
}
