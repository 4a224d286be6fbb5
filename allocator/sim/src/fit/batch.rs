//! One job's batches: what their durations tell of the job, for a given contention.

use std::collections::{BTreeMap, BTreeSet};

use paceline_policy::Share;

use super::model::{Batch, Fitted, Throttling, Why};
use super::numeric::{Equation, least_point, not_negative};
use super::window::{Part, Window};
use crate::number::floor;
use crate::scenario::held_back;

/// Below that, a share or a window tells more of the measuring than of the job.
const LEAST_SHARE: f64 = 0.005;
const LEAST_SECONDS: f64 = 0.3;
/// Where somebody came for a part of a window who is in no frame, the mean share is not that of the batches
/// that were timed.
const MOST_STRANGERS: f64 = 0.05;
/// So many points for one job.
pub(super) const LEAST_POINTS: usize = 3;
/// A limit that takes more than this part of a job's speed is beyond the model.
const MOST_COST: f64 = 0.95;
/// What neighbours cost is not told by less of a difference in what they count for: noise would be taken
/// for it.
const LEAST_CROWDING: f64 = 0.5;
/// What they count for is told apart in steps of a quarter of one of equal share.
const NEIGHBOUR_STEPS: f64 = 4.0;
/// A frame's batches are those that began after the first look since the frame before: so many seconds
/// after it, or halfway.
const FIRST_LOOK: f64 = 1.0;
/// Limits are told apart in steps of a twentieth of the node.
const LIMIT_STEPS: f64 = 20.0;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    seconds: f64,
    /// What neighbours counted for.
    neighbours: f64,
    share: f64,
    cap: Share,
    latency: f64,
}

/// What neighbours counted for, and the limit, both in steps.
type Condition = (u64, u64);

impl Point {
    fn condition(&self) -> Condition {
        let steps = |value: f64, steps: f64| floor(value * steps + 0.5);
        (steps(self.neighbours, NEIGHBOUR_STEPS), steps(self.cap.get(), LIMIT_STEPS))
    }
}

/// Which parameters of jobs are fitted beside the work of a batch; the others are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Free {
    pub(super) fixed: bool,
    pub(super) cost: bool,
}

/// One job's points, and which of its parameters they can tell.
#[derive(Debug)]
pub(super) struct Timings {
    pub(super) points: Vec<Point>,
    /// The CPUs of the node, and the threads of the job.
    cpus: f64,
    threads: f64,
    /// Whether it was seen with more and with less beside it.
    pub(super) tells_contention: bool,
    tells: Free,
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

/// What a job's part of a window tells of its batches, if anything.
pub(super) fn point(window: &Window<'_>, part: &Part) -> Option<Point> {
    let tells = part.steady
        && part.share >= LEAST_SHARE
        && window.seconds >= LEAST_SECONDS
        && window.strangers <= MOST_STRANGERS;
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
        let tells_contention = most - beside().fold(most, f64::min) >= LEAST_CROWDING;
        let limited = points.iter().any(|point| held_back(point.cap, cpus, threads) > 0.0);
        // One condition for the work of a batch, and one for each other parameter.
        let free = conditions.len().saturating_sub(1 + usize::from(tells_contention));
        let cost = limited && free > 0;
        let fixed = free > usize::from(cost);
        Self { points, cpus, threads, tells_contention, tells: Free { fixed, cost }, limited }
    }

    pub(super) fn is_enough(&self) -> bool {
        self.points.len() >= LEAST_POINTS
    }

    /// How long it was timed.
    pub(super) fn seconds(&self) -> f64 {
        self.points.iter().map(|point| point.seconds).sum()
    }

    /// How many parameters are fitted to it.
    pub(super) fn parameters(&self, free: Free) -> usize {
        let free = self.allowed(free);
        1 + usize::from(free.fixed) + usize::from(free.cost)
    }

    fn allowed(&self, free: Free) -> Free {
        Free { fixed: free.fixed && self.tells.fixed, cost: free.cost && self.tells.cost }
    }

    /// The parameters with the least squares of the relative errors, by time.
    pub(super) fn estimate(&self, contention: f64, free: Free) -> Estimate {
        let free = self.allowed(free);
        let at = |cost: f64| self.at(contention, free.fixed, cost);
        if free.cost { at(least_point(0.0, MOST_COST, |cost| at(cost).squares).0) } else { at(0.0) }
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

    /// What is known of its batches.
    pub(super) fn batch(&self, contention: f64, free: Free) -> Fitted<Batch> {
        if !self.is_enough() {
            let have = self.points.len();
            return Err(Why::TooFewFrames { of: "its batches", have, need: LEAST_POINTS });
        }
        let found = self.estimate(contention, free);
        if !(found.work.is_normal() && found.work > 0.0 && found.fixed.is_finite()) {
            return Err(Why::NotByShare);
        }
        Ok(Batch {
            work: found.work,
            fixed: if self.tells.fixed { Ok(found.fixed) } else { Err(Why::Alike) },
            throttling: match (self.limited, self.tells.cost) {
                (_, true) => Ok(Throttling { cost: found.cost, threads: self.threads }),
                (true, false) => Err(Why::Alike),
                (false, false) => Err(Why::NoLimit),
            },
            error: (found.squares / self.seconds()).sqrt(),
            noise: self.noise(),
        })
    }

    /// How far durations under the same conditions are apart, as a fraction of them: that of one batch,
    /// since the mean of many is off by less. What a job is given in turns is off, too, and is seen by
    /// nothing else.
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
                let seen = point.seconds - FIRST_LOOK.min(point.seconds / 2.0);
                let batches = (seen / point.latency).max(1.0);
                point.seconds * batches * (point.latency / mean - 1.0).powi(2)
            };
            squares += points.iter().map(square).sum::<f64>();
            all += seconds;
        }
        if all > 0.0 { (squares / all).sqrt() } else { 0.0 }
    }
}
