//! The results of inference.

use std::time::Duration;

use super::Served;

/// The batches that have been served.
#[derive(Clone, Debug)]
pub struct Summary {
    target: Option<Duration>,
    /// Their latencies, at most one for each batch of the run.
    latencies: Vec<Duration>,
    last: Option<Served>,
    refused: u64,
}

impl Summary {
    /// An empty summary.
    pub(super) fn new(target: Option<Duration>) -> Self {
        Self { target, latencies: Vec::new(), last: None, refused: 0 }
    }

    pub(super) fn add(&mut self, served: Served) {
        self.latencies.push(served.latency);
        self.last = Some(served);
    }

    pub(super) fn refused(&mut self, batches: u64) {
        self.refused = batches;
    }

    /// The number of served batches.
    pub fn served(&self) -> u64 {
        u64::try_from(self.latencies.len()).unwrap_or(u64::MAX)
    }

    /// The log line of the last batch.
    pub(super) fn line(&self, batches: u64) -> String {
        let Some(Served { latency, service, waiting }) = self.last else { return String::new() };
        let (latency, service) = (latency.as_secs_f64(), service.as_secs_f64());
        let number = self.served();
        format!(
            "Inference: {number}/{batches}\tlatency: {latency:.4} s\tservice: {service:.4} s\tqueue: {waiting}"
        )
    }

    /// The last line of the log.
    pub fn finish(&self) -> String {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let quantile = |percent: usize| {
            let position = (sorted.len() * percent).div_ceil(100).max(1) - 1;
            sorted.get(position).map_or(f64::NAN, Duration::as_secs_f64)
        };
        let count = u32::try_from(sorted.len()).unwrap_or(u32::MAX);
        let sum = sorted.iter().sum::<Duration>().as_secs_f64();
        let (mean, median, late) = (sum / f64::from(count), quantile(50), quantile(95));
        let within = self.target.map(|target| {
            let within = sorted.partition_point(|latency| *latency <= target);
            format!(" within_target={within}")
        });
        let refused = (self.refused > 0).then(|| format!(" turned_away={}", self.refused));
        let [within, refused] = [within, refused].map(Option::unwrap_or_default);
        format!(
            "finished: batches={count} mean_latency={mean:.4} median={median:.4} p95={late:.4}\
             {within}{refused}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(target: Option<u64>, latencies: impl Iterator<Item = u64>) -> Summary {
        let mut summary = Summary::new(target.map(Duration::from_millis));
        for latency in latencies.map(Duration::from_millis) {
            summary.add(Served { latency, service: Duration::from_millis(5), waiting: 3 });
        }
        summary
    }

    #[test]
    fn each_batch_has_a_line() {
        let line = summary(None, [40, 20].into_iter()).line(9);
        assert_eq!(line, "Inference: 2/9\tlatency: 0.0200 s\tservice: 0.0050 s\tqueue: 3");
    }

    #[test]
    fn last_line_has_mean_quantiles_and_missed_targets() {
        let mut whole = summary(Some(90), (1..=100).rev());
        let line =
            "finished: batches=100 mean_latency=0.0505 median=0.0500 p95=0.0950 within_target=90";
        assert_eq!(whole.finish(), line);
        whole.refused(7);
        assert_eq!(whole.finish(), format!("{line} turned_away=7"));
    }

    #[test]
    fn latency_without_batches_is_nan() {
        let none = summary(None, std::iter::empty()).finish();
        assert_eq!(none, "finished: batches=0 mean_latency=NaN median=NaN p95=NaN");
    }
}
