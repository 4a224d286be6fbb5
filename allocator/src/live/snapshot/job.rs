//! One job, as it is shown.

use paceline_wire::{Direction, Targets};
use serde::{Deserialize, Serialize};

use crate::live::order::Guard;

/// Whether a container is managed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its endpoint has not answered yet, or it is refused: see [`JobView::trouble`].
    #[default]
    Waiting,
    /// The policy decides.
    Managed,
    /// Held at one share by an order.
    Pinned,
    /// Left alone by an order.
    Released,
    /// At its objective, and on its way to its end.
    Ending,
    /// Frozen, while its job is on its way to another node.
    Moving,
}

impl Standing {
    /// Whether it is a job to what decides.
    pub fn is_managed(self) -> bool {
        matches!(self, Self::Managed | Self::Pinned | Self::Ending)
    }
}

/// One container and its job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobView {
    /// The job's name.
    pub job: String,
    /// The container's full id.
    pub container: String,
    /// The container's name.
    pub name: String,
    /// Whether it is managed.
    pub standing: Standing,
    /// The node that it runs on, where the machine is several.
    pub node: Option<String>,
    /// Why it cannot be moved to another node, where it cannot.
    pub unmovable: Option<String>,
    /// What keeps it from being managed, or its figures from being fresh.
    pub trouble: Option<String>,
    /// `starting`, `running`, `finished` or `failed`, as the job says.
    pub state: Option<String>,
    /// Mean loss since the look before.
    pub loss: Option<f64>,
    /// The last loss that was seen.
    pub last_loss: Option<f64>,
    /// Which way it goes.
    pub direction: Direction,
    /// The targets in force.
    pub targets: Targets,
    /// When they were reached, in Unix seconds.
    pub acceptable_at: Option<f64>,
    /// The same of the objective.
    pub objective_at: Option<f64>,
    /// The last steps' number.
    pub step: Option<u64>,
    /// How many steps there are to be.
    pub total_steps: Option<u64>,
    /// Mean duration of a batch since the look before, in seconds.
    pub batch_latency: Option<f64>,
    /// When the job last reported a loss, in Unix seconds.
    pub reported_at: Option<f64>,
    /// Mean use of CPU since the look before.
    pub cpu: Option<f64>,
    /// Share of the time at its cap since the look before.
    pub throttled: Option<f64>,
    /// Memory in use, and the most so far, in bytes.
    pub memory: Option<f64>,
    /// The most memory so far, in bytes.
    pub memory_peak: Option<f64>,
    /// Bytes of block I/O since the container began.
    pub blkio: Option<f64>,
    /// Bytes over the network since the container began.
    pub net: Option<f64>,
    /// The limit that the kernel has: 1 is none.
    pub limit: Option<f64>,
    /// What the policy chose last.
    pub chosen: Option<f64>,
    /// The least that it is given.
    pub min: Option<f64>,
    /// The most.
    pub max: Option<f64>,
    /// Its weight.
    pub weight: f64,
    /// The guards that are on for this job.
    pub guards: Vec<Guard>,
    /// The class that the policy gave it.
    pub class: Option<String>,
    /// The figure that it was classed by.
    pub score: Option<f64>,
    /// Why the policy chose what it chose.
    pub why: Option<String>,
    /// Work left, in seconds of the whole node, by a policy that plans ahead.
    pub work_left: Option<f64>,
    /// When that policy expects the job to end, in Unix seconds.
    pub ends_at: Option<f64>,
    /// When it would end if all jobs shared the node equally by weight, in Unix seconds.
    pub fair_ends_at: Option<f64>,
    /// The job that is served before it.
    pub waits_for: Option<String>,
    /// What it has counted, for whoever works out means over times of his own.
    pub counts: Option<CountsView>,
    /// The task that it is of a Swarm's service.
    pub task: Option<TaskView>,
    /// By how much its owner lets it be slowed down beside an equal share.
    pub max_slowdown: Option<f64>,
    /// Whether it may be ended at its objective.
    pub may_terminate: bool,
    /// Its whole work in seconds of the whole node, where its owner declares it.
    pub work: Option<f64>,
}

/// What a job has counted since its process began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// What its container has used since it began.
    pub used: Option<UsedView>,
}

/// One reading of a container's control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsedView {
    /// When it was read, in seconds since the run began.
    pub at: f64,
    /// CPU time.
    pub cpu_seconds: f64,
    /// Time at its cap.
    pub throttled_seconds: f64,
}

/// A task of a Swarm, by the labels that the engine gives its container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskView {
    /// The service's id.
    pub service: String,
    /// The service's name.
    pub name: String,
    /// The task's id.
    pub task: String,
}
