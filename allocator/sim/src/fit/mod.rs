//! Calibration: fits a scenario to recorded runs.
//!
//! Each of several nodes is fitted by itself (`one_node.rs`), since jobs stay on their nodes in
//! recordings.
//!
//! The first recording gives the jobs and their arrivals. All recordings (the same jobs alone, or
//! under limits) together give what batches take. The fitted model is that of the simulator:
//!
//! - a job's *work* is its CPU time, in seconds of the whole node, less what neighbours and limits
//!   cost it. For a job that declares its remaining work it is the mean over all recordings
//!   (`declared.rs`). Frames have the mean use between them, so only the time after a job's last
//!   frame is estimated: there it used what no other job used;
//! - the most that it can use (`parallel`) is its use while there was room for more, from its first
//!   report on;
//! - its weight on an oversubscribed node (`crowded`) follows from its share there;
//! - batch durations, the cost of limits and the contention: `speed.rs`;
//! - how its loss falls: `learning.rs`. For a job in too few frames of the first recording, the
//!   others are used, too. Deviations from the curve that all recordings share: `residuals.rs`;
//! - what the machine itself uses, and no job gets, is the node's `background`.
//!
//! Frames do not show work done before the job's endpoint first answered. A fitted job arrives with
//! its first frame, and with the losses that it had reported by then (the field `told`).
//!
//! A recording becomes windows between frames, in each of which every job's share is known. More
//! rules of the fit:
//!
//! - What a job uses until its first report does not show how much it can use.
//! - Contention is fitted to all jobs at once; a job that its neighbours slow down more or less than
//!   that gets its own. It depends on how likely another job had the CPUs before. A job that hardly runs
//!   hardly slows others, and a third job adds little to the second.
//! - Windows in which a job starts that is in no frame are ignored for durations.
//! - The time at which a target was reached is read, not fitted, because a job goes by its last
//!   reports. So is what it had reported before it was first seen; without that, a policy would
//!   judge it one frame late.
//! - A parameter is kept only where Schwarz's criterion supports it. What frames do not show is an
//!   error with its reason, not a default.
//! - Runs of a job that declares its work are aligned by the work left. CPU time does not show
//!   progress on a machine whose speed varies.
//! - A difference from the curve that all runs share is not noise (`residuals`): a seeded job has
//!   the same losses each time.
//! - The noise of batches is kept (`noise` of `batch`): only it shows which CPU a job gets in turns
//!   with others.
//!
//! A recording in which a job changes its node is refused. `Accuracy` compares a simulation with a
//! recording.

mod against;
mod batch;
mod declared;
mod learning;
mod lifetime;
mod model;
mod numeric;
mod one_node;
mod oversubscribed;
mod parallel;
mod recording;
mod residuals;
mod speed;
mod trajectory;
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

/// Works with a smaller relative difference are equal.
const ROUNDING: f64 = 1e-9;

/// Why no scenario can be fitted to recordings.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// No frame has the number of a node's CPUs.
    #[error("no frame says how many CPUs the node has; nodes[].cpus must be a number above 0")]
    NoCpus,
    /// A job was moved between nodes: frames do not show what the move itself cost it.
    #[error(
        "cannot fit {job}: it was moved from {from:?} to {to:?}; use a run in which jobs stay on \
         their nodes, for example under `none`"
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
    /// No job has a known CPU use.
    #[error(
        "no job is in two frames with its CPU use (usage.cpu) in the second: record with a shorter \
         interval, or for longer"
    )]
    NoUse,
}

/// Fits the nodes and the jobs of `first`, using `others` as further runs of the same jobs.
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
