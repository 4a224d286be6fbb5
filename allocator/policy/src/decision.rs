//! What a policy of jobs answers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::per_job::PerJob;
use crate::policies::Why;
use crate::unit::{JobId, Share};

/// The answer to one frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The frame's time.
    pub t: f64,
    /// The policy's name.
    pub policy: &'static str,
    /// Seconds until the policy wants to run again, if nothing happens before.
    pub interval: f64,
    /// Every running job's share from now on.
    pub limits: PerJob<Share>,
    /// Jobs to end: they have reached their objective.
    pub terminate: Vec<JobId>,
    /// Jobs to move.
    pub migrate: Vec<Migration>,
    /// Where new jobs go: only of a policy that chooses it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<Assignment>,
    /// Jobs that may stand below the limiter's floor, in order: those that wait on purpose, and services that
    /// have what they need.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<JobId>,
    /// Why, job by job.
    pub jobs: PerJob<JobDecision>,
}

/// The node of a job that had none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// Where it is to run.
    pub node: String,
}

/// A move of a job to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// The job.
    pub job: JobId,
    /// Where it runs.
    pub from: String,
    /// Where it is to run.
    pub to: String,
    /// What it is moved for.
    pub reason: Cause,
}

/// What a job is moved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// It has converged, and others can use its room better.
    Converged,
    /// The nodes' numbers of jobs are uneven.
    Rebalance,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "it has converged",
            Self::Rebalance => "to even out the nodes",
        })
    }
}

/// How a policy sees one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobDecision {
    /// The paper's set that the job is in; `-` where there is none.
    pub class: &'static str,
    /// The figure that it was classed by.
    pub score: Option<f64>,
    /// The reason for its share: data, put into words only when it is printed.
    pub why: Why,
    /// What the policy expects of it, where the policy plans ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Box<Outlook>>,
}

impl JobDecision {
    /// A decision of a policy that does not plan ahead.
    pub fn new(class: &'static str, score: Option<f64>, why: Why) -> Self {
        Self { class, score, why, outlook: None }
    }
}

/// What a policy expects of a job, as of its decision. `None` is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outlook {
    /// Work left, in seconds of the whole node.
    pub work_left: Option<f64>,
    /// Seconds until its end.
    pub ends_in: Option<f64>,
    /// Seconds until its end if all jobs shared the node equally, by their weights.
    pub fair_ends_in: Option<f64>,
    /// The job that is served before it, if it waits for one.
    pub waits_for: Option<JobId>,
}
