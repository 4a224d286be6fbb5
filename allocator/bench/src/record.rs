//! The record of a run that is kept on disk.

use std::path::PathBuf;

use paceline_api::samples::Sample;
use serde::{Deserialize, Serialize};

use super::containers::LimitLeft;

/// A completed run: its `run.json`, which is written last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The arm's name.
    pub(crate) arm: String,
    /// From 1; 0 is the warm-up, which does not count.
    pub(crate) repeat: u32,
    /// The time from which arrivals count, in Unix seconds.
    pub(crate) began: f64,
    /// In the schedule's order.
    pub(crate) jobs: Vec<JobRun>,
    /// Containers that the allocator left with a limit: there should be none.
    pub(crate) limits_left: Vec<LimitLeft>,
    pub(crate) host: Host,
    /// The probe's samples of the machine's speed, in the order of time.
    #[serde(default, rename = "beats")]
    pub(crate) speed_samples: Vec<SpeedSample>,
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

/// The machine's state and other load during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// The load average over the minute before the run.
    pub(crate) load: f64,
    /// The mean share of the machine that other work took while a job ran.
    pub(crate) others: Option<f64>,
    /// The share of CPU time that other guests of the hypervisor took.
    pub(crate) steal: f64,
    /// The machine's speed during the run: the mean of its [samples](SpeedSample).
    #[serde(default)]
    pub(crate) speed: Option<f64>,
    /// What disturbed the run, if anything did.
    pub(crate) spoiled: Option<String>,
}

/// The machine's speed at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpeedSample {
    /// Seconds after the run began.
    pub(crate) t: f64,
    /// The [probe](super::probe)'s passes per second of CPU time.
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
    /// Why the job stayed where it was, if the move failed.
    pub(crate) failed: Option<String>,
}

/// A completed run, of this start of the bench or of an earlier one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) run: Run,
    /// The allocator's samples.
    pub(crate) samples: Vec<Sample>,
    /// Where its files are.
    pub(crate) folder: PathBuf,
}
