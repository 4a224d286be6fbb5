//! A gang as it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A gang, and where its tasks are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GangView {
    /// Its name.
    pub job: String,
    /// Its state.
    pub state: GangState,
    /// When it was submitted, in Unix seconds.
    pub submitted: Option<f64>,
    /// Its parameter servers.
    pub ps: TaskCountsView,
    /// Its workers.
    pub workers: TaskCountsView,
    /// The least number of workers with which it can run.
    pub least: u32,
    /// Its placed tasks, by machine.
    pub places: BTreeMap<String, PlaceView>,
    /// The policy's latest explanation.
    pub why: Option<String>,
    /// What is wrong with it, if anything.
    pub trouble: Option<String>,
}

/// The state of a gang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum GangState {
    /// It is being submitted.
    Incomplete,
    /// It waits to be started.
    #[default]
    Waiting,
    /// All tasks that it needs are placed.
    Running,
    /// It has finished.
    Finished,
    /// It has ended, and at least one of its tasks has failed.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TaskCountsView {
    /// Placed tasks that have not ended.
    pub placed: u32,
    /// Tasks that have ended.
    pub over: u32,
    /// All tasks.
    pub of: u32,
}

/// How many tasks of a gang a machine runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PlaceView {
    /// Parameter servers.
    pub ps: u32,
    /// Workers.
    pub workers: u32,
}
