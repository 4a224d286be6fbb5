//! What batches take: their work, what they take on top, what limits cost, what neighbours do.
//!
//! The mean duration of a job's batches between two frames, beside the share of the node that the
//! job used, is one point. All jobs are fitted at once: for each value of a contention that is common
//! to them, each job's own parameters follow from its points, and the value with the least squares of
//! all jobs is taken. A job that feels its neighbours more or less than that has its own. Noise can be
//! explained by any parameter: those beside the work of a batch, a contention of its own among them, are
//! fitted only where Schwarz's criterion says that they are worth it.

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
    /// That of all jobs but those that have their own.
    pub(super) contention: Fitted<f64>,
    /// Those of jobs that have their own.
    own: BTreeMap<JobId, f64>,
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
        let Model { contention, own, free, .. } = best(&jobs);
        let batch = |(id, job): (&JobId, &Timings)| {
            let contention = own.get(id).copied().or(contention);
            (id.clone(), job.batch(contention.unwrap_or(0.0), free))
        };
        Self {
            contention: contention.ok_or(Why::NoNeighbours),
            batches: jobs.iter().map(batch).collect(),
            own,
            cpus,
        }
    }

    /// What is known of a job's batches.
    pub(super) fn batch(&self, id: &JobId) -> Fitted<Batch> {
        let none = Why::TooFewFrames { of: "its batches", have: 0, need: LEAST_POINTS };
        self.batches.get(id).copied().unwrap_or(Err(none))
    }

    /// The job's contention, if that is its own.
    pub(super) fn own(&self, id: &JobId) -> Option<f64> {
        self.own.get(id).copied()
    }

    /// The work per second of a job that uses this part of the node, beside neighbours that count for so
    /// much.
    pub(super) fn rate(&self, id: &JobId, part: &Part, neighbours: f64) -> f64 {
        let (bend, speed) = self.batch(id).map_or((0.0, 1.0), |batch| {
            let lost = |throttling: Throttling| {
                throttling.cost * held_back(part.cap, self.cpus, throttling.threads)
            };
            let lost = batch.throttling.map_or(0.0, lost);
            (batch.fixed.unwrap_or(0.0) / batch.work, 1.0 - lost)
        });
        let (cap, contention) = (part.cap.get(), self.own(id).or(self.contention.ok()));
        let party = Party { weight: 1.0, cap, limited: false, speed, bend, batch: 1.0, contention };
        party.rate(part.share) / (1.0 + contention.unwrap_or(0.0) * neighbours)
    }
}

/// What durations are explained by.
#[derive(Debug, Default)]
struct Model {
    /// That of all jobs but those that have their own; `None` if none tells of it.
    contention: Option<f64>,
    own: BTreeMap<JobId, f64>,
    free: Free,
    /// Schwarz's criterion.
    criterion: f64,
}

/// The parameters that are worth it.
fn best(jobs: &BTreeMap<JobId, Timings>) -> Model {
    let free = |(fixed, cost): (bool, bool)| Free { fixed, cost };
    let models = [(false, false), (false, true), (true, false), (true, true)].map(free);
    let models = models.map(|free| model(jobs, free));
    models.into_iter().min_by(|a, b| a.criterion.total_cmp(&b.criterion)).unwrap_or_default()
}

/// The least squares of all jobs, as far as they tell.
fn model(jobs: &BTreeMap<JobId, Timings>, free: Free) -> Model {
    let all = || jobs.iter().filter(|(_, job)| job.is_enough());
    let common = |own: &BTreeMap<JobId, f64>| {
        let rest: Vec<&Timings> =
            all().filter(|(id, _)| !own.contains_key(*id)).map(|(_, job)| job).collect();
        let squares = |contention: f64| {
            rest.iter().map(|job| job.estimate(contention, free).squares).sum::<f64>()
        };
        let told = rest.iter().any(|job| job.tells_contention);
        told.then(|| least_point(0.0, MOST_CONTENTION, squares).0)
    };
    let of_all = common(&BTreeMap::new());
    let or_none = |contention: Option<f64>| contention.unwrap_or(0.0);
    let own: BTreeMap<JobId, f64> = all()
        .filter_map(|(id, job)| Some((id.clone(), own(job, or_none(of_all), free)?)))
        .collect();
    let contention = common(&own).or(of_all);
    let least = |(id, job): (&JobId, &Timings)| {
        job.estimate(or_none(own.get(id).copied().or(contention)), free).squares
    };
    let (squares, seconds) = (all().map(least).sum::<f64>(), all().map(|(_, job)| job.seconds()));
    let parameters = own.len() + all().map(|(_, job)| job.parameters(free)).sum::<usize>();
    let points = all().map(|(_, job)| job.points.len()).sum();
    let criterion = criterion(squares / seconds.sum::<f64>(), points, parameters);
    Model { contention, own, free, criterion }
}

/// A job's own contention, where that is worth a parameter beside that of all jobs.
fn own(job: &Timings, common: f64, free: Free) -> Option<f64> {
    if !job.tells_contention {
        return None;
    }
    let squares = |contention: f64| job.estimate(contention, free).squares;
    let (own, least) = least_point(0.0, MOST_CONTENTION, squares);
    let worth = |squares: f64, more: usize| {
        criterion(squares / job.seconds(), job.points.len(), job.parameters(free) + more)
    };
    (worth(least, 1) < worth(squares(common), 0)).then_some(own)
}
