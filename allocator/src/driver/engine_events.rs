//! The engine's stream of events, as a nudge to look: what an event says is not believed, what is
//! then seen is.

use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::labels::ENABLE;

/// How long to wait before a broken stream is opened again.
const RETRY: Duration = Duration::from_secs(1);

/// Follows the starts and ends of opted-in containers for as long as this lives.
#[derive(Debug)]
pub(super) struct EngineEvents {
    nudge: Arc<Notify>,
    _stream: AbortOnDropHandle<()>,
}

impl EngineEvents {
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(super) fn follow(docker: Docker) -> Self {
        let nudge = Arc::new(Notify::new());
        let stream = tokio::spawn(listen(docker, Arc::clone(&nudge)));
        Self { nudge, _stream: AbortOnDropHandle::new(stream) }
    }

    /// Returns when something has changed since the last call.
    pub(super) async fn changed(&mut self) {
        self.nudge.notified().await;
    }
}

/// Limits that are written make `update` events, which are not asked for: they are our own.
async fn listen(docker: Docker, nudge: Arc<Notify>) {
    let filters = [
        ("type".to_owned(), vec!["container".to_owned()]),
        ("event".to_owned(), ["start", "die", "rename"].map(str::to_owned).to_vec()),
        ("label".to_owned(), vec![format!("{ENABLE}=true")]),
    ];
    let filters = filters.into_iter().collect();
    loop {
        let options = EventsOptionsBuilder::default().filters(&filters).build();
        let mut events = std::pin::pin!(docker.events(Some(options)));
        while let Some(Ok(_)) = events.next().await {
            nudge.notify_one();
        }
        warn!("the engine's events broke off: they are asked for again");
        tokio::time::sleep(RETRY).await;
        nudge.notify_one();
    }
}
