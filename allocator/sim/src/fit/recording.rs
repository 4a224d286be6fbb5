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

/// A text that is no recording of a run.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A line that is no frame, or one that cannot come where it does.
    #[error("line {line}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: FrameError,
    },
    /// A line of another file that a run leaves.
    #[error(
        "line {line}: this is {form}, and a frame is needed, as `paceline run --record` writes"
    )]
    OtherForm {
        /// The line, from 1.
        line: usize,
        /// What it is.
        form: &'static str,
    },
    /// No line with a frame.
    #[error("there is no frame in it")]
    Empty,
    /// No frame has a job.
    #[error("no frame in it has a job")]
    NoJob,
}

impl Recording {
    /// Reads a text of one frame a line; empty lines are skipped.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut frames: Vec<Frame> = Vec::new();
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

    /// What it tells of one of its nodes: all, if it has no other; `None` if it tells of others alone.
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

    /// What it tells of the job `from` alone, as if that were `to`; `None` if it tells nothing of it.
    #[must_use]
    pub fn told_of(&self, from: &str, to: &str) -> Option<Self> {
        let to = JobId::new(to).ok()?;
        let mut frames = self.frames.clone();
        for frame in &mut frames {
            frame.jobs.retain(|job| job.id.as_str() == from);
            frame.jobs.iter_mut().for_each(|job| job.id = to.clone());
        }
        frames.iter().any(|frame| !frame.jobs.is_empty()).then_some(Self { frames })
    }

    /// The same with so many times the durations of each job's batches, and without those of which that is
    /// not known.
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

/// Where a job is: a frame of one node has no other.
fn place<'a>(job: &'a Job, frame: &'a Frame) -> Option<&'a NodeName> {
    match frame.nodes.as_slice() {
        [node] => Some(&node.name),
        _ => job.node.as_ref(),
    }
}

/// What a frame tells of one of its nodes.
fn part(frame: &Frame, node: &str) -> Frame {
    let is_here = |job: &&Job| place(job, frame).is_some_and(|its| its.as_str() == node);
    Frame {
        t: frame.t,
        nodes: frame.nodes.iter().filter(|own| own.name.as_str() == node).cloned().collect(),
        jobs: frame.jobs.iter().filter(is_here).cloned().collect(),
    }
}

/// The members by which lines that a frame's reader would take for frames are told from them:
/// unknown members are no error there, and missing ones are unknown values.
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
