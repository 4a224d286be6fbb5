//! The answer of a job policy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::per_job::PerJob;
use crate::reason::Why;
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
    /// The nodes of new jobs, from a policy that places jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<Assignment>,
    /// Jobs that the limiter's default minimum does not apply to, in order of their ids. These are jobs that
    /// wait on purpose, and services that have what they need.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<JobId>,
    /// Class, score and reason of each job.
    pub jobs: PerJob<JobDecision>,
}

impl Decision {
    /// A decision that ends, moves and places no job.
    pub fn new(
        t: f64,
        policy: &'static str,
        interval: f64,
        limits: PerJob<Share>,
        jobs: PerJob<JobDecision>,
    ) -> Self {
        Self {
            t,
            policy,
            interval,
            limits,
            terminate: Vec::new(),
            migrate: Vec::new(),
            place: Vec::new(),
            waiting: Vec::new(),
            jobs,
        }
    }
}

/// The node for a new job.
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
    /// Why it is moved.
    pub reason: Cause,
}

/// Why a job is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// It has converged, and others benefit more from its CPU time.
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

/// A policy's decision for one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobDecision {
    /// The policy's class of the job, such as the paper's set; `-` if there is none.
    pub class: &'static str,
    /// The figure by which it was classified.
    pub score: Option<f64>,
    /// The reason for its share, as data that is put into words when printed.
    pub why: Why,
    /// The expected end of the job, from a policy that plans ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Box<Outlook>>,
}

impl JobDecision {
    /// A decision of a policy that does not plan ahead.
    pub fn new(class: &'static str, score: Option<f64>, why: Why) -> Self {
        Self { class, score, why, outlook: None }
    }
}

/// A policy's forecast for a job at the time of its decision. `None` means not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outlook {
    /// Work left, in seconds of the whole node.
    pub work_left: Option<f64>,
    /// Seconds until its end.
    pub ends_in: Option<f64>,
    /// Seconds until its end if all jobs shared the node equally, by their weights.
    pub fair_ends_in: Option<f64>,
    /// The job that it waits for, if any.
    pub waits_for: Option<JobId>,
}
