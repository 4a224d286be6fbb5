//! A recorded run: frames in the order of time.

use std::collections::BTreeMap;

use paceline_policy::frame::{FrameError, Job};
use paceline_policy::{Frame, JobId, NodeName};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The frames of a run, as `paceline run --record` and `paceline simulate --record` write them.
///
/// There is at least one frame with a job, and time never goes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    pub(super) frames: Vec<Frame>,
}

/// Why a text is not a recording of a run.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A line is not a valid frame, or its time is before that of the frame above.
    #[error("line {line}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: FrameError,
    },
    /// A line of another file that a run writes.
    #[error("line {line}: expected a frame, as `paceline run --record` writes, found {form}")]
    OtherForm {
        /// The line, from 1.
        line: usize,
        /// What it is.
        form: &'static str,
    },
    /// No line with a frame.
    #[error("it has no frames")]
    Empty,
    /// No frame has a job.
    #[error("none of its frames has a job")]
    NoJob,
}

impl Recording {
    /// Reads a text of one frame a line; empty lines are skipped.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut frames: Vec<Frame> = Vec::new();
        // Some editors begin a file with the mark of byte order.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, text) in (1..).zip(text.lines()) {
            if text.trim().is_empty() {
                continue;
            }
            let of_line = |source| RecordingError::Line { line, source };
            if let Some(form) = other_form(text) {
                return Err(RecordingError::OtherForm { line, form });
            }
            let frame = Frame::parse(text).map_err(of_line)?;
            if let Some(last) = frames.last().map(|last| last.t).filter(|last| frame.t < *last) {
                return Err(of_line(FrameError::Backwards { t: frame.t, last }));
            }
            frames.push(frame);
        }
        if frames.is_empty() {
            return Err(RecordingError::Empty);
        }
        if frames.iter().all(|frame| frame.jobs.is_empty()) {
            return Err(RecordingError::NoJob);
        }
        Ok(Self { frames })
    }

    /// Its nodes, in the order in which they come.
    pub fn nodes(&self) -> Vec<&NodeName> {
        let mut found = Vec::new();
        for node in self.frames.iter().flat_map(|frame| &frame.nodes) {
            if !found.contains(&&node.name) {
                found.push(&node.name);
            }
        }
        found
    }

    /// The recording of one of its nodes: all of it, if it has no other node; `None` if it has
    /// other nodes only.
    #[must_use]
    pub fn on(&self, node: &str) -> Option<Self> {
        let nodes = self.nodes();
        if nodes.len() < 2 {
            return Some(self.clone());
        }
        nodes.iter().any(|own| own.as_str() == node).then(|| {
            let has = |frame: &&Frame| frame.nodes.iter().any(|own| own.name.as_str() == node);
            let frames = self.frames.iter().filter(has);
            Self { frames: frames.map(|frame| part(frame, node)).collect() }
        })
    }

    /// A job that was on one node and then on another.
    pub(super) fn moved(&self) -> Option<(&JobId, &NodeName, &NodeName)> {
        let mut nodes: BTreeMap<&JobId, &NodeName> = BTreeMap::new();
        for frame in &self.frames {
            for job in &frame.jobs {
                let Some(node) = place(job, frame) else { continue };
                let before = nodes.insert(&job.id, node).filter(|before| *before != node);
                if let Some(before) = before {
                    return Some((&job.id, before, node));
                }
            }
        }
        None
    }

    /// The recording of the job `from` alone, under the name `to`; `None` if that job is not in it.
    #[must_use]
    pub fn with_job_named(&self, from: &str, to: &str) -> Option<Self> {
        let to = JobId::new(to).ok()?;
        let mut frames = self.frames.clone();
        for frame in &mut frames {
            frame.jobs.retain(|job| job.id.as_str() == from);
            frame.jobs.iter_mut().for_each(|job| job.id = to.clone());
        }
        frames.iter().any(|frame| !frame.jobs.is_empty()).then_some(Self { frames })
    }

    /// The recording with each job's batch durations multiplied by `longer`, and without the
    /// durations of jobs for which that is `None`.
    #[must_use]
    pub fn with_durations(&self, longer: impl Fn(&JobId) -> Option<f64>) -> Self {
        let mut frames = self.frames.clone();
        for job in frames.iter_mut().flat_map(|frame| &mut frame.jobs) {
            job.batch_latency =
                job.batch_latency.zip(longer(&job.id)).map(|(took, longer)| took * longer);
        }
        Self { frames }
    }

    /// Its frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }
}

/// The node of a job. In a frame of one node it is that node.
fn place<'a>(job: &'a Job, frame: &'a Frame) -> Option<&'a NodeName> {
    match frame.nodes.as_slice() {
        [node] => Some(&node.name),
        _ => job.node.as_ref(),
    }
}

/// The part of a frame that concerns one node.
fn part(frame: &Frame, node: &str) -> Frame {
    let is_here = |job: &&Job| place(job, frame).is_some_and(|its| its.as_str() == node);
    Frame {
        t: frame.t,
        nodes: frame.nodes.iter().filter(|own| own.name.as_str() == node).cloned().collect(),
        jobs: frame.jobs.iter().filter(is_here).cloned().collect(),
    }
}

/// Fields that identify lines of other files. The frame parser accepts such lines, because it
/// ignores unknown fields and treats missing ones as unknown values.
#[derive(Deserialize)]
struct Form {
    unix: Option<IgnoredAny>,
    policy: Option<IgnoredAny>,
    tasks: Option<IgnoredAny>,
}

fn other_form(text: &str) -> Option<&'static str> {
    let form: Form = serde_json::from_str(text).ok()?;
    [
        (form.unix.is_some(), "a line of `paceline run --samples`"),
        (form.policy.is_some(), "a decision, as `paceline replay` prints it"),
        (form.tasks.is_some(), "a frame of distributed jobs"),
    ]
    .into_iter()
    .find_map(|(is, form)| is.then_some(form))
}
