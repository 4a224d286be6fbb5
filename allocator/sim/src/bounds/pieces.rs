//! A job's loss as linear pieces, each steeper than the next.

use crate::curve::Curve;
use crate::scenario::Job;

use super::Task;

/// Where tangents touch a smooth curve: after this many equal parts of its fall, and of its work.
const BY_FALL: u32 = 24;
const BY_WORK: u32 = 32;

/// A stretch of work over which the remaining fall decreases linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) work: f64,
    pub(super) drop: f64,
}

impl Piece {
    /// The drop per unit of work.
    pub(super) fn density(&self) -> f64 {
        self.drop / self.work
    }
}

/// A job as pieces of work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chain {
    pub(super) release: f64,
    pub(super) cap: f64,
    pub(super) pieces: Vec<Piece>,
}

impl Chain {
    /// A single piece with the whole drop.
    pub(super) fn whole(task: &Task) -> Self {
        let piece = Piece { work: task.work, drop: 1.0 };
        Self { release: task.release, cap: task.cap, pieces: vec![piece] }
    }

    /// The remaining fall of a job's loss, approximated from below: no piece is above the loss. The
    /// area under a loss is counted until the job ends. So the remaining fall is 0 from then on,
    /// even if the job is ended while its loss still falls. Returns `None` for a job without a
    /// loss, or with a loss that goes beyond its last value on the way.
    pub(super) fn below(job: &Job) -> Option<Self> {
        let curve = job.loss.as_deref()?;
        let task = Task::for_job(job);
        let last = (task.work / job.work).min(1.0);
        let mut points = touching(curve, last);
        points.push((last, 0.0));
        let hull = lower_hull(&points);
        let falls = hull.iter().zip(hull.iter().skip(1)).all(|(a, b)| b.1 <= a.1);
        if !falls || !job.work.is_finite() {
            return None;
        }
        let piece = |((u0, y0), (u1, y1)): (&(f64, f64), &(f64, f64))| Piece {
            work: (u1 - u0) * job.work,
            drop: y0 - y1,
        };
        let pieces = hull.iter().zip(hull.iter().skip(1)).map(piece);
        let pieces = pieces.filter(|piece| piece.work > 0.0 && piece.drop > 0.0).collect();
        Some(Self { release: task.release, cap: task.cap, pieces })
    }
}

/// Points from 0 to `last` whose connecting lines are never above the remaining fall of a curve.
/// They are the curve's own points if it is linear, else the intersections of its tangents.
fn touching(curve: &Curve, last: f64) -> Vec<(f64, f64)> {
    let to_come = |u: f64| curve.to_come(u, u);
    if let Curve::Recorded { points } = curve {
        let inner = points.iter().map(|(u, _)| *u).filter(|u| (0.0..last).contains(u));
        let mut at: Vec<f64> = inner.chain([0.0, last]).collect();
        at.sort_by(f64::total_cmp);
        return at.into_iter().map(|u| (u, to_come(u))).collect();
    }
    let (start, end) = (curve.at(0.0), curve.at(1.0));
    let fall = |part: u32| {
        let target = start + (end - start) * f64::from(part) / f64::from(BY_FALL);
        curve.reach(target)
    };
    let even = |part: u32| last * f64::from(part) / f64::from(BY_WORK);
    let mut at: Vec<f64> = (0..BY_FALL).filter_map(fall).chain((0..=BY_WORK).map(even)).collect();
    at.retain(|u| (0.0..=last).contains(u));
    at.sort_by(f64::total_cmp);
    at.dedup();
    let tangents: Vec<(f64, f64, f64)> =
        at.into_iter().map(|u| (u, to_come(u), slope(curve, u))).collect();
    let meet = |((u0, y0, s0), (u1, y1, s1)): (&(f64, f64, f64), &(f64, f64, f64))| {
        let steps = s1 - s0;
        (steps > 0.0).then(|| {
            let u = ((y0 - y1 + s1 * u1 - s0 * u0) / steps).clamp(*u0, *u1);
            (u, y0 + s0 * (u - u0))
        })
    };
    let corners = tangents.iter().zip(tangents.iter().skip(1)).filter_map(meet);
    let ends = [tangents.first(), tangents.last()].into_iter().flatten().map(|(u, y, _)| (*u, *y));
    let mut points: Vec<(f64, f64)> = corners.chain(ends).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The derivative of the remaining fall by the fraction of the work.
fn slope(curve: &Curve, u: f64) -> f64 {
    let change = match curve {
        Curve::Exponential { start, end, tau } => -(start - end) * (-u / tau).exp() / tau,
        Curve::Power { start, end, scale, exponent } => {
            -(start - end) * exponent / scale * (1.0 + u / scale).powf(-exponent - 1.0)
        }
        Curve::Recorded { .. } => 0.0,
    };
    change / (curve.at(0.0) - curve.at(1.0))
}

/// The largest convex function below some points, which are ordered by position: Andrew, "Another
/// efficient algorithm for convex hulls in two dimensions", Information Processing Letters 9(5),
/// 1979.
fn lower_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &(u, y) in points {
        while let [.., (u0, y0), (u1, y1)] = hull.as_slice()
            && (u1 - u0) * (y - y0) <= (y1 - y0) * (u - u0)
        {
            hull.pop();
        }
        hull.push((u, y));
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_nowhere_above_the_curve_and_close_to_it() {
        for curve in [
            Curve::Exponential { start: 500.0, end: 100.0, tau: 0.043 },
            Curve::Exponential { start: 0.1, end: 0.9, tau: 0.2 },
            Curve::Power { start: 2.5, end: 0.2, scale: 0.05, exponent: 0.8 },
            Curve::Recorded { points: vec![(0.0, 4.0), (0.25, 1.0), (1.0, 0.5)] },
        ] {
            let hull = lower_hull(&touching(&curve, 1.0));
            let below = Curve::Recorded { points: hull.clone() };
            for step in 0..=1000 {
                let u = f64::from(step) / 1000.0;
                let (low, true_value) = (below.at(u), curve.to_come(u, u));
                assert!(low <= true_value + 1e-12, "{curve:?} at {u}: {low} {true_value}");
                assert!(low >= true_value - 2e-3, "{curve:?} at {u}: {low} {true_value}");
            }
            let slopes: Vec<f64> =
                hull.windows(2).map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0)).collect();
            assert!(slopes.is_sorted(), "{curve:?}: {slopes:?}");
        }
    }
}
