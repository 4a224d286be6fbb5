use paceline_wire::Validation;

use super::*;
use crate::hot::histogram::Histogram;
use crate::signals::samples::{STARTED, progress};

/// A job that reports, as readings show it.
struct Reports {
    progress: Progress,
    durations: Histogram,
    chart: Chart,
}

impl Reports {
    fn new() -> Self {
        Self::resumed(progress())
    }

    fn resumed(progress: Progress) -> Self {
        let durations = Histogram::new();
        let chart = Chart::new(&progress, &durations.counts());
        Self { progress, durations, chart }
    }

    fn report(&mut self, loss: f64, millis: u64) {
        self.progress.step = Some(self.progress.step.unwrap_or(0) + 1);
        self.progress.eval.count += 1;
        self.progress.eval.sum += loss;
        self.progress.batch_latency.count += 1;
        self.durations.record(1_000_000 * millis);
    }

    fn validate(&mut self, value: f64) {
        let count = 1 + validations(&self.progress);
        self.progress.validation =
            Some(Validation { value, best: value, count, updated_at: self.progress.now });
    }

    fn read_at(&mut self, at: f64) {
        self.progress.now = STARTED + at;
        self.chart.add(&self.progress, &self.durations.counts(), || Some(0.5));
    }

    fn past(&self, after: f64) -> History {
        self.chart.read(&self.progress, after)
    }
}

#[test]
fn point_holds_what_was_reported_between_two_readings() {
    let mut job = Reports::new();
    job.read_at(0.5);
    for (loss, millis) in [(4.0, 10), (2.0, 30)] {
        job.report(loss, millis);
    }
    job.read_at(1.0);
    job.read_at(2.0);
    job.validate(3.5);
    job.report(1.0, 20);
    job.read_at(3.0);
    let past = job.past(0.0);
    assert_eq!((past.schema, past.instance.as_str()), (SCHEMA, "0"));
    assert_eq!(past.from, [STARTED, STARTED + 1.0], "a reading without news makes no point");
    assert_eq!(past.to, [STARTED + 1.0, STARTED + 3.0]);
    assert_eq!(past.step, [Some(2), Some(3)]);
    assert_eq!(past.loss, [Some(3.0), Some(1.0)]);
    assert_eq!((past.validation, past.loss_smoothed), (vec![None, Some(3.5)], vec![Some(0.5); 2]));
    let near = |value: Option<f64>, seconds: f64| (value.unwrap() / seconds - 1.0).abs() < 0.02;
    assert!(near(past.batch_p50[0], 0.01) && near(past.batch_p99[0], 0.03));
    assert!(near(past.batch_p50[1], 0.02) && near(past.batch_p95[1], 0.02));
}

#[test]
fn read_after_a_time_has_the_points_that_end_later() {
    let mut job = Reports::new();
    for second in 1..=4_u32 {
        job.report(1.0, 1);
        job.read_at(f64::from(second));
    }
    let last = job.past(0.0).to[1];
    assert_eq!(job.past(last).to, [STARTED + 3.0, STARTED + 4.0]);
    assert_eq!(job.past(STARTED + 4.0).to, Vec::<f64>::new());
}

#[test]
fn resumed_counts_are_not_in_the_first_point() {
    let mut before = progress();
    (before.eval.count, before.eval.sum, before.step) = (1000, 9000.0, Some(1000));
    let mut job = Reports::resumed(before);
    job.report(2.0, 1);
    job.read_at(1.0);
    assert_eq!((job.past(0.0).loss, job.past(0.0).step), (vec![Some(2.0)], vec![Some(1001)]));
}

/// A loss of `mean` in a second that ends at `to`.
fn second(to: f64, mean: f64, p99: f64) -> Point {
    Point {
        from: to - 1.0,
        to,
        step: Some(1),
        losses: Some(Losses { count: 1, mean, low: mean, high: mean }),
        smoothed: Some(1.0 / 3.0),
        validation: None,
        batches: Some(Batches { count: 1, p50: 0.01, p95: 0.01, p99 }),
        readings: 1,
    }
}

#[test]
fn day_of_training_is_whole_and_under_two_megabytes() {
    let mut job = Reports::new();
    let mut sum = 0.0;
    for at in 1..=86_400 {
        let loss = 10.0 / f64::from(at) + if at == 40_000 { 5.0 } else { 0.0 };
        sum += loss;
        let slowest = if at == 30_000 { 0.9 } else { 0.02 };
        job.chart.push(second(f64::from(at), loss, slowest));
        let (points, room) = (job.chart.points.len(), job.chart.points.capacity());
        assert!(points <= CAPACITY && room * size_of::<Point>() < 500_000, "{points} {room}");
    }
    let past = job.past(0.0);
    assert!(past.to.len() > CAPACITY / 3, "{} points", past.to.len());
    assert_eq!((past.from[0], *past.to.last().unwrap()), (STARTED, STARTED + 86_400.0));
    assert_eq!(past.from[1..], past.to[..past.to.len() - 1], "there is no gap");
    let spans: Vec<f64> = past.from.iter().zip(&past.to).map(|(from, to)| to - from).collect();
    assert!(spans[..spans.len() - 1].iter().all(|span| (span / spans[0] - 1.0).abs() < 1e-9));
    let largest = |values: &[Option<f64>]| values.iter().flatten().copied().fold(0.0, f64::max);
    let (highest, slowest) = (largest(&past.loss_high), largest(&past.batch_p99));
    assert!(highest > 5.0 && slowest > 0.88, "a short rise stays visible: {highest} {slowest}");
    let losses = job.chart.points.iter().filter_map(|point| point.losses);
    let total: f64 = losses.map(|losses| losses.mean * number(losses.count)).sum();
    assert!((total - sum).abs() < 1e-6, "{total} {sum}");
    let json = serde_json::to_string(&past).unwrap();
    assert!(json.len() < 400_000, "{} bytes", json.len());
}

#[test]
fn losses_after_a_huge_one_are_the_recent_ones() {
    let mut job = Reports::new();
    for (loss, recent, at) in [(1e20, 1e20, 1.0), (0.5, 5e19, 2.0), (0.5, 0.5, 3.0)] {
        job.report(loss, 1);
        job.progress.eval.value = Some(recent);
        job.read_at(at);
    }
    assert_eq!(job.past(0.0).loss, [Some(1e20), None, Some(0.5)]);
}

#[test]
fn extreme_losses_are_published_as_finite_numbers() {
    let mut job = Reports::new();
    for (loss, at) in [(1e280, 1.0), (-1e280, 2.0), (0.0, 3.0), (1e-300, 4.0)] {
        job.report(loss, 1);
        job.read_at(at);
    }
    assert!(job.past(0.0).loss.iter().flatten().all(|loss| loss.is_finite()));
}
