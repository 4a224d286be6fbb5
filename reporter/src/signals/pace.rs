//! The pace of a job, and when it will have made all its steps.

use super::bucket::Bucket;
use super::history::History;
use super::number::{finite, number};

/// The rate is measured over at least this many seconds...
const SECONDS: f64 = 10.0;
/// ...and this many steps, if there are as many.
const STEPS: f64 = 10.0;

/// The pace of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    /// Recent steps per second of training.
    pub(crate) rate: f64,
    /// Seconds of pause for each second of training, over the later half of the run.
    pub(crate) pauses: f64,
}

impl Pace {
    /// The recent pace, `now` seconds after the start.
    ///
    /// The rate excludes pauses, so that it does not fall at each evaluation and follows a change of the
    /// job's CPU share within ten seconds. Estimates of remaining time add the pauses, at their share of
    /// the time so far.
    pub(crate) fn new(history: &History, now: f64) -> Option<Self> {
        let (mut seconds, mut steps, mut longest) = (0.0, 0.0, 0.0_f64);
        // The first bucket has no time of its own.
        for bucket in history.buckets().iter().skip(1).rev() {
            if seconds >= SECONDS && steps >= STEPS {
                break;
            }
            seconds += bucket.active();
            steps += bucket.steps();
            longest = longest.max(bucket.gap);
        }
        // A step that already takes longer than all of these lowers the rate before it ends.
        let waited = now - history.active_at()? - history.paused();
        let rate = steps / (seconds + (waited - longest).max(0.0));
        let half = history.later_half();
        let paused: f64 = half.iter().map(|bucket| bucket.paused).sum();
        let active: f64 = half.iter().map(Bucket::active).sum();
        let pauses = finite(paused / active).unwrap_or(0.0);
        (rate.is_finite() && rate > 0.0).then_some(Self { rate, pauses })
    }

    /// Seconds for `steps` more steps, including the usual pauses.
    pub(crate) fn seconds(&self, steps: f64) -> Option<f64> {
        finite(steps / self.rate * (1.0 + self.pauses))
    }
}

/// The fraction of steps done, from 0 to 1.
pub(crate) fn ratio(step: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| (number(step) / number(total)).min(1.0))
}

#[cfg(test)]
mod tests;
