use crate::unit::{Moment, saturate};

/// One reading of what a job has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// CPU time since it began, in seconds.
    pub cpu_seconds: f64,
    /// Time that it stood at its cap since it began, in seconds.
    pub throttled_seconds: Option<f64>,
    /// Memory in use, as a fraction of the node's.
    pub memory: Option<f64>,
}

/// A reading and when it was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) at: Moment,
    pub(super) reading: Reading,
}

impl Taken {
    /// Whether the counters began anew after `before`.
    pub(super) fn restarted_after(&self, before: &Self) -> bool {
        self.reading.cpu_seconds < before.reading.cpu_seconds
    }

    /// The mean use of a node with `cpus` CPUs since `before`.
    pub(super) fn usage_since(&self, before: &Self, cpus: f64) -> Option<f64> {
        let used = self.reading.cpu_seconds - before.reading.cpu_seconds;
        self.rate(before, used).map(|rate| saturate(rate / cpus))
    }

    /// The share of the time since `before` that the job stood at its cap.
    pub(super) fn throttled_since(&self, before: &Self) -> Option<f64> {
        let stood = self.reading.throttled_seconds? - before.reading.throttled_seconds?;
        self.rate(before, stood).map(|rate| saturate(rate).clamp(0.0, 1.0))
    }

    fn rate(&self, before: &Self, grown: f64) -> Option<f64> {
        let seconds = self.at.seconds_since(before.at);
        (seconds > 0.0).then(|| grown / seconds)
    }
}
