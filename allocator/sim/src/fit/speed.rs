//! What batches take: their work, what they take on top, what limits cost, what neighbours do.
//!
//! The mean duration of a job's batches between two frames, beside the share of the node that the
//! job used, is one point. The node's contention is common to all jobs, so all are fitted at once:
//! for each value of it, each job's own parameters follow from its points, and the value with the
//! least squares of all jobs is taken. Noise can be explained by any parameter: those beside the
//! work of a batch are fitted only where Schwarz's criterion says that they are worth it.

use std::collections::BTreeMap;

use paceline_policy::JobId;

use super::batch::{Free, LEAST_POINTS, Point, Timings, point};
use super::model::{Batch, Fitted, Throttling, Why};
use super::numeric::{criterion, least_point};
use super::window::{Part, Window};
use crate::fluid::Party;
use crate::scenario::{held_back, threads_for};

/// Jobs that slow each other down more than this are beyond the model.
const MOST_CONTENTION: f64 = 4.0;

/// What the windows of all recordings tell of the node and of each job.
#[derive(Debug)]
pub(super) struct Speeds {
    pub(super) contention: Fitted<f64>,
    batches: BTreeMap<JobId, Fitted<Batch>>,
    cpus: f64,
}

impl Speeds {
    /// Fits all jobs at once; `parallel` is the largest share that a job can use.
    pub(super) fn of(windows: &[Window<'_>], cpus: f64, parallel: impl Fn(&JobId) -> f64) -> Self {
        let mut points: BTreeMap<&JobId, Vec<Point>> = BTreeMap::new();
        for window in windows {
            for (id, part) in &window.jobs {
                points.entry(id).or_default().extend(point(window, part));
            }
        }
        let timings = |(id, points): (&JobId, Vec<Point>)| {
            let threads = threads_for(parallel(id), cpus);
            (id.clone(), Timings::new(points, cpus, threads))
        };
        let jobs: BTreeMap<JobId, Timings> = points.into_iter().map(timings).collect();
        let told = jobs.values().any(|job| job.is_enough() && job.tells_contention);
        let (contention, free) = best(&jobs, told);
        let batches = jobs.iter().map(|(id, job)| (id.clone(), job.batch(contention, free)));
        Self {
            contention: if told { Ok(contention) } else { Err(Why::NoNeighbours) },
            batches: batches.collect(),
            cpus,
        }
    }

    /// What is known of a job's batches.
    pub(super) fn batch(&self, id: &JobId) -> Fitted<Batch> {
        let none = Why::TooFewFrames { of: "its batches", have: 0, need: LEAST_POINTS };
        self.batches.get(id).copied().unwrap_or(Err(none))
    }

    /// The work per second of a job that uses this part of the node, with so many others in the way.
    pub(super) fn rate(&self, id: &JobId, part: &Part, others: f64) -> f64 {
        let (bend, speed) = self.batch(id).map_or((0.0, 1.0), |batch| {
            let lost = |throttling: Throttling| {
                throttling.cost * held_back(part.cap, self.cpus, throttling.threads)
            };
            let lost = batch.throttling.map_or(0.0, lost);
            (batch.fixed.unwrap_or(0.0) / batch.work, 1.0 - lost)
        });
        let party =
            Party { weight: 1.0, cap: part.cap.get(), limited: false, speed, bend, batch: 1.0 };
        party.rate(part.share) / (1.0 + self.contention.unwrap_or(0.0) * others)
    }
}

/// The contention, and the parameters that are worth it.
fn best(jobs: &BTreeMap<JobId, Timings>, told: bool) -> (f64, Free) {
    let all = || jobs.values().filter(|job| job.is_enough());
    let number: usize = all().map(|job| job.points.len()).sum();
    let seconds: f64 = all().flat_map(|job| &job.points).map(|point| point.seconds).sum();
    let fitted = |(fixed, cost): (bool, bool)| {
        let free = Free { fixed, cost };
        let squares =
            |contention: f64| all().map(|job| job.estimate(contention, free).squares).sum::<f64>();
        let (contention, squares) =
            if told { least_point(0.0, MOST_CONTENTION, squares) } else { (0.0, squares(0.0)) };
        let parameters = all().map(|job| job.parameters(free)).sum();
        (criterion(squares / seconds, number, parameters), contention, free)
    };
    let models = [(false, false), (false, true), (true, false), (true, true)].map(fitted);
    let best = models.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or((0.0, Free { fixed: false, cost: false }), |(_, contention, free)| {
        (contention, free)
    })
}
