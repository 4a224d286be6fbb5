//! A policy's input: one frame for each run of the policy.
//!
//! The format is public: `paceline run --record` writes a frame as a line of JSON, and a replay reads
//! it. Unknown fields are ignored; a missing optional field is `null`. A frame without a time, a job
//! without an id, a repeated id or name, a wrong type and a value that no run can have are errors.

mod check;

use paceline_wire::{Direction, Targets};
use serde::{Deserialize, Deserializer, Serialize};

use crate::names::in_plain_words;
use crate::unit::{JobId, NodeName, Share};

pub(crate) use check::differ;

/// The maximum number of tasks of one kind per job. Policies place tasks one by one, so a mistaken
/// count must not block the run.
pub const MAX_TASKS: u32 = 10_000;

/// The jobs and nodes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Monotonic seconds since the run began.
    pub t: f64,
    /// The nodes; a policy of a single node does not read them.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Node>>"))]
    pub nodes: Vec<Node>,
    /// The running managed jobs, in any order.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Job>>"))]
    pub jobs: Vec<Job>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Its CPUs.
    #[serde(default)]
    pub cpus: Option<f64>,
    /// Its memory, in bytes.
    #[serde(default)]
    pub memory: Option<f64>,
    /// The usage of everything that runs there, as fractions of the node.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Usage>"))]
    pub usage: Usage,
}

/// A running job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The node that it runs on.
    #[serde(default)]
    pub node: Option<NodeName>,
    /// E(t): the mean of the losses reported since the previous frame.
    #[serde(default)]
    pub loss: Option<f64>,
    /// The largest absolute single loss so far.
    #[serde(default)]
    pub loss_max: Option<f64>,
    /// Whether a smaller or a larger loss is better.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Direction>"))]
    pub direction: Direction,
    /// The mean duration in seconds of the batches that both began and ended since the previous
    /// frame or the job's last change of limit, whichever is later.
    #[serde(default)]
    pub batch_latency: Option<f64>,
    /// Its usage since the previous frame, as fractions of the node.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Usage>"))]
    pub usage: Usage,
    /// Its limit.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Limit>"))]
    pub limit: Limit,
    /// The fraction of the time since the previous frame in which it was throttled at its cap.
    #[serde(default)]
    pub throttled: Option<f64>,
    /// Its weight relative to other jobs.
    #[serde(default)]
    pub weight: Option<f64>,
    /// Whether it may be ended at its objective.
    #[serde(default)]
    pub may_terminate: Option<bool>,
    /// The work that it has left, in seconds of the whole node. Known only where its owner declares its
    /// work and the job reports its progress. Only the yardstick `srpt` uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<f64>,
    /// The CPU time that it has used since its container began, in seconds. It never falls, even when
    /// the job's process restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// The optimizer steps that it has taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The CPU time that it had used at that step, on the counter of `cpu_seconds`. It differs from
    /// `cpu_seconds` because a step is reported a moment after it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_cpu_seconds: Option<f64>,
    /// The steps that it plans to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// The steps that it expects to take, where `total_steps` is only an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_steps: Option<u64>,
    /// The steps until its loss is acceptable, by the median of its own forecast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_to_acceptable: Option<f64>,
    /// The same until its objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_to_objective: Option<f64>,
    /// The targets that the job reports as reached.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Reached>"))]
    pub reached: Reached,
    /// Its targets.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Targets>"))]
    pub targets: Targets,
}

impl Job {
    /// A job with an id and no other values.
    pub fn new(id: JobId) -> Self {
        Self {
            id,
            node: None,
            loss: None,
            loss_max: None,
            direction: Direction::default(),
            batch_latency: None,
            usage: Usage::default(),
            limit: Limit::default(),
            throttled: None,
            weight: None,
            may_terminate: None,
            remaining: None,
            cpu_seconds: None,
            step: None,
            step_cpu_seconds: None,
            total_steps: None,
            expected_steps: None,
            steps_to_acceptable: None,
            steps_to_objective: None,
            reached: Reached::default(),
            targets: Targets::default(),
        }
    }
}

/// Resources in use, as fractions of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// CPU time.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// Memory.
    #[serde(default)]
    pub memory: Option<f64>,
    /// Block I/O.
    #[serde(default)]
    pub blkio: Option<f64>,
    /// Network I/O.
    #[serde(default)]
    pub net: Option<f64>,
}

/// A job's CPU limit, as fractions of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// The policy's last choice; 1 at first.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// The cap in force.
    #[serde(default)]
    pub applied: Option<f64>,
    /// The job's minimum.
    #[serde(default)]
    pub min: Option<f64>,
    /// The job's maximum.
    #[serde(default)]
    pub max: Option<f64>,
    /// The allowed slowdown compared with an equal share, where the owner sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_slowdown: Option<f64>,
    /// Whether the limit is kept because the job no longer reports.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub held: bool,
}

impl Limit {
    /// The policy's last choice; `None` when the frame has no usable value.
    pub fn chosen(&self) -> Option<Share> {
        self.cpu.filter(|share| *share > 0.0).map(Share::nearest)
    }
}

/// The targets that a job reports as reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reached {
    /// The acceptable loss.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub acceptable: bool,
    /// The objective.
    #[serde(default, deserialize_with = "or_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub objective: bool,
}

/// An invalid frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Not the JSON of a frame.
    #[error("invalid frame, column {column}: {problem}")]
    Json {
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Two nodes have one name.
    #[error("invalid frame: node {0:?} is listed twice")]
    NodeTwice(String),
    /// A value that no run can have.
    #[error("invalid {field} \"{value}\" of {owner}: expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
        /// The node or the job.
        owner: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// Two jobs have one id.
    #[error("invalid frame: job {0:?} is listed twice")]
    Twice(String),
    /// The time is before the previous frame's.
    #[error("invalid frame: t {t} is before t {last} of the previous frame")]
    Backwards {
        /// The frame's time.
        t: f64,
        /// The previous frame's time.
        last: f64,
    },
    /// Two tasks have one id.
    #[error("invalid frame: task {0:?} is listed twice")]
    TaskTwice(String),
    /// A distributed job has more tasks than the maximum.
    #[error("invalid {field} \"{count}\" of job {job:?}: expected at most {MAX_TASKS}")]
    TooMany {
        /// The job.
        job: String,
        /// The field with the number of tasks.
        field: &'static str,
        /// The number.
        count: u64,
    },
}

impl From<serde_json::Error> for FrameError {
    fn from(error: serde_json::Error) -> Self {
        let (text, column) = (error.to_string(), error.column());
        // A frame is one line, whose number in its file the reader knows.
        let place = format!(" at line {} column {column}", error.line());
        let problem = in_plain_words(text.strip_suffix(&place).unwrap_or(&text));
        Self::Json { column, problem }
    }
}

impl Frame {
    /// Reads one line of a recorded run.
    pub fn parse(line: &str) -> Result<Self, FrameError> {
        let frame: Self = serde_json::from_str(line)?;
        check::check(&frame)?;
        Ok(frame)
    }
}

/// Reads `null` as the default, as if the field were missing.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_optional_field_is_null() {
        let sparse = Frame::parse(r#"{"t": 1, "jobs": [{"id": "vae", "later": [1]}]}"#).unwrap();
        let full = Frame::parse(
            r#"{"t": 1, "nodes": null, "jobs": [{"id": "vae", "usage": null, "limit": null,
                "direction": null, "reached": null, "targets": null, "loss": null}]}"#,
        )
        .unwrap();
        assert_eq!(sparse, full);
    }

    #[test]
    fn job_without_progress_writes_no_field_of_it() {
        let written = serde_json::to_string(&Job::new(JobId::new("vae").unwrap())).unwrap();
        for field in ["cpu_seconds", "step", "total_steps", "expected_steps", "steps_to_"] {
            assert!(!written.contains(field), "{field}: {written}");
        }
    }

    #[test]
    fn job_with_progress_reads_back_as_written() {
        let line = r#"{"t": 1, "jobs": [{"id": "vae", "cpu_seconds": 12.5, "step": 40, "step_cpu_seconds": 12.1,
            "total_steps": 900, "expected_steps": 600, "steps_to_acceptable": 71.5,
            "steps_to_objective": 102}]}"#;
        let frame = Frame::parse(line).unwrap();
        let job = &frame.jobs[0];
        assert_eq!((job.cpu_seconds, job.step), (Some(12.5), Some(40)));
        assert_eq!(job.step_cpu_seconds, Some(12.1));
        assert_eq!((job.total_steps, job.expected_steps), (Some(900), Some(600)));
        assert_eq!((job.steps_to_acceptable, job.steps_to_objective), (Some(71.5), Some(102.0)));
        let written = serde_json::to_string(&frame).unwrap();
        assert_eq!(Frame::parse(&written).unwrap(), frame);
    }

    #[test]
    fn invalid_frame_is_refused() {
        for line in [
            r#"{"jobs": []}"#,
            r#"{"t": "1"}"#,
            r#"{"t": 1, "jobs": [{}]}"#,
            r#"{"t": 1, "jobs": [{"id": ""}]}"#,
            r#"{"t": 1, "jobs": [{"id": "a"}, {"id": "a"}]}"#,
            r#"{"t": 1, "jobs": [{"id": "a", "direction": "up"}]}"#,
            r#"{"t": 1, "jobs": [{"id": "a", "loss": "0.3"}]}"#,
        ] {
            assert!(Frame::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn value_that_no_run_can_have_is_refused_with_its_field() {
        let node = |fields: &str| format!(r#"{{"t": 1, "nodes": [{{"name": "n", {fields}}}]}}"#);
        let job = |fields: &str| format!(r#"{{"t": 1, "jobs": [{{"id": "a", {fields}}}]}}"#);
        for (line, said) in [
            (node(r#""cpus": -4"#), "invalid cpus \"-4\" of node \"n\": expected a number above 0"),
            (node(r#""cpus": 0"#), "invalid cpus \"0\""),
            (node(r#""memory": -1"#), "invalid memory \"-1\""),
            (
                job(r#""limit": {"cpu": 7}"#),
                "invalid limit.cpu \"7\" of job \"a\": expected a number",
            ),
            (job(r#""limit": {"applied": 0}"#), "above 0 and at most 1"),
            (job(r#""limit": {"min": 3}"#), "invalid limit.min \"3\""),
            (job(r#""limit": {"max": -1}"#), "invalid limit.max \"-1\""),
            (
                job(r#""weight": -5"#),
                "invalid weight \"-5\" of job \"a\": expected a number above 0",
            ),
            (job(r#""throttled": 9"#), "expected a number from 0 to 1"),
            (job(r#""cpu_seconds": -0.1"#), "expected a number of at least 0"),
            (
                r#"{"t": 1, "nodes": [{"name": "n"}, {"name": "n"}]}"#.to_owned(),
                "node \"n\" is listed twice",
            ),
        ] {
            let error = Frame::parse(&line).unwrap_err().to_string();
            assert!(error.contains(said), "{line}: {error}");
        }
        // A job of a closed node, which a manager's frame leaves out.
        Frame::parse(r#"{"t": 1, "nodes": [{"name": "n"}], "jobs": [{"id": "a", "node": "m"}]}"#)
            .unwrap();
    }

    #[test]
    fn wrong_type_is_reported_in_plain_words_with_its_column() {
        let error = Frame::parse(r#"{"t": "1"}"#).unwrap_err().to_string();
        let said = "invalid frame, column 9: invalid type: string \"1\", expected a number";
        assert_eq!(error, said);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(line in ".*") {
            drop(Frame::parse(&line));
        }
    }
}
