//! A container's use from its engine's statistics, if its control group cannot be read. They cost a
//! thousand times as much as reading a file, and are up to a second old.

use std::time::Duration;

use paceline_cgroup::Used;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::Runtime;

/// How long to wait before a stream that ended is opened again.
const STREAM_BACKOFF: Duration = Duration::from_secs(1);

/// The latest statistics of one container. The stream is closed when this is dropped.
#[derive(Debug)]
pub struct Stats {
    latest: watch::Receiver<Option<Used>>,
    _stream: AbortOnDropHandle<()>,
}

impl Stats {
    /// Opens the stream of container `id`.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub fn follow(runtime: Runtime, id: String) -> Self {
        let (sender, latest) = watch::channel(None);
        let task = tokio::spawn(async move {
            let mut on_event = |used| {
                sender.send_replace(Some(used));
            };
            loop {
                // An engine may restart, and its stream is bounded.
                runtime.follow_use(&id, &mut on_event).await;
                sleep(STREAM_BACKOFF).await;
            }
        });
        Self { latest, _stream: AbortOnDropHandle::new(task) }
    }

    /// The latest statistics.
    pub fn latest(&self) -> Option<Used> {
        *self.latest.borrow()
    }
}
