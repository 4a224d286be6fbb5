//! What is kept of a run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::containers::LimitLeft;
use crate::samples::Sample;

/// The file that tells of a whole run, written last of all: its `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The arm's name.
    pub(crate) arm: String,
    /// 0 is the warm-up, which counts for nothing.
    pub(crate) repeat: u32,
    /// When arrivals began to count, in Unix seconds.
    pub(crate) began: f64,
    /// In the schedule's order.
    pub(crate) jobs: Vec<JobRun>,
    /// Containers that the allocator left with a limit: there should be none.
    pub(crate) limits_left: Vec<LimitLeft>,
    pub(crate) host: Host,
    /// How fast the machine computed meanwhile, in the order of time.
    #[serde(default)]
    pub(crate) beats: Vec<Beat>,
    /// The jobs' moves between nodes, in the order in which they began.
    pub(crate) moves: Vec<Move>,
}

/// One job in a [`Run`]; times are seconds after the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobRun {
    pub(crate) job: String,
    pub(crate) arrived: f64,
    pub(crate) ended: f64,
    /// 0 is success.
    pub(crate) exit_code: i64,
    pub(crate) out_of_memory: bool,
}

/// What else the machine did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// The load average over the minute before the run.
    pub(crate) load: f64,
    /// The mean share of the machine that others than the jobs took while any of them ran.
    pub(crate) others: Option<f64>,
    /// The share of the CPU time that other guests of the hypervisor took.
    pub(crate) steal: f64,
    /// How fast the machine computed during the run: the mean of its [beats](Beat).
    #[serde(default)]
    pub(crate) speed: Option<f64>,
    /// What disturbed the run, if anything did.
    pub(crate) spoiled: Option<String>,
}

/// How fast the machine computed at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beat {
    /// In seconds after the run began.
    pub(crate) t: f64,
    /// In the [probe](super::probe)'s passes in a second of CPU time.
    pub(crate) passes: f64,
}

/// A job's move between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Move {
    /// When it began, in seconds after the run began.
    pub(crate) t: f64,
    pub(crate) job: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Seconds without progress.
    pub(crate) seconds: f64,
    /// Why the job went on where it was, if it did.
    pub(crate) failed: Option<String>,
}

/// A run that is whole, as it was just made or as an earlier start of the bench left it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) run: Run,
    /// What the allocator saw.
    pub(crate) samples: Vec<Sample>,
    /// Where its files are.
    pub(crate) folder: PathBuf,
}
