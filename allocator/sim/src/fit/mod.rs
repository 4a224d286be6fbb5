//! Calibration: from recorded runs to a scenario that is simulated.
//!
//! Of several nodes each is fitted by itself (`one_node.rs`): jobs stay on theirs while they are recorded.
//!
//! The first recording says which jobs there are and when they come; it and all others (the same
//! jobs alone, or under limits) say what batches take. What is fitted is the simulator's own model:
//!
//! - a job's *work* is the CPU time that it took, in seconds of the whole node, less what
//!   neighbours and limits cost it: of a job that says how far it has come, on average over all
//!   recordings (`declared.rs`). Frames have the mean use between them, so nothing is interpolated but the
//!   time after a job's last frame: there it used what the node did and no other job;
//! - the most that it can use (`parallel`) is what it used while there was room for more, from its first
//!   report on: before that it starts;
//! - its weight in a crowd (`crowded`) is told by what it got there beside others;
//! - what a batch takes, what a limit costs and how neighbours slow a job down: `speed.rs`;
//! - how its loss falls: `learning.rs`; of a job that is in too few frames of the first recording, the
//!   others tell that, too. What its reports have beside that in each recording alike: `residuals.rs`;
//! - what the machine itself uses, and no job gets, is the node's `background`.
//!
//! A frame does not say which work was done before the job's endpoint first answered: a fitted job
//! arrives with its first frame, and with the losses that it had reported by then (`told`).

mod against;
mod batch;
mod course;
mod crowd;
mod declared;
mod learning;
mod lifetime;
mod model;
mod numeric;
mod one_node;
mod parallel;
mod recording;
mod residuals;
mod speed;
mod window;
mod write;

use paceline_policy::{JobId, NodeName};

pub use against::{Accuracy, Figure, JobAccuracy, accuracy};
pub use lifetime::{Lifetime, lifetimes};
pub use model::{Batch, Fit, Fitted, JobFit, Learning, Measured, NodeFit, Terms, Throttling, Why};
use one_node::{OneNode, fit_node};
pub use recording::{Recording, RecordingError};
pub use window::{Unseen, unseen};
pub use write::Heading;

/// Works that differ by less, as a part of them, are the same.
const ROUNDING: f64 = 1e-9;

/// Recordings that no scenario can be made of.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// The number of a node's CPUs is in no frame.
    #[error("no frame says how many CPUs the node has (nodes[].cpus, a number above 0)")]
    NoCpus,
    /// A job that was on one node and then on another: no frame tells what the move itself cost it.
    #[error(
        "{job} was moved from {from:?} to {to:?}, and only a run in which jobs \
         stay where they are can be fitted, such as one of `none`"
    )]
    Moved {
        /// The recording, from 1.
        number: usize,
        /// The job.
        job: JobId,
        /// Where it was.
        from: NodeName,
        /// Where it was then.
        to: NodeName,
    },
    /// Nothing is known of any job.
    #[error(
        "no job is in two frames with its CPU use (usage.cpu) in the second: record with a shorter \
         interval, or for longer"
    )]
    NoUse,
}

/// Fits the nodes and the jobs of `first`; `others` tell more about the same jobs.
pub fn fit(first: &Recording, others: &[Recording]) -> Result<Fit, FitError> {
    for (number, recording) in (1..).zip(std::iter::once(first).chain(others)) {
        if let Some((job, from, to)) = recording.moved() {
            let (job, from, to) = (job.clone(), from.clone(), to.clone());
            return Err(FitError::Moved { number, job, from, to });
        }
    }
    let begins = lifetimes(first).first().map_or(0.0, |life| life.arrived);
    let nodes = first.nodes();
    let mut found = Fit { nodes: Vec::new(), jobs: Vec::new(), left_out: Vec::new() };
    for name in &nodes {
        let on = |recording: &Recording| recording.on(name);
        let Some(own) = on(first) else { continue };
        let others: Vec<Recording> = others.iter().filter_map(on).collect();
        let OneNode { node, jobs, left_out } = fit_node(&own, &others, begins)?;
        found.nodes.push(node);
        found.jobs.extend(jobs);
        found.left_out.extend(left_out);
    }
    if found.nodes.is_empty() {
        return Err(FitError::NoCpus);
    }
    if found.jobs.is_empty() {
        return Err(FitError::NoUse);
    }
    found.jobs.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
    Ok(found)
}

#[cfg(test)]
mod tests;
