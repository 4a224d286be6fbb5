//! What the allocator knows at one moment: the JSON of its API, and the source of status, page and
//! metrics. Shares and uses are fractions of the node, times are seconds; an unknown value is
//! `null`.

mod gang;
mod job;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::order::Guard;
pub use gang::{GangState, GangView, PlaceView, TaskCountsView};
pub use job::{CountsView, JobView, Standing, TaskView, UsedView};

/// The version of the JSON.
pub const SCHEMA: u32 = 1;

/// The state of the allocator and of everything that it manages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program's version.
    pub version: String,
    /// The allocator's process id.
    pub pid: u32,
    /// When the run began, in Unix seconds.
    pub started_at: f64,
    /// When this was measured, in Unix seconds.
    pub now: f64,
    /// The same moment as seconds since the run began.
    pub t: f64,
    /// The machine.
    pub node: NodeView,
    /// The CPU sets that the machine is split into, if it is.
    pub nodes: Vec<NodeView>,
    /// The policy that decides.
    pub policy: PolicyView,
    /// Every container that opted in, by its label or by an order, sorted by the job's name.
    pub jobs: Vec<JobView>,
    /// Gangs, sorted by name, if a policy places them.
    pub gangs: Vec<GangView>,
    /// Jobs that are being moved from one node to another.
    pub moves: Vec<MoveView>,
    /// The latest decision.
    pub decision: Option<DecisionView>,
    /// Shadow policies: their decisions are recorded and never applied.
    pub shadows: Vec<ShadowView>,
    /// What control has cost.
    pub cost: CostView,
}

impl Snapshot {
    /// A copy without jobs, gangs, moves, decision, shadows and cost: copying every job would be
    /// expensive.
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

/// A machine, or a CPU set of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// How many CPUs it has.
    pub cpus: f64,
    /// Its memory in bytes.
    pub memory: f64,
    /// The CPU use of everything on it.
    pub cpu: Option<f64>,
    /// Why its figures are not fresh, if it is a machine of a cluster.
    pub trouble: Option<String>,
}

/// The policy and how its choices are enforced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PolicyView {
    /// Its name.
    pub name: String,
    /// `resolved` or `published`.
    pub variant: String,
    /// All its parameters, defaults included.
    pub params: BTreeMap<String, f64>,
    /// `quota`, `shares` or `quota+leftover`.
    pub enforcement: String,
    /// `engine` or `cgroup`.
    pub actuator: String,
    /// Whether limits are only logged and not written.
    pub dry_run: bool,
    /// The guards that are on for every job without a setting of its own.
    pub guards: Vec<Guard>,
}

/// A move that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MoveView {
    /// The job.
    pub job: String,
    /// The node that it leaves.
    pub from: String,
    /// The node that it goes to.
    pub to: String,
    /// Why it is moved.
    pub reason: String,
    /// The current step: `create`, `save`, `pause`, `start`, `prove`, `retire` or `rename`; during
    /// a rollback `discard` or `resume`.
    pub step: String,
    /// When it began, in Unix seconds.
    pub since: f64,
}

/// One decision: its number and its times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DecisionView {
    /// Its number, from 1.
    pub number: u64,
    /// When it was made, in Unix seconds.
    pub at: f64,
    /// Seconds until the next decision.
    pub interval: f64,
}

/// A shadow policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ShadowView {
    /// Its name.
    pub policy: String,
    /// The shares that it would give, by job.
    pub limits: BTreeMap<String, f64>,
    /// The mean distance between its choices and those of the policy that acts, at the last
    /// decision.
    pub distance: Option<f64>,
    /// Decisions so far.
    pub decisions: u64,
    /// Decisions in which some job's share differed by at least 1 % of the node.
    pub disagreements: u64,
}

/// What control has cost since the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// How often a limit differed from what was written.
    pub drifts: u64,
    /// Jobs that were moved to another node.
    pub moves: u64,
    /// Moves that failed: the job stayed where it was.
    pub failed_moves: u64,
    /// Time that jobs have lost because of moves, in seconds.
    pub move_seconds: f64,
    /// How often guards acted, by guard.
    pub guard_actions: BTreeMap<String, u64>,
}
