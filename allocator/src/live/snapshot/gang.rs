//! A distributed job as it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A distributed job, and where its tasks are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GangView {
    /// Its name.
    pub job: String,
    /// How it stands.
    pub state: GangState,
    /// When it was submitted, in Unix seconds.
    pub submitted: Option<f64>,
    /// Its parameter servers.
    pub ps: TaskCountsView,
    /// Its workers.
    pub workers: TaskCountsView,
    /// The least number of workers with which it can run.
    pub least: u32,
    /// Tasks that hold room, by machine.
    pub places: BTreeMap<String, PlaceView>,
    /// What the policy said of it last.
    pub why: Option<String>,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// How a distributed job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GangState {
    /// It is being submitted.
    Incomplete,
    /// It is to be started.
    #[default]
    Waiting,
    /// All that it needs has a place.
    Running,
    /// It is over.
    Finished,
    /// It is over, and a task of it has failed.
    Failed,
}

impl GangState {
    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// How many tasks of one kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCountsView {
    /// That have a place, and have not come to their end.
    pub placed: u32,
    /// That have come to their end.
    pub over: u32,
    /// In all.
    pub of: u32,
}

/// What a machine has of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlaceView {
    /// Parameter servers.
    pub ps: u32,
    /// Workers.
    pub workers: u32,
}
