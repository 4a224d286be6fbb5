//! One container's figures since the sample before, for sample files and for people.

use paceline_cgroup::Used;
use paceline_policy::Moment;
use paceline_policy::signal::mean_between;
use paceline_policy::unit::counter;
use paceline_wire::Progress;

use crate::observe::meters::Metered;

/// The figures of the latest sample; an unknown one is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Mean loss.
    pub(super) loss: Option<f64>,
    /// Mean duration of a batch.
    pub(super) batch_latency: Option<f64>,
    /// Mean use of CPU, as a fraction of the node.
    pub(super) cpu: Option<f64>,
    /// Fraction of the time in which it was throttled.
    pub(super) throttled: Option<f64>,
    /// The container's total use, and when it was read.
    pub(super) used: Option<(Moment, Used)>,
    pub(super) metered: Metered,
}

impl Figures {
    /// Memory in use, in bytes.
    pub(super) fn memory(&self) -> Option<f64> {
        self.used.and_then(|(_, used)| used.memory).map(counter)
    }
}

/// The counters of the sample before, from which the next one takes differences.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    used: Option<(Moment, Used)>,
    counters: Option<Counters>,
}

/// Counts and sums that one process has reported.
#[derive(Debug)]
struct Counters {
    instance: String,
    losses: (u64, f64),
    batches: (u64, f64),
}

impl Baseline {
    /// The figures of a sample at `now` on a node with `cpus` CPUs. Keeps its counters for the next.
    pub(super) fn figures(
        &mut self,
        now: Moment,
        cpus: f64,
        (used, metered): (Option<Used>, Metered),
        progress: Option<&Progress>,
    ) -> Figures {
        let (cpu, throttled) = used.and_then(|used| self.rates(now, cpus, used)).unzip();
        let (loss, batch_latency) =
            progress.map(|progress| self.means(progress)).unwrap_or_default();
        let used = used.map(|used| (now, used));
        Figures { loss, batch_latency, cpu, throttled, used, metered }
    }

    fn rates(&mut self, now: Moment, cpus: f64, used: Used) -> Option<(f64, f64)> {
        let (from, before) = self.used.replace((now, used))?;
        let passed = now.seconds_since(from);
        let rate = |to: f64, from: f64| (to - from) / passed;
        (passed > 0.0).then(|| {
            let throttled = rate(used.throttled_seconds, before.throttled_seconds);
            (rate(used.cpu_seconds, before.cpu_seconds) / cpus, throttled.clamp(0.0, 1.0))
        })
    }

    /// The means of the losses and batches reported since the last call.
    fn means(&mut self, progress: &Progress) -> (Option<f64>, Option<f64>) {
        let now = Counters {
            instance: progress.instance.clone(),
            losses: (progress.eval.count, progress.eval.sum),
            batches: (progress.batch_latency.count, progress.batch_latency.sum),
        };
        let (losses, batches) = (now.losses, now.batches);
        let before =
            self.counters.replace(now).filter(|before| before.instance == progress.instance);
        let (loss_mark, batch_mark) =
            before.map_or(((0, 0.0), (0, 0.0)), |before| (before.losses, before.batches));
        (mean_between(loss_mark, losses), mean_between(batch_mark, batches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cpu_seconds: f64, throttled_seconds: f64) -> (Option<Used>, Metered) {
        let used = Used { cpu_seconds, throttled_seconds, memory: Some(7) };
        (Some(used), Metered::default())
    }

    #[test]
    fn first_sample_has_no_rates_and_next_one_has() {
        let mut baseline = Baseline::default();
        let first = baseline.figures(Moment::from_seconds(1.0), 2.0, used(5.0, 0.0), None);
        assert_eq!((first.cpu, first.throttled, first.memory()), (None, None, Some(7.0)));
        let second = baseline.figures(Moment::from_seconds(3.0), 2.0, used(7.0, 1.0), None);
        assert_eq!((second.cpu, second.throttled), (Some(0.5), Some(0.5)));
        assert_eq!((second.loss, second.batch_latency), (None, None));
    }
}
