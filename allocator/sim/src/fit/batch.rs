//! One job's batches: parameters that follow from their durations, for a given contention.

use std::collections::{BTreeMap, BTreeSet};

use paceline_policy::Share;

use super::model::{Batch, Fitted, Throttling, Why};
use super::numeric::{Equation, least_point, not_negative};
use super::window::{Part, Window};
use crate::number::floor;
use crate::scenario::held_back;

/// Below this share or this length, measuring errors outweigh what the job does.
const MIN_SHARE: f64 = 0.005;
const MIN_SECONDS: f64 = 0.3;
/// A window with more use by jobs outside the frames is left out. Its mean share is not that of the
/// batches that were timed.
const MAX_UNATTRIBUTED: f64 = 0.05;
/// A job needs this many measurements.
pub(super) const MIN_POINTS: usize = 3;
/// A limit that takes more than this part of a job's speed is beyond the model.
const MAX_COST: f64 = 0.95;
/// The contention is fitted only if the weight of neighbours varied by at least this much. Below
/// that, noise would be taken for contention.
const MIN_NEIGHBOUR_SPREAD: f64 = 0.5;
/// Conditions with neighbours: steps of a quarter of one neighbour of equal share.
const NEIGHBOUR_STEPS: f64 = 4.0;
/// A frame counts batches that began after the first sample since the frame before. That sample is
/// taken this many seconds after it, or halfway if that is sooner.
const FIRST_SAMPLE_DELAY: f64 = 1.0;
/// Conditions with limits: steps of a twentieth of the node.
const LIMIT_STEPS: f64 = 20.0;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    seconds: f64,
    /// The weight of the neighbours (see [`neighbours`](crate::fluid::neighbours)).
    neighbours: f64,
    share: f64,
    cap: Share,
    latency: f64,
}

/// The weight of neighbours and the limit, both in steps.
type Condition = (u64, u64);

impl Point {
    fn condition(&self) -> Condition {
        let steps = |value: f64, steps: f64| floor(value * steps + 0.5);
        (steps(self.neighbours, NEIGHBOUR_STEPS), steps(self.cap.get(), LIMIT_STEPS))
    }
}

/// Which parameters of jobs are fitted besides the work of a batch; the others are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Free {
    pub(super) fixed: bool,
    pub(super) cost: bool,
}

/// One job's points, and which of its parameters they determine.
#[derive(Debug)]
pub(super) struct Timings {
    pub(super) points: Vec<Point>,
    /// The CPUs of the node, and the threads of the job.
    cpus: f64,
    threads: f64,
    /// Whether it ran both with more and with fewer neighbours.
    pub(super) shows_contention: bool,
    determined: Free,
    limited: bool,
}

/// A job's parameters for one value of the contention.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    fixed: f64,
    work: f64,
    cost: f64,
    pub(super) squares: f64,
}

/// The measurement that a job's part of a window gives; `None` if it gives none.
pub(super) fn point(window: &Window<'_>, part: &Part) -> Option<Point> {
    let tells = part.steady
        && part.share >= MIN_SHARE
        && window.seconds >= MIN_SECONDS
        && window.unattributed <= MAX_UNATTRIBUTED;
    tells.then_some(Point {
        seconds: window.seconds,
        neighbours: window.neighbours(),
        share: part.share,
        cap: part.cap,
        latency: part.latency?,
    })
}

impl Timings {
    pub(super) fn new(points: Vec<Point>, cpus: f64, threads: f64) -> Self {
        let conditions: BTreeSet<Condition> = points.iter().map(Point::condition).collect();
        let beside = || points.iter().map(|point| point.neighbours);
        let most = beside().fold(0.0, f64::max);
        let shows_contention = most - beside().fold(most, f64::min) >= MIN_NEIGHBOUR_SPREAD;
        let limited = points.iter().any(|point| held_back(point.cap, cpus, threads) > 0.0);
        // One condition for the work of a batch, and one for each other parameter.
        let free = conditions.len().saturating_sub(1 + usize::from(shows_contention));
        let cost = limited && free > 0;
        let fixed = free > usize::from(cost);
        Self { points, cpus, threads, shows_contention, determined: Free { fixed, cost }, limited }
    }

    pub(super) fn is_enough(&self) -> bool {
        self.points.len() >= MIN_POINTS
    }

    /// For how many seconds it was timed.
    pub(super) fn seconds(&self) -> f64 {
        self.points.iter().map(|point| point.seconds).sum()
    }

    /// How many of its parameters are fitted.
    pub(super) fn parameters(&self, free: Free) -> usize {
        let free = self.allowed(free);
        1 + usize::from(free.fixed) + usize::from(free.cost)
    }

    fn allowed(&self, free: Free) -> Free {
        Free { fixed: free.fixed && self.determined.fixed, cost: free.cost && self.determined.cost }
    }

    /// The parameters with the least squares of the relative errors, weighted by time.
    pub(super) fn estimate(&self, contention: f64, free: Free) -> Estimate {
        let free = self.allowed(free);
        let at = |cost: f64| self.at(contention, free.fixed, cost);
        if free.cost { at(least_point(0.0, MAX_COST, |cost| at(cost).squares).0) } else { at(0.0) }
    }

    fn at(&self, contention: f64, fixed: bool, cost: f64) -> Estimate {
        let equation = |point: &Point| {
            let slow = (1.0 + contention * point.neighbours) / point.latency;
            let speed = 1.0 - cost * held_back(point.cap, self.cpus, self.threads);
            Equation {
                first: if fixed { slow } else { 0.0 },
                second: slow / (point.share * speed),
                target: 1.0,
                weight: point.seconds,
            }
        };
        let equations: Vec<Equation> = self.points.iter().map(equation).collect();
        let found = not_negative(&equations);
        Estimate { fixed: found.first, work: found.second, cost, squares: found.squares }
    }

    /// The fit of its batches.
    pub(super) fn batch(&self, contention: f64, free: Free) -> Fitted<Batch> {
        if !self.is_enough() {
            let have = self.points.len();
            return Err(Why::TooFewFrames { of: "its batches", have, need: MIN_POINTS });
        }
        let found = self.estimate(contention, free);
        if !(found.work.is_normal() && found.work > 0.0 && found.fixed.is_finite()) {
            return Err(Why::NotByShare);
        }
        Ok(Batch {
            work: found.work,
            fixed: if self.determined.fixed { Ok(found.fixed) } else { Err(Why::Alike) },
            throttling: match (self.limited, self.determined.cost) {
                (_, true) => Ok(Throttling { cost: found.cost, threads: self.threads }),
                (true, false) => Err(Why::Alike),
                (false, false) => Err(Why::NoLimit),
            },
            error: (found.squares / self.seconds()).sqrt(),
            noise: self.noise(),
        })
    }

    /// The relative deviation of one batch's duration under unchanged conditions. The mean of many
    /// batches deviates less, and is scaled accordingly. Variation of the share from batch to batch
    /// is included, since no other parameter captures it.
    fn noise(&self) -> f64 {
        let mut alike: BTreeMap<Condition, Vec<&Point>> = BTreeMap::new();
        for point in &self.points {
            alike.entry(point.condition()).or_default().push(point);
        }
        let (mut squares, mut all) = (0.0, 0.0);
        for points in alike.values().filter(|points| points.len() > 1) {
            let seconds: f64 = points.iter().map(|point| point.seconds).sum();
            let latency = points.iter().map(|point| point.seconds * point.latency).sum::<f64>();
            let mean = latency / seconds;
            let square = |point: &&Point| {
                let seen = point.seconds - FIRST_SAMPLE_DELAY.min(point.seconds / 2.0);
                let batches = (seen / point.latency).max(1.0);
                point.seconds * batches * (point.latency / mean - 1.0).powi(2)
            };
            squares += points.iter().map(square).sum::<f64>();
            all += seconds;
        }
        if all > 0.0 { (squares / all).sqrt() } else { 0.0 }
    }
}
