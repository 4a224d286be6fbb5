use crate::unit::{Moment, saturate};

/// One reading of a job's resource usage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// CPU time since its container began, in seconds.
    pub cpu_seconds: f64,
    /// Time throttled at its cap since its container began, in seconds.
    pub throttled_seconds: Option<f64>,
    /// Memory in use, as a fraction of the node's.
    pub memory: Option<f64>,
}

/// A reading and when it was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedReading {
    pub(super) at: Moment,
    pub(super) reading: Reading,
}

impl TimedReading {
    /// Whether the counters restarted after `before`.
    pub(super) fn restarted_after(&self, before: &Self) -> bool {
        self.reading.cpu_seconds < before.reading.cpu_seconds
    }

    /// The mean usage since `before`, as a fraction of a node with `cpus` CPUs.
    pub(super) fn usage_since(&self, before: &Self, cpus: f64) -> Option<f64> {
        let used = self.reading.cpu_seconds - before.reading.cpu_seconds;
        self.rate(before, used).map(|rate| saturate(rate / cpus))
    }

    /// The fraction of the time since `before` in which the job was throttled.
    pub(super) fn throttled_since(&self, before: &Self) -> Option<f64> {
        let stood = self.reading.throttled_seconds? - before.reading.throttled_seconds?;
        self.rate(before, stood).map(|rate| saturate(rate).clamp(0.0, 1.0))
    }

    fn rate(&self, before: &Self, grown: f64) -> Option<f64> {
        let seconds = self.at.seconds_since(before.at);
        (seconds > 0.0).then(|| grown / seconds)
    }
}
