//! What the allocator knows at one moment: the JSON of its API, and what status, page and metrics
//! are made of. Shares and uses are fractions of the node, times seconds; `null` is not known.

mod gang;
mod job;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::order::Guard;
pub use gang::{GangState, GangView, PlaceView, TaskCountsView};
pub use job::{CountsView, JobView, Standing, TaskView, UsedView};

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
    /// Distributed jobs, by name, where a policy places them.
    pub gangs: Vec<GangView>,
    /// Jobs that are on their way from one node to another.
    pub moves: Vec<MoveView>,
    /// The latest decision.
    pub decision: Option<DecisionView>,
    /// Policies that watch and do not act.
    pub shadows: Vec<ShadowView>,
    /// What control has cost.
    pub cost: CostView,
}

impl Snapshot {
    /// What of it lasts from one look to the next, without the rest: that is a copy of every job.
    #[must_use]
    pub fn lasting(&self) -> Self {
        let Self { schema, version, pid, started_at, node, nodes, policy, .. } = self;
        Self {
            schema: *schema,
            version: version.clone(),
            pid: *pid,
            started_at: *started_at,
            node: node.clone(),
            nodes: nodes.clone(),
            policy: policy.clone(),
            ..Self::default()
        }
    }
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
    /// Why nothing new is known of it, where it is a machine of a cluster.
    pub trouble: Option<String>,
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
