//! One job, as it is shown.

use paceline_wire::{Direction, Targets};
use serde::{Deserialize, Serialize};

use crate::live::order::Guard;

/// Whether a container is managed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its endpoint has not answered yet, or it is refused: see [`JobView::trouble`].
    #[default]
    Waiting,
    /// The policy decides its limit.
    Managed,
    /// Held at one share by an order.
    Pinned,
    /// Not managed any more, by an order.
    Released,
    /// At its objective, and being ended.
    Ending,
    /// Paused, while its job is moved to another node.
    Moving,
}

impl Standing {
    /// Whether the decision engine knows it as a job.
    pub fn is_managed(self) -> bool {
        matches!(self, Self::Managed | Self::Pinned | Self::Ending)
    }
}

/// One container and its job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobView {
    /// The job's name.
    pub job: String,
    /// The container's full id.
    pub container: String,
    /// The container's name.
    pub name: String,
    /// Whether and how it is managed.
    pub standing: Standing,
    /// The node that it runs on, if the machine is split into several.
    pub node: Option<String>,
    /// Why it cannot be moved to another node, if it cannot.
    pub unmovable: Option<String>,
    /// Why it is not managed, or why its figures are not fresh.
    pub trouble: Option<String>,
    /// Where a browser finds the page of the job's own endpoint, such as `http://127.0.0.1:7223/`; `None` if
    /// that cannot be reached from outside the container.
    pub page: Option<String>,
    /// `starting`, `running`, `finished` or `failed`, as the job says.
    pub state: Option<String>,
    /// Mean loss since the sample before.
    pub loss: Option<f64>,
    /// The latest known loss.
    pub last_loss: Option<f64>,
    /// Whether the loss is minimized or maximized.
    pub direction: Direction,
    /// The targets in force.
    pub targets: Targets,
    /// When the acceptable loss was reached, in Unix seconds.
    pub acceptable_at: Option<f64>,
    /// When the objective was reached, in Unix seconds.
    pub objective_at: Option<f64>,
    /// The number of the latest step.
    pub step: Option<u64>,
    /// The number of steps in all.
    pub total_steps: Option<u64>,
    /// Mean duration of a batch since the sample before, in seconds.
    pub batch_latency: Option<f64>,
    /// When the job last reported a loss, in Unix seconds.
    pub reported_at: Option<f64>,
    /// Mean use of CPU since the sample before, as a fraction of the node.
    pub cpu: Option<f64>,
    /// Fraction of the time since the sample before in which it was throttled.
    pub throttled: Option<f64>,
    /// Memory in use, in bytes.
    pub memory: Option<f64>,
    /// The most memory so far, in bytes.
    pub memory_peak: Option<f64>,
    /// Bytes of block I/O since the container began.
    pub blkio: Option<f64>,
    /// Bytes over the network since the container began.
    pub net: Option<f64>,
    /// The limit in force in the kernel; 1 means unlimited.
    pub limit: Option<f64>,
    /// The share that the policy chose last.
    pub chosen: Option<f64>,
    /// The smallest share that it is given.
    pub min: Option<f64>,
    /// The largest share that it is given.
    pub max: Option<f64>,
    /// Its weight relative to other jobs.
    pub weight: f64,
    /// The guards that are on for this job.
    pub guards: Vec<Guard>,
    /// The class that the policy gave it.
    pub class: Option<String>,
    /// The figure that the policy classed it by.
    pub score: Option<f64>,
    /// Why the policy chose this share.
    pub why: Option<String>,
    /// Work left, in seconds of the whole node, by a policy that plans ahead.
    pub work_left: Option<f64>,
    /// When that policy expects the job to end, in Unix seconds.
    pub ends_at: Option<f64>,
    /// When it would end if all jobs shared the node equally by weight, in Unix seconds.
    pub fair_ends_at: Option<f64>,
    /// The job that is served before it.
    pub waits_for: Option<String>,
    /// Its counters, from which a reader computes means over any period.
    pub counts: Option<CountsView>,
    /// The task of a Swarm service that it is, if it is one.
    pub task: Option<TaskView>,
    /// The largest factor by which its owner allows it to be slower than under equal sharing.
    pub max_slowdown: Option<f64>,
    /// Whether it may be ended at its objective.
    pub may_terminate: bool,
    /// Its whole work in seconds of the whole node, if its owner declares it.
    pub work: Option<f64>,
    /// The user who owns it, if it is not a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
}

/// A job's counters since its process began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CountsView {
    /// New with every start of the job's process.
    pub instance: String,
    /// Losses that were reported.
    pub losses: u64,
    /// Their sum.
    pub loss_sum: f64,
    /// The largest of them by absolute value.
    pub loss_max_abs: Option<f64>,
    /// Batches that ended.
    pub batches: u64,
    /// Their total duration, in seconds.
    pub batch_seconds: f64,
    /// What its container has used since its start.
    pub used: Option<UsedView>,
}

/// One reading of a container's control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct UsedView {
    /// When it was read, in seconds since the run began.
    pub at: f64,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// Time in which it was throttled, in seconds.
    pub throttled_seconds: f64,
}

/// A task of a Swarm, by the labels that the engine gives its container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TaskView {
    /// The service's id.
    pub service: String,
    /// The service's name.
    pub name: String,
    /// The task's id.
    pub task: String,
}
