//! Frames and answers of policies that start whole distributed jobs and scale them while they run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::frame::MAX_TASKS;
use crate::frame::{FrameError, Node, differ, or_default};
use crate::reason::Why;
use crate::unit::JobId;

/// A cluster's nodes and its distributed jobs at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GangFrame {
    /// Monotonic seconds since the run began.
    pub t: f64,
    /// The nodes, with their whole capacity.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Node>>"))]
    pub nodes: Vec<Node>,
    /// The jobs, in any order.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Gang>>"))]
    pub jobs: Vec<Gang>,
}

/// A distributed job: parameter servers and workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gang {
    /// Its id.
    pub id: JobId,
    /// When it was submitted.
    #[serde(default)]
    pub submitted: Option<f64>,
    /// Its state.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<State>"))]
    pub state: State,
    /// Its parameter servers, which hold the model.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Servers>"))]
    pub ps: Servers,
    /// Its workers, which train.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Workers>"))]
    pub worker: Workers,
    /// Where its tasks run.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Layout>"))]
    pub placement: Layout,
}

/// The state of a distributed job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was submitted and waits to be started.
    #[default]
    Waiting,
    /// It trains.
    Running,
    /// It has ended, successfully or not.
    Finished,
}

/// A job's parameter servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Servers {
    /// The number that it needs.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    pub count: u32,
    /// The cores that each needs.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// The memory that each needs, in bytes.
    #[serde(default)]
    pub memory: Option<f64>,
}

/// A job's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workers {
    /// The least number with which it can run.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    pub min: u32,
    /// The largest number that it can use; `null` means `min`.
    #[serde(default)]
    pub max: Option<u32>,
    /// The cores that each needs.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// The memory that each needs, in bytes.
    #[serde(default)]
    pub memory: Option<f64>,
}

/// How many of a job's tasks are on which node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layout {
    /// Parameter servers by node.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<BTreeMap<String, u32>>"))]
    pub ps: BTreeMap<String, u32>,
    /// Workers by node.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<BTreeMap<String, u32>>"))]
    pub workers: BTreeMap<String, u32>,
}

impl GangFrame {
    /// Reads one line of recorded frames.
    pub fn parse(line: &str) -> Result<Self, FrameError> {
        let frame: Self = serde_json::from_str(line)?;
        differ(&frame.nodes)?;
        let mut seen = BTreeSet::new();
        for gang in &frame.jobs {
            if !seen.insert(&gang.id) {
                return Err(FrameError::Twice(gang.id.to_string()));
            }
            if let Some((field, count)) = gang.too_many() {
                return Err(FrameError::TooMany { job: gang.id.to_string(), field, count });
            }
        }
        Ok(frame)
    }
}

impl Gang {
    /// The first field whose task count exceeds the maximum, and that count.
    fn too_many(&self) -> Option<(&'static str, u64)> {
        let sum = |counts: &BTreeMap<String, u32>| counts.values().copied().map(u64::from).sum();
        let counts = [
            ("ps.count", self.ps.count.into()),
            ("worker.min", self.worker.min.into()),
            ("worker.max", self.worker.max.unwrap_or(0).into()),
            ("placement.ps", sum(&self.placement.ps)),
            ("placement.workers", sum(&self.placement.workers)),
        ];
        counts.into_iter().find(|(_, count)| *count > MAX_TASKS.into())
    }
}

/// The answer to one frame. Lists are in the order of the policy's choices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// The frame's time.
    pub t: f64,
    /// The policy's name.
    pub policy: &'static str,
    /// The weight of each waiting and running job.
    pub weights: BTreeMap<JobId, Weight>,
    /// The tasks to start.
    pub start: Vec<Start>,
    /// Workers to take away.
    pub scale_in: Vec<Change>,
    /// Workers to add.
    pub scale_out: Vec<Change>,
    /// The jobs that still wait.
    pub waiting: Vec<Waiting>,
}

/// A job's weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Weight {
    /// ω′: the figure by which jobs are ordered.
    pub raw: f64,
    /// ω: the same scaled to 0 … 1. It rounds to 1 for large ω′, so jobs are not ordered by it.
    pub weight: f64,
}

/// Tasks of a waiting job, and where to start them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// Parameter servers and workers by node.
    #[serde(flatten)]
    pub layout: Layout,
    /// Why it starts now and on these nodes.
    pub why: Why,
}

/// Workers of a running job to add to a node or to take from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The job.
    pub job: JobId,
    /// The node.
    pub node: String,
    /// The number of workers.
    pub count: u32,
    /// The reason.
    pub why: Why,
}

/// A job that still waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// The job.
    pub job: JobId,
    /// Why it waits.
    pub why: Why,
}

#[cfg(test)]
mod tests;
