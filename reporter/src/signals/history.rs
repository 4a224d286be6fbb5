//! A job's past in a bounded number of buckets.
//!
//! The reporter's own thread pushes a sample a few times a second. When the record is full, two
//! neighbours are merged, so a run of any length fits. Both ends of the run stay finer than its middle.

use paceline_wire::mean_or_recent;

use super::bucket::Bucket;
use super::number::{finite, number};
use super::scatter::Scatter;

/// The most buckets: 22 KiB.
const CAPACITY: usize = 256;
/// The shortest and the longest time that [`History::wanted_period`] asks for, in seconds.
const PERIODS: (f64, f64) = (0.25, 1.0);
/// A longer time between two samples, in seconds, means that the whole process was stopped.
const LATE: f64 = 10.0;
/// A step that takes this many times the typical time, and [`LONG_STEP`], includes a pause.
const FAR_TOO_LONG: f64 = 8.0;
/// See [`FAR_TOO_LONG`], in seconds.
const LONG_STEP: f64 = 2.0;

/// A job's reports up to one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Seconds since the start, by a clock that never goes back.
    pub(crate) at: f64,
    /// Steps so far.
    pub(crate) step: u64,
    /// Finite losses so far.
    pub(crate) count: u64,
    /// Sum of the finite losses.
    pub(crate) sum: f64,
    /// Mean of the last few of them.
    pub(crate) recent: Option<f64>,
    /// Refused losses so far.
    pub(crate) rejected: u64,
    /// Whether the loop reports that it evaluates or writes a checkpoint.
    pub(crate) paused: bool,
}

/// The record of a job's past.
#[derive(Debug)]
pub(crate) struct History {
    buckets: Vec<Bucket>,
    last: Option<Sample>,
    scatter: Scatter,
    /// Steps since the start of the record. A step number that goes back does not undo any.
    steps: f64,
    /// Time of the last report, as far as the samples show.
    active_at: Option<f64>,
    /// Seconds since then in an announced pause, or in which the whole process was stopped.
    paused: f64,
    /// The rough duration of a step.
    typical_gap: f64,
    /// Seconds of the current announced pause.
    pause: f64,
    longest_pause: f64,
    nonfinite: bool,
    /// Whether it continues the reports of an earlier process.
    continues: bool,
}

impl History {
    /// An empty record.
    pub(crate) fn new() -> Self {
        Self {
            // All the memory that it will ever need.
            buckets: Vec::with_capacity(CAPACITY),
            last: None,
            scatter: Scatter::default(),
            steps: 0.0,
            active_at: None,
            paused: 0.0,
            typical_gap: f64::INFINITY,
            pause: 0.0,
            longest_pause: 0.0,
            nonfinite: false,
            continues: false,
        }
    }

    /// A record that begins after the reports up to `before`: those of an earlier process, whose times are
    /// not known.
    pub(crate) fn after(before: Sample) -> Self {
        Self { last: Some(before), continues: true, ..Self::new() }
    }

    /// Adds a sample. One that is older than the last, or not finite, is ignored.
    pub(crate) fn push(&mut self, sample: Sample) {
        let last = self.last.unwrap_or_else(|| before(sample));
        if !(sample.at.is_finite() && sample.sum.is_finite() && sample.at >= last.at) {
            return;
        }
        self.last = Some(sample);
        let steps = number(sample.step.saturating_sub(last.step));
        let count = number(sample.count.saturating_sub(last.count));
        let rejected = number(sample.rejected.saturating_sub(last.rejected));

        self.pass(last, sample, steps);
        if steps + count + rejected <= 0.0 {
            return;
        }
        if count + rejected > 0.0 {
            // Which of them came last is not known here, so the majority decides.
            self.nonfinite = rejected > count;
        }
        let from = self.steps;
        self.steps += steps;
        let (earlier, now) = ((last.count, last.sum), (sample.count, sample.sum));
        let mean = mean_or_recent(earlier, now, sample.recent);
        // The time until the first report is not a measure of the steps.
        let (from_at, paused) = self.active_at.map_or((sample.at, 0.0), |at| (at, self.paused));
        let mut bucket = Bucket {
            from,
            to: self.steps,
            from_at,
            to_at: sample.at,
            paused,
            gap: 0.0,
            count: if mean.is_some() { count } else { 0.0 },
            mean: mean.unwrap_or(0.0),
            scatter: 0.0,
            triples: 0.0,
            samples: 1.0,
        };
        self.find_pause(&mut bucket);
        if let Some(scatter) = self.scatter.next(&bucket) {
            (bucket.scatter, bucket.triples) = (scatter, 1.0);
        }
        self.active_at = Some(sample.at);
        self.paused = 0.0;
        if self.buckets.len() >= CAPACITY {
            self.merge();
        }
        self.buckets.push(bucket);
    }

    /// How long to wait before the next sample, in seconds.
    pub(crate) fn wanted_period(&self) -> f64 {
        let (shortest, longest) = PERIODS;
        let age = self.last.map_or(0.0, |last| last.at);
        (age / 256.0).clamp(shortest, longest)
    }

    /// The buckets, oldest first. Some of them may hold no loss.
    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The last sample.
    pub(crate) fn last(&self) -> Option<Sample> {
        self.last
    }

    /// Time of the last report as far as the samples show, in seconds since the start.
    pub(crate) fn active_at(&self) -> Option<f64> {
        self.active_at
    }

    /// Whether it continues the reports of an earlier process.
    pub(crate) fn continues(&self) -> bool {
        self.continues
    }

    /// Seconds since then in which no step was expected.
    pub(crate) fn paused(&self) -> f64 {
        self.paused
    }

    /// The rough duration of a step, in seconds.
    pub(crate) fn typical_gap(&self) -> Option<f64> {
        finite(self.typical_gap)
    }

    /// The longest announced pause in seconds.
    pub(crate) fn longest_pause(&self) -> f64 {
        self.longest_pause
    }

    /// Whether the last report was not a finite number.
    pub(crate) fn nonfinite(&self) -> bool {
        self.nonfinite
    }

    /// The buckets of the later half of the time since the first report: they show everything that
    /// recurs, while single events are forgotten in the end.
    pub(crate) fn later_half(&self) -> &[Bucket] {
        let ends = self.buckets.first().zip(self.buckets.last());
        let middle = ends.map_or(0.0, |(first, last)| f64::midpoint(first.from_at, last.to_at));
        let from = self.buckets.partition_point(|bucket| bucket.to_at < middle);
        // The first bucket has no time of its own.
        self.buckets.get(from.max(1)..).unwrap_or_default()
    }

    /// Accounts for the time between two samples.
    fn pass(&mut self, last: Sample, sample: Sample, steps: f64) {
        let passed = sample.at - last.at;
        if sample.paused || last.paused {
            let both = sample.paused && last.paused;
            self.paused += if both { passed } else { 0.5 * passed };
            self.pause += passed;
            self.longest_pause = self.longest_pause.max(self.pause);
        } else if passed > LATE {
            let stepping =
                if self.typical_gap.is_finite() { self.typical_gap * steps } else { 0.0 };
            self.paused += (passed - stepping).max(0.0);
        }
        if !sample.paused {
            self.pause = 0.0;
        }
    }

    /// Finds a pause that was not announced, such as an evaluation between two epochs.
    fn find_pause(&mut self, bucket: &mut Bucket) {
        if self.active_at.is_none() {
            return;
        }
        bucket.gap = bucket.active();
        let per_step = bucket.gap / bucket.steps().max(1.0);
        let limit = FAR_TOO_LONG * self.typical_gap;
        if bucket.gap > LONG_STEP && per_step > limit {
            bucket.paused += bucket.gap - self.typical_gap * bucket.steps().max(1.0);
        }
        // Steps that stay so slow are not pauses: after a few of them this is their typical time.
        self.typical_gap = if self.typical_gap.is_finite() {
            0.8 * self.typical_gap + 0.2 * per_step.min(limit.max(LONG_STEP))
        } else {
            per_step
        };
    }

    /// Merges the two neighbours that are the smallest for their position: the target size grows
    /// like the square root of the distance to the nearer end.
    fn merge(&mut self) {
        let total: f64 = self.buckets.iter().map(|bucket| bucket.samples).sum();
        let mut before = 0.0;
        let mut best: Option<(usize, f64)> = None;
        for (at, pair) in self.buckets.windows(2).enumerate() {
            let [left, right] = pair else { continue };
            let middle = before + left.samples;
            let excess = (left.samples + right.samples) / middle.min(total - middle).sqrt();
            if best.is_none_or(|(_, least)| excess < least) {
                best = Some((at, excess));
            }
            before = middle;
        }
        let Some((at, _)) = best else { return };
        let right = self.buckets.remove(at + 1);
        if let Some(left) = self.buckets.get_mut(at) {
            left.absorb(&right);
        }
    }
}

/// The sample that is assumed before the first one.
fn before(first: Sample) -> Sample {
    let reports = first.count.saturating_add(first.rejected);
    let step = first.step.saturating_sub(reports);
    Sample { at: first.at.min(0.0), step, paused: first.paused, ..Sample::default() }
}

#[cfg(test)]
mod tests;
