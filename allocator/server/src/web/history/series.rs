//! A job's figures over time: two hours in a fixed number of points, which get coarser as time
//! passes.

use std::collections::VecDeque;

use paceline_api::live::snapshot::JobView;
use serde::Serialize;

/// How many points of a job are kept.
const MAX_POINTS: usize = 450;
/// The distance between points at first, in seconds.
const MIN_WIDTH: f64 = 1.0;
/// The largest distance between points, in seconds. After that the oldest points are dropped.
const MAX_WIDTH: f64 = 16.0;

/// The complete points and the current one.
#[derive(Debug)]
pub(super) struct Series {
    width: f64,
    points: VecDeque<Point>,
    open: Option<Open>,
}

/// Figures of one interval: means of measured values, and the last of set values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Point {
    t: f64,
    loss: Option<f64>,
    batch_latency: Option<f64>,
    cpu: Option<f64>,
    limit: Option<f64>,
    chosen: Option<f64>,
}

/// The current point, to which values are added.
#[derive(Clone, Copy, Debug)]
struct Open {
    began: f64,
    last: Point,
    loss: Mean,
    batch_latency: Mean,
    cpu: Mean,
}

/// A running mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

/// A job's figures in columns. Times are seconds since the run began. Unknown values are `None`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "JobHistory"))]
pub(in crate::web) struct Figures<'a> {
    /// The job's name.
    job: &'a str,
    /// The distance between points, in seconds.
    width: f64,
    /// The time of each point, in seconds since the run began.
    t: Vec<f64>,
    /// Mean losses.
    loss: Vec<Option<f64>>,
    /// Mean durations of a batch, in seconds.
    batch_latency: Vec<Option<f64>>,
    /// Mean use of CPU, as a fraction of the node.
    cpu: Vec<Option<f64>>,
    /// Limits in force, as shares; 1 means unlimited.
    limit: Vec<Option<f64>>,
    /// The shares that the policy chose.
    chosen: Vec<Option<f64>>,
}

impl Default for Series {
    fn default() -> Self {
        Self { width: MIN_WIDTH, points: VecDeque::new(), open: None }
    }
}

impl Series {
    /// Adds a job's figures at `t`.
    pub(super) fn add(&mut self, t: f64, job: &JobView) {
        let slot = |t: f64| (t / self.width).floor();
        if let Some(open) = self.open.filter(|open| slot(open.began) < slot(t)) {
            self.open = None;
            self.push(open.point());
        }
        self.open.get_or_insert_with(|| Open::at(t)).add(t, job);
    }

    fn push(&mut self, point: Point) {
        if self.points.len() >= MAX_POINTS {
            if self.width < MAX_WIDTH {
                self.width *= 2.0;
                self.thin();
            } else {
                self.points.pop_front();
            }
        }
        self.points.push_back(point);
    }

    /// Merges each two points into one.
    fn thin(&mut self) {
        let points: Vec<Point> = self.points.drain(..).collect();
        self.points.extend(points.chunks(2).filter_map(|pair| {
            let (first, second) = (pair.first()?, pair.last()?);
            Some(Point {
                loss: middle(first.loss, second.loss),
                batch_latency: middle(first.batch_latency, second.batch_latency),
                cpu: middle(first.cpu, second.cpu),
                ..*second
            })
        }));
    }

    /// All points, as the figures of `job`.
    pub(super) fn figures<'a>(&self, job: &'a str) -> Figures<'a> {
        let open = self.open.map(Open::point);
        let points: Vec<Point> = self.points.iter().copied().chain(open).collect();
        let column = |of: fn(&Point) -> Option<f64>| points.iter().map(of).collect();
        Figures {
            job,
            width: self.width,
            t: points.iter().map(|point| point.t).collect(),
            loss: column(|point| point.loss),
            batch_latency: column(|point| point.batch_latency),
            cpu: column(|point| point.cpu),
            limit: column(|point| point.limit),
            chosen: column(|point| point.chosen),
        }
    }
}

impl Open {
    fn at(began: f64) -> Self {
        let [loss, batch_latency, cpu] = [Mean::default(); 3];
        Self { began, last: Point::default(), loss, batch_latency, cpu }
    }

    fn add(&mut self, t: f64, job: &JobView) {
        self.last = Point { t, limit: job.limit, chosen: job.chosen, ..Point::default() };
        self.loss.add(job.loss);
        self.batch_latency.add(job.batch_latency);
        self.cpu.add(job.cpu);
    }

    fn point(self) -> Point {
        let (loss, batch_latency) = (self.loss.value(), self.batch_latency.value());
        Point { loss, batch_latency, cpu: self.cpu.value(), ..self.last }
    }
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.sum += value;
            self.count += 1.0;
        }
    }

    fn value(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

fn middle(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| f64::midpoint(a, b)).or(a).or(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shows(loss: Option<f64>, limit: f64) -> JobView {
        JobView { loss, limit: Some(limit), ..JobView::default() }
    }

    #[test]
    fn values_within_a_second_become_one_point() {
        let mut series = Series::default();
        for (t, loss, limit) in [(5.1, Some(4.0), 1.0), (5.4, None, 0.5), (5.9, Some(1.0), 0.25)] {
            series.add(t, &shows(loss, limit));
        }
        series.add(6.0, &shows(None, 0.25));
        let figures = series.figures("vae");
        assert_eq!(figures.t, [5.9, 6.0]);
        assert_eq!(figures.loss, [Some(2.5), None]);
        assert_eq!(figures.limit, [Some(0.25), Some(0.25)]);
        assert_eq!(figures.cpu, [None, None], "unknown is not 0");
    }

    #[test]
    fn two_hours_fit_into_the_fixed_number_of_points() {
        let mut series = Series::default();
        for second in 0..20_000_u32 {
            let t = f64::from(second);
            series.add(t, &shows(Some(t), 1.0));
        }
        let figures = series.figures("vae");
        assert!(
            (figures.width - MAX_WIDTH).abs() < f64::EPSILON && figures.t.len() <= MAX_POINTS + 1
        );
        assert!((figures.t[figures.t.len() - 1] - 19_999.0).abs() < f64::EPSILON);
        let first = figures.t[0];
        assert!((12_700.0..12_900.0).contains(&first), "{first}");
        for (t, loss) in figures.t.iter().zip(&figures.loss) {
            assert!((t - loss.unwrap()).abs() <= MAX_WIDTH, "{loss:?} is at {t}");
        }
    }

    proptest! {
        #[test]
        fn times_are_sorted_and_means_stay_within_the_values(
            looks in prop::collection::vec((0.0..40.0_f64, prop::option::of(-1.0..1.0_f64)), 1..900)
        ) {
            let mut series = Series::default();
            let mut t = 0.0;
            for (step, loss) in looks {
                t += step;
                series.add(t, &shows(loss, 1.0));
            }
            let figures = series.figures("vae");
            prop_assert!(figures.t.is_sorted() && figures.t.len() <= MAX_POINTS + 1);
            prop_assert_eq!(figures.t.len(), figures.loss.len());
            prop_assert!(figures.loss.iter().flatten().all(|loss| loss.abs() <= 1.0));
        }
    }
}
