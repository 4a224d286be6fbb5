//! What a fit finds.

use paceline_policy::JobId;
use paceline_wire::Targets;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::curve::Curve;
use crate::scenario::{ReachedAt, Start, Told};

/// A parameter, or why the recordings do not tell it.
pub type Fitted<T> = Result<T, Why>;

/// Why a parameter could not be fitted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Why {
    /// Too few frames tell of it.
    #[error("of {of} {have} frames tell, but {need} must: record at a shorter interval")]
    TooFewFrames {
        /// Of what.
        of: &'static str,
        /// How many do.
        have: usize,
        /// How many there must be.
        need: usize,
    },
    /// The job never had as much CPU as it wanted.
    #[error("it never had room to use more: it used {:.0} % of the node at most", most * 100.0)]
    NoRoom {
        /// The largest share that it was seen to use.
        most: f64,
    },
    /// The job was hardly ever one of many.
    #[error("it hardly ran where more than two threads wanted each CPU")]
    NoCrowd,
    /// The job never ran under a limit.
    #[error("it never ran under a limit: record it alone at 1/2 and 1/4 of the node")]
    NoLimit,
    /// The job's shares and limits were too much alike.
    #[error("its shares and limits varied too little to tell it from a batch's work")]
    Alike,
    /// The durations of batches do not follow the share.
    #[error("its batches do not take longer with a smaller share")]
    NotByShare,
    /// No job's batches were timed with both fewer and more others in its way.
    #[error("no job's batches were timed with both fewer and more jobs in its way")]
    NoNeighbours,
    /// The job reports no loss.
    #[error("no frame has a loss of it")]
    NoLoss,
    /// The job's loss did not become better.
    #[error("its loss did not get better")]
    NotLearning,
    /// The node's own use is in no frame.
    #[error("no frame tells what the whole node used while no job came or went")]
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

/// Nodes and their jobs, as far as recordings tell of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The nodes.
    pub nodes: Vec<NodeFit>,
    /// The jobs of the first recording, in the order of their arrival.
    pub jobs: Vec<JobFit>,
    /// Jobs that were in too few frames to say anything about.
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
    /// The share of it that is used by whatever is no job of a recording.
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
    /// What it does before that, of which frames tell nothing: for whoever knows it otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Whether it ended while it was recorded. The work of one that did not is what it did until
    /// then.
    pub ended: bool,
    /// Its work, as seconds of the whole node.
    pub work: f64,
    /// The CPU time that it took for it, in the same measure: more than its work by what
    /// neighbours, limits and waiting cost it.
    pub cpu: f64,
    /// The largest share that it can use, and the deviation of what it was seen to use when it had
    /// room; 1 if it can use the whole node.
    #[serde(serialize_with = "as_json")]
    pub parallel: Fitted<Measured>,
    /// Its weight in a crowd, beside that of the heaviest.
    #[serde(serialize_with = "as_json")]
    pub crowded: Fitted<f64>,
    /// By how much a neighbour of equal share slows it down, if that is not as with the others.
    pub contention: Option<f64>,
    /// What its batches take.
    #[serde(serialize_with = "as_json")]
    pub batch: Fitted<Batch>,
    /// How its loss falls.
    #[serde(serialize_with = "as_json")]
    pub learning: Fitted<Learning>,
    /// What it had reported when it was first seen, unless it mostly had not by then.
    pub told: Option<Told>,
    /// When it said that it had reached its targets.
    pub reached_at: ReachedAt,
    /// For how many seconds a move to another node stops it before it starts there, of which frames of jobs
    /// that stay tell nothing: for whoever knows it otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_wait: Option<f64>,
    /// What its owner asks for.
    pub terms: Terms,
}

/// A figure, and the deviation of the measurements that it is the mean of.
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
    /// Seconds that it takes on top, whatever the share.
    #[serde(serialize_with = "as_json")]
    pub fixed: Fitted<f64>,
    /// What a limit costs.
    #[serde(serialize_with = "as_json")]
    pub throttling: Fitted<Throttling>,
    /// The deviation of the durations from this model, as a fraction of them.
    pub error: f64,
    /// That of one batch's duration from the mean of those beside as many others under the same limit,
    /// as a fraction of it.
    pub noise: f64,
}

/// What a limit costs beside the CPU that it takes away.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throttling {
    /// The part of its speed that a job loses under a vanishing limit.
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
    /// What reports have beside the curve in each recording alike, in equal parts of the work; none where
    /// recordings do not tell of it.
    pub residuals: Vec<f64>,
    /// The frames that it was fitted to.
    pub frames: usize,
}

/// What a job's owner asks for, as its last frame has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Terms {
    /// Its targets.
    pub targets: Targets,
    /// Whether it may be ended at its objective.
    pub may_terminate: Option<bool>,
    /// The least share that it is to have.
    pub min: Option<f64>,
    /// The most.
    pub max: Option<f64>,
    /// Its weight in the limiter.
    pub weight: Option<f64>,
    /// By how much it may be slowed down beside an equal share.
    pub max_slowdown: Option<f64>,
}
