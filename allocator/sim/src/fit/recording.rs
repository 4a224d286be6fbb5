//! A recorded run: the frames of one node, in the order of time.

use paceline_policy::frame::FrameError;
use paceline_policy::{Frame, JobId};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The frames of a run, as `paceline run --record` and `paceline simulate --record` write them.
///
/// There is at least one frame with a job, no frame is of several nodes, and time never goes back.
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
    /// Frames of more than one node.
    #[error("line {line}: a frame of {nodes} nodes, and only a recording of one can be used")]
    Nodes {
        /// The line, from 1.
        line: usize,
        /// How many nodes there are.
        nodes: usize,
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
            if frame.nodes.len() > 1 {
                return Err(RecordingError::Nodes { line, nodes: frame.nodes.len() });
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
