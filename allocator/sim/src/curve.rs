//! A job's loss as a function of the work done.
//!
//! A curve is a function of the fraction of the job's work, from 0 at its start to 1 at its end. So
//! it does not change if all work is scaled.

use paceline_policy::unit::counter;
use serde::{Deserialize, Serialize};

/// Points of the numerical mean of a smooth curve over one frame.
const BLOCKS: u64 = 64;
/// A power law is almost linear within a batch this short relative to its bend. Its sum over
/// batches is then an integral, with a relative error of 10⁻⁴.
const SHORT_BATCH: f64 = 0.05;

/// The shape of a loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "curve", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Curve {
    /// `end + (start − end) · exp(−u/tau)`.
    Exponential {
        /// The loss before any work.
        start: f64,
        /// The loss that it tends to.
        end: f64,
        /// The fraction of the work in which the distance to `end` falls to 1/e.
        tau: f64,
    },
    /// `end + (start − end) · (1 + u/scale)^(−exponent)`.
    Power {
        /// The loss before any work.
        start: f64,
        /// The loss that it tends to.
        end: f64,
        /// The fraction of the work at which the fall begins to slow down.
        scale: f64,
        /// How steep the tail is.
        exponent: f64,
    },
    /// Straight lines between points of a recorded run, by growing fraction of the work; flat
    /// before the first and after the last.
    Recorded {
        /// Fractions of the work and the losses there.
        points: Vec<(f64, f64)>,
    },
}

/// The whole fall of a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// The loss before any work.
    pub first: f64,
    /// The loss when all work is done.
    pub last: f64,
}

impl Fall {
    /// The remaining part of the fall at this loss: 1 at the start, 0 at the end.
    pub fn to_come(self, loss: f64) -> f64 {
        (loss - self.last) / (self.first - self.last)
    }
}

impl Curve {
    /// The loss after the fraction `u` of the work.
    pub fn at(&self, u: f64) -> f64 {
        match self {
            Self::Exponential { start, end, tau } => end + (start - end) * (-u / tau).exp(),
            Self::Power { start, end, scale, exponent } => {
                end + (start - end) * (1.0 + u / scale).powf(-exponent)
            }
            Self::Recorded { points } => between(points, u),
        }
    }

    /// The sum of the losses at the ends of the batches `from + 1` to `to`, each of which is the
    /// fraction `step` of the work.
    pub fn sum(&self, from: u64, to: u64, step: f64) -> f64 {
        let batches = counter(to.saturating_sub(from));
        if let Self::Exponential { start, end, tau } = self {
            // A geometric series.
            let first = (-(counter(from) + 1.0) * step / tau).exp();
            let series = first * (-batches * step / tau).exp_m1() / (-step / tau).exp_m1();
            return end * batches + (start - end) * series;
        }
        if let Self::Power { scale, .. } = self
            && step <= SHORT_BATCH * (scale + counter(from) * step)
        {
            // The sum is the integral between the middles of the batches.
            return batches * self.mean((counter(from) + 0.5) * step, (counter(to) + 0.5) * step);
        }
        let blocks = to.saturating_sub(from).min(BLOCKS);
        let size = batches / counter(blocks.max(1));
        let middle = |block: u64| counter(from) + (counter(block) + 0.5) * size + 0.5;
        (0..blocks).map(|block| size * self.at(middle(block) * step)).sum()
    }

    /// The mean loss between two fractions of the work.
    pub fn mean(&self, from: f64, to: f64) -> f64 {
        let width = to - from;
        if width <= 0.0 {
            return self.at(from);
        }
        if let Self::Exponential { start, end, tau } = self {
            let fall = (-from / tau).exp() * -(-width / tau).exp_m1() * tau / width;
            return end + (start - end) * fall;
        }
        if let Self::Power { start, end, scale, exponent } = self {
            // The integral of (1 + u/scale)^(−exponent), written to avoid cancellation.
            let (power, grown) = (1.0 - exponent, (width / (scale + from)).ln_1p());
            let rise = if power.abs() > 0.0 { (power * grown).exp_m1() / power } else { grown };
            let fall = (1.0 + from / scale).powf(power) * rise * scale / width;
            return end + (start - end) * fall;
        }
        let block = width / counter(BLOCKS);
        let middle = |at: u64| from + (counter(at) + 0.5) * block;
        (0..BLOCKS).map(|at| self.at(middle(at))).sum::<f64>() / counter(BLOCKS)
    }

    /// The mean remaining part of the fall between two fractions of the work: 1 before any work, 0
    /// when all is done.
    pub fn to_come(&self, from: f64, to: f64) -> f64 {
        self.fall().to_come(self.mean(from, to))
    }

    /// The losses between which it falls.
    pub fn fall(&self) -> Fall {
        Fall { first: self.at(0.0), last: self.at(1.0) }
    }

    /// The fraction of the work after which the loss reaches `target`; `None` if it never does. A
    /// loss that has reached it from the start gives 0.
    pub fn reach(&self, target: f64) -> Option<f64> {
        let fraction = match self {
            Self::Exponential { start, end, tau } => -tau * ((target - end) / (start - end)).ln(),
            Self::Power { start, end, scale, exponent } => {
                scale * (((target - end) / (start - end)).powf(-1.0 / exponent) - 1.0)
            }
            Self::Recorded { points } => {
                let first = self.at(0.0);
                let there = if self.rises() { first >= target } else { first <= target };
                if there { 0.0 } else { crossing(points, target)? }
            }
        };
        fraction.is_finite().then(|| fraction.max(0.0))
    }

    /// Whether the loss rises.
    pub fn rises(&self) -> bool {
        match self {
            Self::Exponential { start, end, .. } | Self::Power { start, end, .. } => end > start,
            Self::Recorded { points } => {
                points.last().zip(points.first()).is_some_and(|(last, first)| last.1 > first.1)
            }
        }
    }

    /// Whether its absolute value only decreases.
    pub fn shrinks(&self) -> bool {
        match self {
            Self::Exponential { start, end, .. } | Self::Power { start, end, .. } => {
                start.abs() >= end.abs() && start * end >= 0.0
            }
            Self::Recorded { .. } => false,
        }
    }

    /// The problem of an invalid curve: the field's name, its value, and what is allowed.
    pub(crate) fn problem(&self) -> Option<(&'static str, String, &'static str)> {
        let wrong = |name, value: f64, allowed| Some((name, value.to_string(), allowed));
        let positive = |name, value: f64| {
            let fits = value.is_finite() && value > 0.0;
            if fits { None } else { wrong(name, value, "must be a number above 0") }
        };
        let flat = |name, value: String| {
            let Fall { first, last } = self.fall();
            let falls = (last - first).abs() > 0.0;
            (!falls).then_some((name, value, "must not let the loss end where it began"))
        };
        match self {
            Self::Exponential { start, end, tau } => differ(*start, *end)
                .or(positive("tau", *tau))
                .or_else(|| flat("tau", tau.to_string())),
            Self::Power { start, end, scale, exponent } => differ(*start, *end)
                .or(positive("scale", *scale))
                .or(positive("exponent", *exponent))
                .or_else(|| flat("scale", scale.to_string())),
            Self::Recorded { points } => {
                let finite = points.iter().all(|(u, loss)| u.is_finite() && loss.is_finite());
                let grow = points.iter().zip(points.iter().skip(1)).all(|(a, b)| a.0 < b.0);
                let fits = finite && grow && points.len() >= 2;
                let rule = "must be at least two pairs of numbers, by growing fraction of the work";
                let given = format!("{points:?}");
                if fits { flat("points", given) } else { Some(("points", given, rule)) }
            }
        }
    }
}

fn differ(start: f64, end: f64) -> Option<(&'static str, String, &'static str)> {
    let fits = start.is_finite() && end.is_finite() && start.total_cmp(&end).is_ne();
    (!fits).then(|| ("end", end.to_string(), "must be a number other than start"))
}

/// The value at `u` of the linear interpolation between `points`.
fn between(points: &[(f64, f64)], u: f64) -> f64 {
    let after = points.partition_point(|(at, _)| *at <= u);
    let before = after.checked_sub(1).and_then(|at| points.get(at));
    match (before, points.get(after)) {
        (Some((u0, l0)), Some((u1, l1))) => l0 + (l1 - l0) * (u - u0) / (u1 - u0),
        (Some((_, loss)), None) | (None, Some((_, loss))) => *loss,
        (None, None) => 0.0,
    }
}

/// Where the linear interpolation between `points` first meets `target`.
fn crossing(points: &[(f64, f64)], target: f64) -> Option<f64> {
    let meets = |((u0, l0), (u1, l1)): (&(f64, f64), &(f64, f64))| {
        let within = (l0.min(*l1)..=l0.max(*l1)).contains(&target);
        let steep = (l1 - l0).abs() > 0.0;
        within.then(|| if steep { u0 + (u1 - u0) * (target - l0) / (l1 - l0) } else { *u0 })
    };
    points.iter().zip(points.iter().skip(1)).find_map(meets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves() -> [Curve; 4] {
        [
            Curve::Exponential { start: 500.0, end: 100.0, tau: 0.2 },
            Curve::Power { start: 3.0, end: 0.5, scale: 0.1, exponent: 0.7 },
            Curve::Power { start: 3.0, end: 0.5, scale: 0.1, exponent: 1.0 },
            Curve::Recorded { points: vec![(0.0, 4.0), (0.25, 1.0), (1.0, 0.5)] },
        ]
    }

    #[test]
    fn sum_over_batches_equals_losses_at_their_ends() {
        for curve in curves() {
            for (from, to) in [(0, 1), (3, 40), (0, 1000), (990, 1000), (7, 7)] {
                let step = 1e-3;
                let each: f64 = (from + 1..=to).map(|k| curve.at(counter(k) * step)).sum();
                let sum = curve.sum(from, to, step);
                assert!((sum - each).abs() <= 2e-3 * each, "{curve:?} {from} {to}: {sum} {each}");
            }
        }
    }

    #[test]
    fn power_law_sum_equals_the_sum_over_batches() {
        for exponent in [0.3, 1.0, 1.0 + 1e-9, 2.0] {
            let curve = Curve::Power { start: 3.0, end: 0.5, scale: 0.05, exponent };
            for (from, to, step) in [(0, 1000, 1e-3), (999, 1000, 1e-3), (5, 7, 4e-3), (0, 8, 0.1)]
            {
                let each: f64 = (from + 1..=to).map(|k| curve.at(counter(k) * step)).sum();
                let sum = curve.sum(from, to, step);
                assert!((sum - each).abs() <= 4e-4 * each, "{exponent} {from} {to}: {sum} {each}");
            }
        }
    }

    #[test]
    fn mean_equals_that_of_many_points() {
        for curve in curves() {
            let points = (0..10_000).map(|at| curve.at(0.1 + 0.6 * (counter(at) + 0.5) / 1e4));
            let mean = points.sum::<f64>() / 1e4;
            assert!((curve.mean(0.1, 0.7) - mean).abs() < 1e-3 * mean, "{curve:?}");
            assert!((curve.mean(0.3, 0.3) - curve.at(0.3)).abs() < 1e-12);
            let near = curve.mean(0.3, 0.3 + 1e-9) - curve.at(0.3);
            assert!(near.abs() < 1e-6 * curve.at(0.3), "{curve:?} {near}");
            assert!((curve.to_come(0.0, 0.0) - 1.0).abs() < 1e-12);
            assert!(curve.to_come(1.0, 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn target_is_reached_where_the_curve_meets_it() {
        for curve in curves() {
            for u in [0.01, 0.3, 0.9] {
                let reached = curve.reach(curve.at(u)).unwrap();
                assert!((reached - u).abs() < 1e-9, "{curve:?} {u} {reached}");
            }
            assert!(!curve.rises());
            assert_eq!(curve.problem(), None);
        }
        assert_eq!(curves()[0].reach(99.0), None, "below what it tends to");
        for easy in [curves()[0].reach(600.0), curves()[1].reach(3.5), curves()[3].reach(4.5)] {
            assert_eq!(easy, Some(0.0), "from the start");
        }
        let rising = Curve::Recorded { points: vec![(0.0, 0.1), (1.0, 0.9)] };
        assert_eq!((rising.reach(0.05), rising.reach(0.95)), (Some(0.0), None));
        assert!(Curve::Exponential { start: 0.1, end: 0.9, tau: 0.2 }.rises());
    }

    #[test]
    fn shrinking_loss_never_grows() {
        let power = |start, end| Curve::Power { start, end, scale: 0.1, exponent: 0.8 };
        let shrinking = [(2.0, 0.1), (-2.0, -0.1), (2.0, 0.0)].map(|(a, b)| power(a, b));
        for curve in curves().iter().chain(&shrinking).filter(|curve| curve.shrinks()) {
            let sizes: Vec<f64> = (0..=50).map(|u| curve.at(f64::from(u) / 50.0).abs()).collect();
            assert!(sizes.is_sorted_by(|before, after| before >= after), "{curve:?}");
        }
        assert!(shrinking.iter().all(Curve::shrinks));
        assert!(![(0.1, 2.0), (1.0, -0.5)].into_iter().any(|(a, b)| power(a, b).shrinks()));
    }

    #[test]
    fn invalid_curve_names_its_field() {
        let flat = Curve::Exponential { start: 1.0, end: 1.0, tau: 0.2 };
        assert_eq!(flat.problem().unwrap().0, "end");
        let steep = Curve::Power { start: 1.0, end: 0.0, scale: 0.0, exponent: 1.0 };
        assert_eq!(steep.problem().unwrap().0, "scale");
        let back = Curve::Recorded { points: vec![(0.5, 1.0), (0.2, 2.0)] };
        assert_eq!(back.problem().unwrap().0, "points");
        let round = Curve::Recorded { points: vec![(0.0, 1.0), (0.5, 2.0), (1.0, 1.0)] };
        assert_eq!(round.problem().unwrap().0, "points");
        let slow = Curve::Exponential { start: 1.0, end: 0.0, tau: 1e17 };
        assert_eq!(slow.problem().unwrap().0, "tau");
    }
}
