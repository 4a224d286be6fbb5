//! What is kept of a run: `run.json`, written when it is whole, beside its frames and samples.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::containers::LimitLeft;
use crate::samples::Sample;

/// A run of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The arm's name.
    pub(crate) arm: String,
    /// From 1; 0 is the warm-up, which counts for nothing.
    pub(crate) repeat: u32,
    /// When arrivals began to count, in Unix seconds.
    pub(crate) began: f64,
    /// In the schedule's order.
    pub(crate) jobs: Vec<JobRun>,
    /// Containers that the allocator left with a limit.
    pub(crate) limits_left: Vec<LimitLeft>,
    pub(crate) host: Host,
    pub(crate) moves: Vec<Move>,
}

/// One job of a run; times are seconds after the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobRun {
    pub(crate) job: String,
    pub(crate) arrived: f64,
    pub(crate) ended: f64,
    /// 0 is success.
    pub(crate) exit_code: i64,
    pub(crate) out_of_memory: bool,
}

/// What else went on where a run was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// The load average of one minute, before the run.
    pub(crate) load: f64,
    /// The mean share of the machine that others took.
    pub(crate) others: Option<f64>,
    /// The share of CPU time that was stolen from the machine.
    pub(crate) steal: f64,
    /// Why the run does not count as clean.
    pub(crate) spoiled: Option<String>,
}

/// A job's move from one node to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Move {
    /// When, in seconds after the run began.
    pub(crate) t: f64,
    pub(crate) job: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// How long the job made no progress.
    pub(crate) seconds: f64,
    /// Why it goes on where it was, if it does.
    pub(crate) failed: Option<String>,
}

/// A run and what was sampled of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) run: Run,
    pub(crate) samples: Vec<Sample>,
    /// Where its frames and logs are.
    pub(crate) folder: PathBuf,
}
