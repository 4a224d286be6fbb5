//! The outcome of a run.

use paceline_wire::Targets;
use serde::Serialize;

use crate::scenario::Job;

/// One job's outcome. Moments are seconds since the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobOutcome {
    /// Its name.
    pub id: String,
    /// When it arrived.
    pub arrived: f64,
    /// When it began to run.
    pub started: Option<f64>,
    /// When it was done, or was ended at its objective.
    pub finished: Option<f64>,
    /// When its loss was acceptable.
    pub acceptable: Option<f64>,
    /// When it had reached its objective.
    pub objective: Option<f64>,
    /// Whether it was ended there.
    pub ended: bool,
    /// The area under its loss: seconds, weighted by the remaining part of the fall.
    pub loss_area: f64,
    /// How long it takes if no other job runs, in seconds; `None` if it never ends.
    pub alone: Option<f64>,
    /// How long it takes if the jobs present share all nodes equally, in seconds. Known only where
    /// policies are compared, and not for gangs.
    pub equal: Option<f64>,
    /// How often it was moved.
    pub moves: u64,
    /// How often it failed: by itself, or with its node.
    pub failures: u64,
    /// The work that it lost by failures, as seconds of a whole node; `None` if nothing can fail.
    pub lost_work: Option<f64>,
    /// Its targets.
    pub targets: Targets,
    /// The duration of its batches at its last share, in seconds.
    pub batch_latency: Option<f64>,
    /// How many of its workers were taken from it while it ran.
    pub preemptions: u64,
    /// How often its limit or weight was written.
    pub writes: u64,
}

impl JobOutcome {
    pub(crate) fn new(job: &Job) -> Self {
        Self {
            id: job.id.to_string(),
            arrived: job.arrive,
            alone: job.work.is_finite().then(|| job.alone()),
            targets: job.targets,
            ..Self::default()
        }
    }

    /// From its arrival to its end.
    pub fn completion(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.arrived)
    }

    /// Its completion time over its time alone.
    pub fn slowdown(&self) -> Option<f64> {
        Some(self.completion()? / self.alone?)
    }

    /// Its finish-time fairness ρ: its completion time over that with equal shares.
    pub fn fairness(&self) -> Option<f64> {
        Some(self.completion()? / self.equal?)
    }
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Each job, in the order of the scenario.
    pub jobs: Vec<JobOutcome>,
    /// When the last event happened.
    pub until: f64,
    /// CPU time in use over the available CPU time, from start to end; `None` for a measured run
    /// without this figure.
    pub utilisation: Option<f64>,
    /// CPU time that was idle while a job was throttled by its limit, over the available CPU time;
    /// `None` as above.
    pub stranded: Option<f64>,
    /// Arrivals, ends, runs of a policy and changes of limits.
    pub events: u64,
    /// Runs of a policy.
    pub decisions: u64,
}

impl Outcome {
    /// How many jobs were unfinished when it ended.
    pub fn unfinished(&self) -> usize {
        self.jobs.iter().filter(|job| job.finished.is_none()).count()
    }

    /// Whether it ended before a job that has an end. Jobs that never end do not count.
    pub fn cuts_off_jobs(&self) -> bool {
        self.jobs.iter().any(|job| job.finished.is_none() && job.alone.is_some())
    }
}

/// One decision of a policy as two lines: its frame and its decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The frame, as `paceline replay` reads it.
    pub frame: String,
    /// The decision, as `paceline replay` prints it.
    pub decision: String,
}
