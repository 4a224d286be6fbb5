use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::frame::{FrameError, Node, differ, or_default};
use crate::reason::dltap;
use crate::unit::JobId;

/// A cluster's nodes and the tasks of its jobs at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskFrame {
    /// Monotonic seconds since the run began.
    pub t: f64,
    /// The nodes, with their whole capacity.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Node>>"))]
    pub nodes: Vec<Node>,
    /// All running and waiting tasks, in any order.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Task>>"))]
    pub tasks: Vec<Task>,
}

/// One process of a distributed job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// Its id.
    pub id: JobId,
    /// The job that it belongs to.
    pub job: JobId,
    /// Its part in the job.
    pub role: Role,
    /// The cores that it needs.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// The memory that it needs, in bytes.
    #[serde(default)]
    pub memory: Option<f64>,
    /// The node that it is bound to.
    #[serde(default)]
    pub node: Option<String>,
}

/// A task's part in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A parameter server: it holds a part of the model.
    Ps,
    /// A worker: it trains, and exchanges gradients with every parameter server.
    Worker,
}

impl TaskFrame {
    /// Reads one line of recorded task frames.
    pub fn parse(line: &str) -> Result<Self, FrameError> {
        let frame: Self = serde_json::from_str(line)?;
        differ(&frame.nodes)?;
        let mut seen = BTreeSet::new();
        match frame.tasks.iter().find(|task| !seen.insert(&task.id)) {
            Some(task) => Err(FrameError::TaskTwice(task.id.to_string())),
            None => Ok(frame),
        }
    }
}

/// The answer to one frame of tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placement {
    /// The frame's time.
    pub t: f64,
    /// The policy's name.
    pub policy: &'static str,
    /// The tasks to bind, in the order in which they were placed.
    pub place: Vec<Bound>,
    /// The tasks that stay unbound.
    pub pending: Vec<Pending>,
}

/// A task that is bound to a node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The task.
    pub task: JobId,
    /// Its node.
    pub node: String,
    /// The node's score for the task.
    pub score: f64,
    /// The parts of that score.
    pub why: dltap::Score,
}

/// A task that stays unbound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pending {
    /// The task.
    pub task: JobId,
    /// Why it waits.
    pub why: dltap::Obstacle,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_optional_field_is_null() {
        let sparse = r#"{"t": 1, "tasks": [{"id": "a", "job": "j", "role": "ps", "gpu": 1}]}"#;
        let full = r#"{"t": 1, "nodes": null, "tasks": [
            {"id": "a", "job": "j", "role": "ps", "cpu": null, "memory": null, "node": null}]}"#;
        assert_eq!(TaskFrame::parse(sparse).unwrap(), TaskFrame::parse(full).unwrap());
    }

    #[test]
    fn invalid_frame_is_refused() {
        for line in [
            r#"{"tasks": []}"#,
            r#"{"t": null}"#,
            r#"{"t": 1, "tasks": [{"job": "j", "role": "ps"}]}"#,
            r#"{"t": 1, "tasks": [{"id": "", "job": "j", "role": "ps"}]}"#,
            r#"{"t": 1, "tasks": [{"id": "a", "role": "ps"}]}"#,
            r#"{"t": 1, "tasks": [{"id": "a", "job": "j"}]}"#,
            r#"{"t": 1, "tasks": [{"id": "a", "job": "j", "role": "chief"}]}"#,
            r#"{"t": 1, "tasks": [{"id": "a", "job": "j", "role": "ps", "cpu": "1"}]}"#,
            r#"{"t": 1, "tasks": [{"id": "a", "job": "j", "role": "ps", "node": 1}]}"#,
            r#"{"t": 1, "nodes": [{"cpus": 1}]}"#,
        ] {
            assert!(TaskFrame::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn task_listed_twice_is_named_in_the_error() {
        let twice = r#"{"t": 1, "tasks": [
            {"id": "a", "job": "j", "role": "ps"}, {"id": "a", "job": "k", "role": "worker"}]}"#;
        let error = TaskFrame::parse(twice).unwrap_err();
        assert_eq!(error.to_string(), r#"invalid frame: task "a" is listed twice"#);
    }

    #[test]
    fn a_frame_that_was_written_reads_back() {
        let line = r#"{"t": 2.5, "nodes": [{"name": "n", "cpus": 4}], "tasks": [
            {"id": "a", "job": "j", "role": "worker", "cpu": 0.5, "memory": 1e9, "node": "n"}]}"#;
        let frame = TaskFrame::parse(line).unwrap();
        assert_eq!(frame.tasks[0].role, Role::Worker);
        assert_eq!(TaskFrame::parse(&serde_json::to_string(&frame).unwrap()).unwrap(), frame);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(line in ".*") {
            drop(TaskFrame::parse(&line));
        }

        #[test]
        fn no_value_makes_the_reader_panic(
            id in "[ab]", role in "ps|worker|x", cpu in any::<f64>(), node in "null|1|\"n\""
        ) {
            drop(TaskFrame::parse(&format!(
                r#"{{"t": 1, "tasks": [{{"id": "a", "job": "j", "role": "ps"}},
                    {{"id": "{id}", "job": "j", "role": "{role}", "cpu": {cpu}, "node": {node}}}]}}"#
            )));
        }
    }
}
