//! A job's loss over its steps, and when it reaches a target.
//!
//! Two shapes are fitted to the mean losses of the frames: an exponential one, and one that falls as
//! 1/(1 + steps). For a given scale, both are linear in their floor and their height, so a fit is a
//! search over one number. If a frame has the job's own forecast, the fit is not used.

use paceline_wire::Direction;

use crate::unit::counter;

/// The number of points that a forecast requires.
const MIN_POINTS: usize = 5;
/// The number of points after which a target may count as unreachable.
const MIN_POINTS_FOR_NEVER: usize = 8;
/// The largest number of points. Beyond it, neighbours are merged.
const MAX_POINTS: usize = 24;
/// The curve is fitted again once the steps have grown by this part.
const NEWS: f64 = 0.03;
/// The scales that are tried: the first as a part of the steps so far, the factor to the next, and their
/// number.
const FIRST_SCALE: f64 = 1.0 / 32.0;
const NEXT_SCALE: f64 = 1.6;
const SCALE_COUNT: usize = 16;
/// The number of search steps around the best of them.
const SEARCH_STEPS: usize = 12;

/// A mean of losses over the steps from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    from: f64,
    to: f64,
    loss: f64,
}

/// A job's losses and the shape that fits them, where smaller is better.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    points: Vec<Point>,
    /// The end of the last point; 0 without points.
    end: f64,
    /// The last known step.
    step: Option<f64>,
    fit: Option<Fit>,
    /// The step at the last fit.
    fitted: f64,
}

/// A fitted curve: its floor, its height above the floor at step 0, its shape and its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fit {
    floor: f64,
    height: f64,
    shape: Shape,
    scale: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Exponential,
    Hyperbolic,
}

/// When a target is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reach {
    /// There are too few points.
    Unknown,
    /// The fitted loss does not reach it.
    Never,
    /// After this many more steps.
    Steps(f64),
}

impl Curve {
    /// Records the step of a frame and the mean loss since the previous frame.
    pub(super) fn take(&mut self, step: u64, loss: Option<f64>, direction: Direction) {
        let step = counter(step);
        let before = self.step.replace(step);
        if before.is_some_and(|before| step < before) {
            // It continues from a checkpoint: later points are dropped.
            self.points.retain(|point| point.to <= step);
            self.end = self.points.last().map_or(0.0, |point| point.to);
        }
        let Some(loss) = loss.filter(|loss| loss.is_finite()) else { return };
        let from = before.unwrap_or(0.0).max(self.end);
        if step <= from {
            return;
        }
        let loss = if direction == Direction::Maximize { -loss } else { loss };
        if self.points.len() >= MAX_POINTS {
            self.join();
        }
        // All at once, so that they are seldom moved.
        self.points.reserve_exact(MAX_POINTS - self.points.len());
        self.points.push(Point { from, to: step, loss });
        self.end = step;
    }

    /// Fits again if there are enough new steps; returns whether it did.
    pub(super) fn refresh(&mut self) -> bool {
        let is_due = (self.end - self.fitted).abs() > NEWS * self.end;
        if is_due {
            (self.fit, self.fitted) = (Fit::from_points(&self.points), self.end);
        }
        is_due
    }

    /// The number of points.
    pub(super) fn points(&self) -> usize {
        self.points.len()
    }

    /// When `target` is reached, from the last step on.
    pub(super) fn reach(&self, target: f64, direction: Direction) -> Reach {
        let Some((fit, step)) = self.fit.zip(self.step) else { return Reach::Unknown };
        let target = if direction == Direction::Maximize { -target } else { target };
        let never =
            if self.points.len() < MIN_POINTS_FOR_NEVER { Reach::Unknown } else { Reach::Never };
        fit.step_of(target).map_or(never, |at| Reach::Steps((at - step).max(0.0)))
    }

    /// The steps after which only this part of the remaining fall is left.
    pub(super) fn until_left(&self, part: f64) -> Option<f64> {
        let (fit, step) = self.fit.zip(self.step)?;
        let now = fit.at(step);
        Some((fit.step_of(fit.floor + part * (now - fit.floor))? - step).max(0.0))
    }

    /// Merges pairs of neighbours, so that half of the points are left.
    fn join(&mut self) {
        let steps = |point: &Point| point.to - point.from;
        let mut is_second = false;
        self.points.dedup_by(|next, point| {
            is_second = !is_second;
            if is_second {
                let all = steps(point) + steps(next);
                let loss = point.loss * steps(point) / all + next.loss * steps(next) / all;
                *point = Point { from: point.from, to: next.to, loss };
            }
            is_second
        });
    }
}

impl Fit {
    fn from_points(points: &[Point]) -> Option<Self> {
        if points.len() < MIN_POINTS {
            return None;
        }
        let span = points.last()?.to;
        let best = |shape| {
            let scale =
                |n: usize| span * FIRST_SCALE * NEXT_SCALE.powi(i32::try_from(n).unwrap_or(0));
            let tried = (0..SCALE_COUNT).map(|n| Self::with(points, shape, scale(n)));
            let mut best = tried.min_by(|a, b| a.0.total_cmp(&b.0))?;
            let (mut low, mut high) = (best.1.scale / NEXT_SCALE, best.1.scale * NEXT_SCALE);
            for _ in 0..SEARCH_STEPS {
                let (a, b) = (low * (high / low).powf(0.382), low * (high / low).powf(0.618));
                let (at_a, at_b) = (Self::with(points, shape, a), Self::with(points, shape, b));
                let nearer = if at_a.0 <= at_b.0 {
                    high = b;
                    at_a
                } else {
                    low = a;
                    at_b
                };
                if nearer.0 <= best.0 {
                    best = nearer;
                }
            }
            Some(best)
        };
        let both = [best(Shape::Exponential)?, best(Shape::Hyperbolic)?];
        let (_, fit) = both.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        (fit.height > 0.0 && fit.floor.is_finite()).then_some(fit)
    }

    /// The best fit of one shape and scale, with its squared error weighted by steps.
    fn with(points: &[Point], shape: Shape, scale: f64) -> (f64, Self) {
        let (mut weights, mut sum_g, mut sum_y, mut sum_gg, mut sum_gy, mut sum_yy) =
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        // Most points begin where the one before ends: the shape is computed there once.
        let mut end = (f64::NAN, 0.0, 0.0);
        let at = |step: f64| (step, step / scale, shape.term(step / scale));
        for point in points {
            let w = point.to - point.from;
            let follows = point.from.total_cmp(&end.0).is_eq();
            let begin = if follows { end } else { at(point.from) };
            end = at(point.to);
            let g = shape.integral(begin.2, end.2) / (end.1 - begin.1);
            weights += w;
            sum_g += w * g;
            sum_y += w * point.loss;
            sum_gg += w * g * g;
            sum_gy += w * g * point.loss;
            sum_yy += w * point.loss * point.loss;
        }
        let (mean_g, mean_y) = (sum_g / weights, sum_y / weights);
        let spread = sum_gg - weights * mean_g * mean_g;
        let shared = sum_gy - weights * mean_g * mean_y;
        let height = if spread > 0.0 { shared / spread } else { 0.0 };
        let left = sum_yy - weights * mean_y * mean_y - height * shared;
        // A fit that is not a number counts as the worst.
        let left = if left.is_nan() { f64::MAX } else { left.max(0.0) };
        (left, Self { floor: mean_y - height * mean_g, height, shape, scale })
    }

    fn at(&self, step: f64) -> f64 {
        self.floor + self.height * self.shape.at(step / self.scale)
    }

    /// The step at which the loss reaches `target`, if it does.
    fn step_of(&self, target: f64) -> Option<f64> {
        let part = (target - self.floor) / self.height;
        (part > 0.0).then(|| (self.scale * self.shape.inverse(part.min(1.0))).max(0.0))
    }
}

impl Shape {
    fn at(self, x: f64) -> f64 {
        match self {
            Self::Exponential => (-x).exp(),
            Self::Hyperbolic => 1.0 / (1.0 + x),
        }
    }

    /// What the integral of the shape takes from one place.
    fn term(self, x: f64) -> f64 {
        match self {
            Self::Exponential => (-x).exp(),
            Self::Hyperbolic => 1.0 + x,
        }
    }

    /// The integral between two places, by their terms.
    fn integral(self, from: f64, to: f64) -> f64 {
        match self {
            Self::Exponential => from - to,
            Self::Hyperbolic => (to / from).ln(),
        }
    }

    fn inverse(self, y: f64) -> f64 {
        match self {
            Self::Exponential => -y.ln(),
            Self::Hyperbolic => 1.0 / y - 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(loss: impl Fn(f64) -> f64, from: u64, to: u64) -> f64 {
        let all = (from + 1..=to).map(|step| loss(counter(step) - 0.5));
        all.sum::<f64>() / counter(to - from)
    }

    fn after(frames: u64, loss: impl Fn(f64) -> f64, direction: Direction) -> Curve {
        let mut curve = Curve::default();
        curve.take(0, None, direction);
        for frame in 1..=frames {
            let mean = mean_of(&loss, 5 * (frame - 1), 5 * frame);
            curve.take(5 * frame, Some(mean), direction);
            curve.refresh();
        }
        curve
    }

    fn steps(reach: Reach) -> f64 {
        match reach {
            Reach::Steps(steps) => steps,
            Reach::Unknown | Reach::Never => f64::NAN,
        }
    }

    #[test]
    fn exponential_fall_is_forecast_within_two_percent() {
        let loss = |step: f64| 0.02 + 2.28 * (-step / 120.0).exp();
        let expected = 120.0 * (2.28_f64 / 0.23).ln();
        for frames in [10, 20, 40] {
            let curve = after(frames, loss, Direction::Minimize);
            let to = steps(curve.reach(0.25, Direction::Minimize)) + counter(5 * frames);
            assert!((to / expected - 1.0).abs() < 0.02, "{frames}: {to} {expected}");
            assert_eq!(curve.reach(0.01, Direction::Minimize), Reach::Never);
        }
    }

    #[test]
    fn rise_of_a_maximised_metric_is_forecast_the_same() {
        let accuracy = |step: f64| 0.9 - 0.8 / (1.0 + step / 50.0);
        let curve = after(20, accuracy, Direction::Maximize);
        let to = steps(curve.reach(0.8, Direction::Maximize)) + 100.0;
        assert!((to / 350.0 - 1.0).abs() < 0.03, "{to}");
    }

    #[test]
    fn loss_that_does_not_fall_reaches_nothing() {
        let curve = after(20, |step| 1.0 + step / 100.0, Direction::Minimize);
        assert!(!matches!(curve.reach(0.5, Direction::Minimize), Reach::Steps(_)));
        assert_eq!(
            after(3, |_| 1.0, Direction::Minimize).reach(0.5, Direction::Minimize),
            Reach::Unknown
        );
    }

    #[test]
    fn half_of_the_fall_to_come_takes_the_half_life() {
        let curve = after(20, |step: f64| 1.0 + (-step / 100.0).exp(), Direction::Minimize);
        let half = curve.until_left(0.5).unwrap();
        assert!((half - 100.0 * 2.0_f64.ln()).abs() < 2.0, "{half}");
    }

    #[test]
    fn points_stay_few_and_fall_back_with_the_steps() {
        let mut curve = after(500, |step: f64| (-step / 900.0).exp(), Direction::Minimize);
        assert!(curve.points() <= MAX_POINTS);
        curve.take(1000, None, Direction::Minimize);
        assert!(curve.points.iter().all(|point| point.to <= 1000.0));
        curve.take(1010, Some(f64::NAN), Direction::Minimize);
        assert!(curve.points.iter().all(|point| point.loss.is_finite()));
    }
}
