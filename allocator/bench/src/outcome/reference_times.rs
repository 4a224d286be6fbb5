//! The reference times and losses that all runs of a bench are compared with.

use std::collections::BTreeMap;

use super::super::record::{JobRun, Recorded};
use super::About;
use super::observed::Observed;
use super::trajectory::{mean, samples_of};

/// A job's final loss is the mean over the last 1/20 of its samples, since the last losses vary.
const FINAL_PART: usize = 20;
/// Stops are timed by one clock and recorded by another: a stop may seem this many seconds early.
const CLOCK_TOLERANCE: f64 = 0.1;

/// References for each job, in the schedule's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReferenceTimes {
    /// Seconds that each job takes alone on the machine, including its container's start.
    pub(crate) isolated: Vec<Option<f64>>,
    /// Seconds that each job takes if all running jobs get equal shares, by repeat.
    pub(crate) equal_share: BTreeMap<u32, Vec<Option<f64>>>,
    /// Each job's first and final loss: the means over all runs, so that runs can be compared.
    pub(crate) loss_range: Vec<Option<(f64, f64)>>,
    /// Seconds after which running jobs were stopped.
    pub(crate) until: Option<f64>,
}

impl ReferenceTimes {
    /// References without a fitted model: a job's time alone is its work.
    pub(crate) fn from_runs(about: &About, observed: &[Observed<'_>]) -> Self {
        let jobs = || about.jobs.iter();
        Self {
            isolated: jobs().map(|facts| facts.job.work).collect(),
            equal_share: BTreeMap::new(),
            loss_range: jobs().map(|facts| loss_range(&facts.job.name, observed)).collect(),
            until: about.until,
        }
    }

    /// The time of the job at `place` with equal shares in a repeat.
    pub(crate) fn equal_share_of(&self, repeat: u32, place: usize) -> Option<f64> {
        self.equal_share.get(&repeat)?.get(place).copied()?
    }

    /// Whether a job was stopped because its time was up. When it would have ended is unknown.
    pub(crate) fn is_stopped(&self, job: &JobRun) -> bool {
        self.until.is_some_and(|until| job.ended >= until - CLOCK_TOLERANCE)
    }
}

fn loss_range(job: &str, observed: &[Observed<'_>]) -> Option<(f64, f64)> {
    let ends = |recorded: &Recorded| {
        let losses: Vec<f64> = samples_of(job, recorded).filter_map(|(_, its)| its.loss).collect();
        let last = losses.len().saturating_sub((losses.len() / FINAL_PART).max(1));
        Some((*losses.first()?, mean(losses.get(last..)?)?))
    };
    let ends: Vec<(f64, f64)> =
        observed.iter().filter_map(|observed| ends(observed.recorded)).collect();
    let (first, last): (Vec<f64>, Vec<f64>) = ends.into_iter().unzip();
    let (start, end) = (mean(&first)?, mean(&last)?);
    let changes = (start - end).abs() > 1e-9 * start.abs().max(end.abs());
    (changes && start.is_finite() && end.is_finite()).then_some((start, end))
}
