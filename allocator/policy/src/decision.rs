//! What a policy answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::unit::{JobId, Share};

/// The answer to one frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The frame's time.
    pub t: f64,
    /// The policy's name.
    pub policy: String,
    /// Seconds until the policy wants to run again, if nothing happens before.
    pub interval: f64,
    /// Every running job's share from now on.
    pub limits: BTreeMap<JobId, Share>,
    /// Jobs to end: they have reached their objective.
    pub terminate: Vec<JobId>,
    /// Jobs to move.
    pub migrate: Vec<Migration>,
    /// Why, job by job.
    pub jobs: BTreeMap<JobId, JobDecision>,
}

/// A move of a job to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// The job.
    pub job: JobId,
    /// Where it runs.
    pub from: String,
    /// Where it is to run.
    pub to: String,
    /// `converged` or `rebalance`.
    pub reason: String,
}

/// How a policy sees one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobDecision {
    /// The paper's set that the job is in; `-` where there is none.
    pub class: String,
    /// The figure that it was classed by.
    pub score: Option<f64>,
    /// The reason for its share, for a person to check.
    pub why: String,
}
