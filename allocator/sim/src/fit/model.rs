//! The result of a fit.

use paceline_policy::JobId;
use paceline_wire::Targets;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::curve::Curve;
use crate::scenario::{EarlyReports, ReachedAt, Start};

/// A parameter, or why the recordings do not determine it.
pub type Fitted<T> = Result<T, Why>;

/// Why a parameter could not be fitted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Why {
    /// Too few frames show it.
    #[error("{have} frames show {of}, {need} are needed: record at a shorter interval")]
    TooFewFrames {
        /// What they show.
        of: &'static str,
        /// How many there are.
        have: usize,
        /// How many are needed.
        need: usize,
    },
    /// The job never had as much CPU as it wanted.
    #[error("it never had room to use more: it used {:.0} % of the node at most", most * 100.0)]
    NoRoom {
        /// The largest share that it was seen to use.
        most: f64,
    },
    /// The job hardly ran while the node was oversubscribed.
    #[error("it hardly ran while more than two threads competed for each CPU")]
    NeverOversubscribed,
    /// The job never ran under a limit.
    #[error("it never ran under a limit: record it alone at 1/2 and 1/4 of the node")]
    NoLimit,
    /// The job's shares and limits were too much alike.
    #[error("its shares and limits varied too little to separate it from batch work")]
    Alike,
    /// The durations of batches do not follow the share.
    #[error("its batches do not take longer with a smaller share")]
    NotByShare,
    /// No job's batches were timed with both fewer and more neighbours.
    #[error("no job's batches were timed both with fewer and with more neighbours")]
    NoNeighbours,
    /// The job reports no loss.
    #[error("no frame has a loss of it")]
    NoLoss,
    /// The job's loss did not become better.
    #[error("its loss did not get better")]
    NotLearning,
    /// No frame shows the node's own use.
    #[error("no frame shows the use of the whole node while no job came or went")]
    NoNodeUse,
}

/// A parameter as itself, or `{"not_fitted": why}`.
fn as_json<T: Serialize, S: Serializer>(
    fitted: &Fitted<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match fitted {
        Ok(value) => value.serialize(serializer),
        Err(why) => {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry("not_fitted", &why.to_string())?;
            map.end()
        }
    }
}

/// The fitted nodes and their jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The nodes.
    pub nodes: Vec<NodeFit>,
    /// The jobs of the first recording, in the order of their arrival.
    pub jobs: Vec<JobFit>,
    /// Jobs in too few frames to be fitted.
    pub left_out: Vec<JobId>,
}

impl Fit {
    /// The node of that job.
    pub fn node_of(&self, job: &str) -> Option<&NodeFit> {
        let job = self.jobs.iter().find(|own| own.id.as_str() == job)?;
        self.nodes.iter().find(|node| node.name == job.node)
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeFit {
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub cpus: f64,
    /// Its memory, in bytes.
    pub memory: Option<f64>,
    /// The share of it that is used by anything but the jobs of a recording.
    #[serde(serialize_with = "as_json")]
    pub background: Fitted<f64>,
    /// By how much a neighbour of equal share slows down the jobs that have no contention of their own.
    #[serde(serialize_with = "as_json")]
    pub contention: Fitted<f64>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobFit {
    /// Its name.
    pub id: JobId,
    /// The node that it was on.
    pub node: String,
    /// Its first frame, in seconds after that of the first job.
    pub arrived: f64,
    /// Its start before that. Frames do not show it; a caller may fill it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Whether it ended while it was recorded. If not, its work is what it did until then.
    pub ended: bool,
    /// Its work, as seconds of the whole node.
    pub work: f64,
    /// The CPU time that it took, in the same unit. It exceeds the work by what neighbours, limits
    /// and waiting cost.
    pub cpu: f64,
    /// The largest share that it can use, and the deviation of its use while it had room; 1 if it
    /// can use the whole node.
    #[serde(serialize_with = "as_json")]
    pub parallel: Fitted<Measured>,
    /// Its weight on an oversubscribed node, relative to the heaviest.
    #[serde(serialize_with = "as_json")]
    pub crowded: Fitted<f64>,
    /// By how much a neighbour of equal share slows it down, if that differs from the other jobs.
    pub contention: Option<f64>,
    /// The model of its batches.
    #[serde(serialize_with = "as_json")]
    pub batch: Fitted<Batch>,
    /// How its loss falls.
    #[serde(serialize_with = "as_json")]
    pub learning: Fitted<Learning>,
    /// What it had reported by its first frame; `None` if in most recordings it had not.
    #[serde(rename = "told")]
    pub early_reports: Option<EarlyReports>,
    /// When it reported that it had reached its targets.
    pub reached_at: ReachedAt,
    /// For how many seconds a move to another node stops it before it starts there. Frames of jobs
    /// that stay do not show it; a caller may fill it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_wait: Option<f64>,
    /// The settings of its owner.
    pub terms: Terms,
}

/// A mean, and the deviation of its measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The mean.
    pub mean: f64,
    /// The deviation.
    pub deviation: f64,
}

/// A batch takes `fixed + work / (share · speed)` seconds, where the speed is
/// `1 − cost · (1 − limit · cpus / threads)` under a limit and 1 without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Batch {
    /// Its work, as seconds of the whole node.
    pub work: f64,
    /// Additional seconds, whatever the share.
    #[serde(serialize_with = "as_json")]
    pub fixed: Fitted<f64>,
    /// What a limit costs.
    #[serde(serialize_with = "as_json")]
    pub throttling: Fitted<Throttling>,
    /// The deviation of the durations from this model, as a fraction of them.
    pub error: f64,
    /// The deviation of one batch's duration from the mean of batches with as many neighbours and
    /// the same limit, as a fraction of it.
    pub noise: f64,
}

/// What a limit costs besides the CPU that it takes away.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throttling {
    /// The part of its speed that a job loses as its limit approaches 0.
    pub cost: f64,
    /// Its threads: as many as the CPUs that it can use.
    pub threads: f64,
}

/// How a job's loss falls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Learning {
    /// The curve, over the fraction of the job's work.
    pub curve: Curve,
    /// The deviation of the frames' mean losses from it, as a fraction of the whole fall.
    pub error: f64,
    /// The deviation of one report, as a fraction of the whole fall.
    pub noise: f64,
    /// The deviation of reports from the curve that all recordings share, in equal parts of the
    /// work; empty if recordings do not show it.
    pub residuals: Vec<f64>,
    /// The frames that it was fitted to.
    pub frames: usize,
}

/// The settings of a job's owner, from its last frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Terms {
    /// Its targets.
    pub targets: Targets,
    /// Whether it may be ended at its objective.
    pub may_terminate: Option<bool>,
    /// The least share that it is to have.
    pub min: Option<f64>,
    /// The largest share that it may have.
    pub max: Option<f64>,
    /// Its weight in the limiter.
    pub weight: Option<f64>,
    /// By how much it may be slowed down compared with an equal share.
    pub max_slowdown: Option<f64>,
}
