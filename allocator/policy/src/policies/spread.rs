//! `spread`, the baseline of a cluster: a new job goes to the node with the fewest jobs.
//!
//! The default scheduler of Kubernetes does the same when only the number of containers counts.
//! Section VI of the `SpeCon` paper compares with it: the placement is even at first, and a job
//! never moves.

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::{Assignment, Decision, JobDecision};
use crate::frame::Frame;
use crate::params::{ParamError, Parameter, Params, Reader};
use crate::per_job::PerJob;
use crate::policy::Policy;
use crate::reason;
use crate::reason::spread::Why;
use crate::unit::{JobId, Share};

/// The parameters.
pub(super) const PARAMETERS: &[Parameter] =
    &[Parameter::new("interval", 30.0, "s", "time until the next run")];

/// The policy, and the shares that it keeps.
#[derive(Debug)]
pub struct Spread {
    interval: f64,
    kept: PerJob<Share>,
}

impl Spread {
    /// Its name.
    pub const NAME: &'static str = "spread";

    /// Checks the parameters: `interval`, in seconds (30, as `SpeCon`'s).
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        let params = Reader::new(Self::NAME, PARAMETERS, params)?;
        let interval = params.positive("interval")?;
        Ok(Self { interval, kept: PerJob::new() })
    }

    /// Every job's share, which stays as it is.
    fn keep(&mut self, frame: &Frame) -> PerJob<Share> {
        let share = |id| self.kept.get(id).copied().unwrap_or(Share::ALL);
        let kept = frame.jobs.iter().map(|job| {
            let share = job.limit.chosen().unwrap_or_else(|| share(&job.id));
            (job.id.clone(), share)
        });
        self.kept = kept.collect();
        self.kept.clone()
    }
}

impl Policy for Spread {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([("interval", self.interval)])
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let mut held: BTreeMap<&str, usize> =
            frame.nodes.iter().map(|node| (node.name.as_str(), 0)).collect();
        for node in frame.jobs.iter().filter_map(|job| job.node.as_deref()) {
            if let Some(jobs) = held.get_mut(node) {
                *jobs += 1;
            }
        }
        let mut by_jobs: BTreeSet<(usize, &str)> =
            held.into_iter().map(|(name, jobs)| (jobs, name)).collect();

        let in_order: BTreeMap<&JobId, Option<&str>> =
            frame.jobs.iter().map(|job| (&job.id, job.node.as_deref())).collect();
        let mut place = Vec::new();
        let mut jobs = PerJob::new();
        for (id, node) in in_order {
            let why = if node.is_some() {
                Why::Stays
            } else if let Some((held, name)) = by_jobs.pop_first() {
                by_jobs.insert((held.saturating_add(1), name));
                place.push(Assignment { job: id.clone(), node: name.to_owned() });
                Why::Placed { node: name.to_owned(), held }
            } else {
                Why::NoNode
            };
            let why = reason::Why::Spread(why);
            jobs.insert(id.clone(), JobDecision::new("-", None, why));
        }
        Decision {
            place,
            ..Decision::new(frame.t, Self::NAME, self.interval, self.keep(frame), jobs)
        }
    }
}

#[cfg(test)]
mod tests;
