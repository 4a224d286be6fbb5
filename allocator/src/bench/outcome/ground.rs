//! What the runs of a bench are measured by: the same for all of them.

use std::collections::BTreeMap;

use super::super::record::{JobRun, Recorded};
use super::About;
use super::course::{mean, samples_of};
use super::observed::Observed;

/// A job's last losses vary: the mean of this part of its samples is what it came to.
const LAST: usize = 20;
/// A stop is due by one clock and noted by another: by so many seconds it may seem early.
const CLOCKS: f64 = 0.1;

/// Of each job, in the schedule's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ground {
    /// Seconds that it takes with the machine for itself, its container's start among them.
    pub(crate) alone: Vec<Option<f64>>,
    /// The same by equal shares among those that are there, in each repeat.
    pub(crate) equal: BTreeMap<u32, Vec<Option<f64>>>,
    /// From what to what its loss goes: the means over all runs, so that runs can be compared.
    pub(crate) falls: Vec<Option<(f64, f64)>>,
    /// Seconds after which jobs that still ran were stopped.
    pub(crate) until: Option<f64>,
}

impl Ground {
    /// From what was observed alone: each job's work is what it takes alone.
    pub(crate) fn of(about: &About, observed: &[Observed<'_>]) -> Self {
        let jobs = || about.jobs.iter();
        Self {
            alone: jobs().map(|facts| facts.job.work).collect(),
            equal: BTreeMap::new(),
            falls: jobs().map(|facts| fall(&facts.job.name, observed)).collect(),
            until: about.until,
        }
    }

    /// What the job at `place` takes by equal shares in a repeat.
    pub(crate) fn equal_of(&self, repeat: u32, place: usize) -> Option<f64> {
        self.equal.get(&repeat)?.get(place).copied()?
    }

    /// Whether a job was stopped since its time was up: when it would have ended is not known.
    pub(crate) fn is_stopped(&self, job: &JobRun) -> bool {
        self.until.is_some_and(|until| job.ended >= until - CLOCKS)
    }
}

fn fall(job: &str, observed: &[Observed<'_>]) -> Option<(f64, f64)> {
    let ends = |recorded: &Recorded| {
        let losses: Vec<f64> = samples_of(job, recorded).filter_map(|(_, its)| its.loss).collect();
        let last = losses.len().saturating_sub((losses.len() / LAST).max(1));
        Some((*losses.first()?, mean(losses.get(last..)?)?))
    };
    let ends: Vec<(f64, f64)> =
        observed.iter().filter_map(|observed| ends(observed.recorded)).collect();
    let (first, last): (Vec<f64>, Vec<f64>) = ends.into_iter().unzip();
    let (start, end) = (mean(&first)?, mean(&last)?);
    let falls = (start - end).abs() > 1e-9 * start.abs().max(end.abs());
    (falls && start.is_finite() && end.is_finite()).then_some((start, end))
}
