//! The past that the page draws: a bounded number of points, whatever the length of the run.
//!
//! The reporter's own thread adds a reading a few times a second. A point is what was reported between
//! two readings. When there are too many, each two neighbours become one, and later points are made of
//! twice as many readings. So all points of a long run cover about the same time.

use paceline_wire::{History, Progress, SCHEMA, mean_or_recent};

use crate::hot::histogram::Counts;
use crate::signals::number;

/// The most points: some 300 KiB.
const CAPACITY: usize = 2_000;
/// The published digits of a value after its first.
const DIGITS: usize = 5;

/// What was reported in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Point {
    /// Its start and its end, in seconds since the start of the job.
    from: f64,
    to: f64,
    /// The step at its end.
    step: Option<u64>,
    losses: Option<Losses>,
    /// The smoothed loss at its end.
    smoothed: Option<f64>,
    /// The last loss on held-out data.
    validation: Option<f64>,
    batches: Option<Batches>,
    /// The number of readings that it was made of.
    readings: u32,
}

/// The losses of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Losses {
    count: u64,
    mean: f64,
    low: f64,
    high: f64,
}

/// The durations of a point's batches.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Batches {
    count: u64,
    p50: f64,
    p95: f64,
    p99: f64,
}

/// What all reports before a point came to.
#[derive(Debug)]
struct Before {
    at: f64,
    losses: u64,
    sum: f64,
    validations: u64,
    batches: u64,
    durations: Counts,
}

/// The points of a job, oldest first.
#[derive(Debug)]
pub(crate) struct Chart {
    points: Vec<Point>,
    /// The number of readings of a whole point.
    stride: u32,
    before: Before,
}

impl Chart {
    /// An empty past. `progress` and `durations` are from before the first report: a job that resumes
    /// has counts then.
    pub(crate) fn new(progress: &Progress, durations: &Counts) -> Self {
        let mut before = Before::new(progress, durations);
        before.at = 0.0;
        Self { points: Vec::new(), stride: 1, before }
    }

    /// Adds a reading, unless nothing was reported since the one before. `smoothed` computes the smoothed
    /// loss.
    pub(crate) fn add(
        &mut self,
        progress: &Progress,
        durations: &Counts,
        smoothed: impl FnOnce() -> Option<f64>,
    ) {
        let Some(mut point) = self.before.point(progress, durations) else { return };
        point.smoothed = smoothed();
        self.before = Before::new(progress, durations);
        self.push(point);
    }

    fn push(&mut self, point: Point) {
        let open = self.points.last_mut().filter(|last| last.readings < self.stride);
        if let Some(last) = open {
            last.absorb(&point);
            return;
        }
        if self.points.len() >= CAPACITY {
            self.merge();
        }
        self.points.push(point);
    }

    /// Merges each two neighbours.
    fn merge(&mut self) {
        let merged = self.points.chunks(2).filter_map(|pair| {
            let mut first = pair.first()?.clone();
            pair.iter().skip(1).for_each(|second| first.absorb(second));
            Some(first)
        });
        self.points = merged.collect();
        self.stride = self.stride.saturating_mul(2);
    }

    /// The points that end after `after`, in Unix seconds.
    pub(crate) fn read(&self, progress: &Progress, after: f64) -> History {
        let start = progress.started_at;
        let first = self.points.partition_point(|point| millis(start + point.to) <= after);
        let points = self.points.get(first..).unwrap_or_default();
        let all = |value| values(points, value);
        History {
            schema: SCHEMA,
            instance: progress.instance.clone(),
            started_at: start,
            from: times(points, start, |point| point.from),
            to: times(points, start, |point| point.to),
            step: points.iter().map(|point| point.step).collect(),
            loss: all(|point| point.losses.map(|losses| losses.mean)),
            loss_low: all(|point| point.losses.map(|losses| losses.low)),
            loss_high: all(|point| point.losses.map(|losses| losses.high)),
            loss_smoothed: all(|point| point.smoothed),
            validation: all(|point| point.validation),
            batch_p50: all(|point| point.batches.map(|batches| batches.p50)),
            batch_p95: all(|point| point.batches.map(|batches| batches.p95)),
            batch_p99: all(|point| point.batches.map(|batches| batches.p99)),
        }
    }
}

/// One value of each point. Not inlined: a column more adds little to a job's program.
#[inline(never)]
fn values(points: &[Point], value: fn(&Point) -> Option<f64>) -> Vec<Option<f64>> {
    points.iter().map(|point| value(point).map(rounded)).collect()
}

/// One time of each point, in Unix seconds.
#[inline(never)]
fn times(points: &[Point], start: f64, time: fn(&Point) -> f64) -> Vec<f64> {
    points.iter().map(|point| millis(start + time(point))).collect()
}

impl Before {
    fn new(progress: &Progress, durations: &Counts) -> Self {
        Self {
            at: seconds(progress),
            losses: progress.eval.count,
            sum: progress.eval.sum,
            validations: validations(progress),
            batches: progress.batch_latency.count,
            durations: durations.clone(),
        }
    }

    /// What was reported since; `None` if nothing was.
    fn point(&self, progress: &Progress, durations: &Counts) -> Option<Point> {
        let validation = progress.validation.filter(|_| validations(progress) > self.validations);
        let is_new = progress.eval.count > self.losses
            || progress.batch_latency.count > self.batches
            || validation.is_some();
        is_new.then(|| Point {
            from: self.at,
            to: seconds(progress).max(self.at),
            step: progress.step,
            losses: self.losses(progress),
            smoothed: None,
            validation: validation.map(|validation| validation.value),
            batches: self.batches(durations),
            readings: 1,
        })
    }

    fn losses(&self, progress: &Progress) -> Option<Losses> {
        let eval = &progress.eval;
        let mean = mean_or_recent((self.losses, self.sum), (eval.count, eval.sum), eval.value)?;
        let count = eval.count.saturating_sub(self.losses);
        Some(Losses { count, mean, low: mean, high: mean })
    }

    fn batches(&self, durations: &Counts) -> Option<Batches> {
        let new = durations.without(&self.durations);
        let [p50, p95, p99] = [50, 95, 99].map(|percent| new.percentile(percent));
        Some(Batches { count: new.total(), p50: p50?, p95: p95?, p99: p99? })
    }
}

impl Point {
    /// Adds the point that follows.
    fn absorb(&mut self, next: &Self) {
        self.to = next.to;
        self.step = next.step.or(self.step);
        self.losses = merged(self.losses, next.losses, Losses::and);
        self.smoothed = next.smoothed.or(self.smoothed);
        self.validation = next.validation.or(self.validation);
        self.batches = merged(self.batches, next.batches, Batches::and);
        self.readings = self.readings.saturating_add(next.readings);
    }
}

impl Losses {
    fn and(self, next: Self) -> Self {
        Self {
            count: self.count.saturating_add(next.count),
            mean: mix((self.mean, self.count), (next.mean, next.count)),
            low: self.low.min(next.low),
            high: self.high.max(next.high),
        }
    }
}

impl Batches {
    /// Percentiles of both cannot be known from those of each. The largest keeps a slow moment visible.
    fn and(self, next: Self) -> Self {
        Self {
            count: self.count.saturating_add(next.count),
            p50: mix((self.p50, self.count), (next.p50, next.count)),
            p95: self.p95.max(next.p95),
            p99: self.p99.max(next.p99),
        }
    }
}

fn merged<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

/// The mean of two means, each with its count. It cannot overflow.
fn mix((one, ones): (f64, u64), (other, others): (f64, u64)) -> f64 {
    let part = number(others) / (number(ones) + number(others));
    one * (1.0 - part) + other * part
}

fn validations(progress: &Progress) -> u64 {
    progress.validation.map_or(0, |validation| validation.count)
}

fn seconds(progress: &Progress) -> f64 {
    progress.now - progress.started_at
}

/// A time in seconds, to the millisecond.
fn millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

/// A value with six significant digits: more cannot be seen, and would double the answer.
fn rounded(value: f64) -> f64 {
    format!("{value:.DIGITS$e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests;
