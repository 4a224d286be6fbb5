//! The engine's own stream of statistics: the way to a container's use where its control group
//! cannot be read. It is a thousand times as dear as a file and a second old.

use bollard::Docker;
use bollard::models::ContainerStatsResponse;
use bollard::query_parameters::StatsOptionsBuilder;
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::cgroup::Used;

/// The latest statistics of one container. The stream ends when this is dropped.
#[derive(Debug)]
pub struct Stats {
    latest: watch::Receiver<Option<Used>>,
    _stream: AbortOnDropHandle<()>,
}

impl Stats {
    /// Opens the stream of container `id`.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub fn follow(docker: Docker, id: String) -> Self {
        let (sender, latest) = watch::channel(None);
        let task = tokio::spawn(async move {
            let options = StatsOptionsBuilder::default().stream(true).build();
            let mut stream = std::pin::pin!(docker.stats(&id, Some(options)));
            while let Some(Ok(stats)) = stream.next().await {
                if let Some(used) = used(&stats) {
                    sender.send_replace(Some(used));
                }
            }
        });
        Self { latest, _stream: AbortOnDropHandle::new(task) }
    }

    /// The last statistics that came.
    pub fn latest(&self) -> Option<Used> {
        *self.latest.borrow()
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact below 2^53 ns")]
fn used(stats: &ContainerStatsResponse) -> Option<Used> {
    /// Docker's own period, in seconds: the stream does not tell another.
    const PERIOD: f64 = 0.1;
    let cpu = stats.cpu_stats.as_ref()?;
    let throttled = cpu.throttling_data.as_ref().and_then(|data| data.throttled_periods);
    Some(Used {
        cpu_seconds: cpu.cpu_usage.as_ref()?.total_usage? as f64 / 1e9,
        throttled_seconds: throttled.unwrap_or(0) as f64 * PERIOD,
        memory: stats.memory_stats.as_ref().and_then(|memory| memory.usage),
    })
}
