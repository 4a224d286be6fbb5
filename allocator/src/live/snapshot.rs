//! What the allocator knows at one moment: the JSON of its API, and what status, page and metrics
//! are made of. Shares and uses are fractions of the node, times seconds; `null` is not known.

use std::collections::BTreeMap;

use paceline_wire::{Direction, Targets};
use serde::{Deserialize, Serialize};

use super::order::Guard;

/// The version of the JSON.
pub const SCHEMA: u32 = 1;

/// The whole of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Of the program.
    pub version: String,
    /// The allocator's process.
    pub pid: u32,
    /// When the run began, in Unix seconds.
    pub started_at: f64,
    /// When this was seen, in Unix seconds.
    pub now: f64,
    /// The same moment as seconds since the run began.
    pub t: f64,
    /// The node.
    pub node: NodeView,
    /// What its CPUs are split into, if they are.
    pub nodes: Vec<NodeView>,
    /// Who decides.
    pub policy: PolicyView,
    /// Every container that opted in, or was told to, by the job's name.
    pub jobs: Vec<JobView>,
    /// Jobs that are on their way from one node to another.
    pub moves: Vec<MoveView>,
    /// The latest decision.
    pub decision: Option<DecisionView>,
    /// Policies that watch and do not act.
    pub shadows: Vec<ShadowView>,
    /// What control has cost.
    pub cost: CostView,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// How many CPUs it has.
    pub cpus: f64,
    /// Its memory in bytes.
    pub memory: f64,
    /// What everything on it uses.
    pub cpu: Option<f64>,
}

/// The policy and how its choices are enforced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyView {
    /// Its name.
    pub name: String,
    /// `resolved` or `published`.
    pub variant: String,
    /// All its parameters, those by default included.
    pub params: BTreeMap<String, f64>,
    /// `quota`, `shares` or `quota+leftover`.
    pub enforcement: String,
    /// `engine` or `cgroup`.
    pub actuator: String,
    /// Nothing is written.
    pub dry_run: bool,
    /// The guards that are on for every job that does not say otherwise.
    pub guards: Vec<Guard>,
}

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
}

/// A move that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MoveView {
    /// The job.
    pub job: String,
    /// The node that it leaves.
    pub from: String,
    /// The node that it goes to.
    pub to: String,
    /// What for.
    pub reason: String,
    /// What is done now: `create`, `save`, `pause`, `start`, `prove`, `retire`, `rename`, or, on the
    /// way back, `discard`, `resume`.
    pub step: String,
    /// When it began, in Unix seconds.
    pub since: f64,
}

/// What one run of the policy said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionView {
    /// Its number, from 1.
    pub number: u64,
    /// When, in Unix seconds.
    pub at: f64,
    /// Seconds until the next.
    pub interval: f64,
}

/// A policy that watches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowView {
    /// Its name.
    pub policy: String,
    /// What it would give, by job.
    pub limits: BTreeMap<String, f64>,
    /// The mean distance between its choices and those of the policy that acts, at the last
    /// decision.
    pub distance: Option<f64>,
    /// Decisions so far, and those in which some job's share differed by at least 1 % of the node.
    pub decisions: u64,
    /// Decisions in which they differed.
    pub disagreements: u64,
}

/// What control has cost since the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostView {
    /// The allocator's own CPU time, in seconds.
    pub cpu_seconds: f64,
    /// Its memory, in bytes.
    pub memory: Option<f64>,
    /// Limits written.
    pub writes: u64,
    /// Writes that failed.
    pub failed_writes: u64,
    /// Time spent in writing, in seconds.
    pub write_seconds: f64,
    /// Limits found to be another's than what was written.
    pub drifts: u64,
    /// Jobs that were moved to another node.
    pub moves: u64,
    /// Moves that came to nothing.
    pub failed_moves: u64,
    /// Time that jobs have lost by moves, in seconds.
    pub move_seconds: f64,
    /// How often guards acted, by guard.
    pub guard_actions: BTreeMap<String, u64>,
}
