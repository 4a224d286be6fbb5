//! Batch durations: the work of a batch, its fixed time, the cost of limits, and the contention.
//!
//! One point is the mean duration of a job's batches between two frames, with the share of the node
//! that the job used. All jobs are fitted at once. For each value of a common contention, each
//! job's own parameters follow from its points. The value with the least squares over all jobs is
//! taken. A job that is slowed down more or less than that gets a contention of its own. Any
//! parameter can explain noise. So those besides the work of a batch, a job's own contention
//! included, are fitted only where Schwarz's criterion says that they are worth it.

use std::collections::BTreeMap;

use paceline_policy::JobId;

use super::batch::{Free, MIN_POINTS, Point, Timings, point};
use super::model::{Batch, Fitted, Throttling, Why};
use super::numeric::{criterion, least_point};
use super::window::{Part, Window};
use crate::fluid::Demand;
use crate::scenario::{held_back, threads_for};

/// A larger contention is beyond the model.
const MAX_CONTENTION: f64 = 4.0;

/// The batch models of a node and its jobs, from the windows of all recordings.
#[derive(Debug)]
pub(super) struct Speeds {
    /// The contention of all jobs without one of their own.
    pub(super) contention: Fitted<f64>,
    /// The contention of jobs that have their own.
    own: BTreeMap<JobId, f64>,
    batches: BTreeMap<JobId, Fitted<Batch>>,
    cpus: f64,
}

impl Speeds {
    /// Fits all jobs at once. `parallel` is the largest share that a job can use.
    pub(super) fn fit(windows: &[Window<'_>], cpus: f64, parallel: impl Fn(&JobId) -> f64) -> Self {
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

    /// The fit of a job's batches.
    pub(super) fn batch(&self, id: &JobId) -> Fitted<Batch> {
        let none = Why::TooFewFrames { of: "its batches", have: 0, need: MIN_POINTS };
        self.batches.get(id).copied().unwrap_or(Err(none))
    }

    /// The job's contention, if that is its own.
    pub(super) fn own(&self, id: &JobId) -> Option<f64> {
        self.own.get(id).copied()
    }

    /// The work per second of a job at this share and limit, beside neighbours of this weight.
    pub(super) fn rate(&self, id: &JobId, part: &Part, neighbours: f64) -> f64 {
        let (fixed_per_work, speed) = self.batch(id).map_or((0.0, 1.0), |batch| {
            let lost = |throttling: Throttling| {
                throttling.cost * held_back(part.cap, self.cpus, throttling.threads)
            };
            let lost = batch.throttling.map_or(0.0, lost);
            (batch.fixed.unwrap_or(0.0) / batch.work, 1.0 - lost)
        });
        let (cap, contention) = (part.cap.get(), self.own(id).or(self.contention.ok()));
        let demand = Demand {
            weight: 1.0,
            cap,
            limited: false,
            speed,
            fixed_per_work,
            batch: 1.0,
            contention,
        };
        demand.rate(part.share) / (1.0 + contention.unwrap_or(0.0) * neighbours)
    }
}

/// The parameters that explain durations.
#[derive(Debug, Default)]
struct Model {
    /// The contention of all jobs without one of their own; `None` if no job determines it.
    contention: Option<f64>,
    own: BTreeMap<JobId, f64>,
    free: Free,
    /// Schwarz's criterion.
    criterion: f64,
}

/// The model with the best criterion.
fn best(jobs: &BTreeMap<JobId, Timings>) -> Model {
    let free = |(fixed, cost): (bool, bool)| Free { fixed, cost };
    let models = [(false, false), (false, true), (true, false), (true, true)].map(free);
    let models = models.map(|free| model(jobs, free));
    models.into_iter().min_by(|a, b| a.criterion.total_cmp(&b.criterion)).unwrap_or_default()
}

/// The model of least squares over all jobs with enough points.
fn model(jobs: &BTreeMap<JobId, Timings>, free: Free) -> Model {
    let all = || jobs.iter().filter(|(_, job)| job.is_enough());
    let common = |own: &BTreeMap<JobId, f64>| {
        let rest: Vec<&Timings> =
            all().filter(|(id, _)| !own.contains_key(*id)).map(|(_, job)| job).collect();
        let squares = |contention: f64| {
            rest.iter().map(|job| job.estimate(contention, free).squares).sum::<f64>()
        };
        let known = rest.iter().any(|job| job.shows_contention);
        known.then(|| least_point(0.0, MAX_CONTENTION, squares).0)
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

/// A job's own contention, if it is worth a parameter besides the common one.
fn own(job: &Timings, common: f64, free: Free) -> Option<f64> {
    if !job.shows_contention {
        return None;
    }
    let squares = |contention: f64| job.estimate(contention, free).squares;
    let (own, least) = least_point(0.0, MAX_CONTENTION, squares);
    let worth = |squares: f64, more: usize| {
        criterion(squares / job.seconds(), job.points.len(), job.parameters(free) + more)
    };
    (worth(least, 1) < worth(squares(common), 0)).then_some(own)
}
