//! The container engine's stream of events. An event only wakes the controller: its content is not
//! trusted, and the state is read afterwards.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paceline_api::labels::ENABLE;
use paceline_runtime::{ContainerEvent, Runtime};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

/// How long to wait before a stream that ended is opened again.
const STREAM_BACKOFF: Duration = Duration::from_secs(1);
/// The most containers that are remembered one by one; beyond that, all count as touched.
const MAX_TOUCHED: usize = 4096;

/// Follows the starts and ends of opted-in containers for as long as this lives.
#[derive(Debug)]
pub(super) struct EngineEvents {
    shared: Arc<Shared>,
    _stream: AbortOnDropHandle<()>,
}

/// The containers that events were about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Touched {
    /// Possibly any container: events may have been lost.
    Any,
    /// None.
    #[default]
    None,
    /// These ids.
    These(BTreeSet<String>),
}

#[derive(Debug, Default)]
struct Shared {
    wake: Notify,
    touched: Mutex<Touched>,
    /// Containers without the label that were opted in by an order.
    adopted: Mutex<BTreeSet<String>>,
}

impl EngineEvents {
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(super) fn follow(runtime: Runtime) -> Self {
        let shared = Arc::new(Shared::default());
        let stream = tokio::spawn(listen(runtime, Arc::clone(&shared)));
        Self { shared, _stream: AbortOnDropHandle::new(stream) }
    }

    /// Waits until some container has changed since the last call.
    pub(super) async fn changed(&self) {
        self.shared.wake.notified().await;
    }

    /// The containers that have changed since the last call.
    pub(super) fn take(&self) -> Touched {
        std::mem::take(&mut *lock(&self.shared.touched))
    }

    /// Events of these containers count as well, although they lack the label.
    pub(super) fn adopt(&self, ids: &BTreeSet<String>) {
        lock(&self.shared.adopted).clone_from(ids);
    }
}

impl Touched {
    /// Whether container `id` may have changed.
    pub(super) fn holds(&self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::None => false,
            Self::These(ids) => ids.contains(id),
        }
    }

    /// Adds the other containers.
    pub(super) fn add_all(&mut self, others: Self) {
        match others {
            Self::Any => *self = Self::Any,
            Self::None => {}
            Self::These(ids) => ids.into_iter().for_each(|id| self.add(id)),
        }
    }

    fn add(&mut self, id: String) {
        *self = match std::mem::take(self) {
            Self::None => Self::These([id].into()),
            Self::These(mut ids) if ids.len() < MAX_TOUCHED => {
                ids.insert(id);
                Self::These(ids)
            }
            Self::These(_) | Self::Any => Self::Any,
        };
    }
}

impl Shared {
    fn ingest(&self, ContainerEvent { id, labels }: ContainerEvent) {
        let labelled = labels.get(ENABLE).is_some_and(|value| value == "true");
        if labelled || lock(&self.adopted).contains(&id) {
            lock(&self.touched).add(id);
            self.wake.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(runtime: Runtime, shared: Arc<Shared>) {
    loop {
        runtime.follow(|event| shared.ingest(event)).await;
        warn!("the container engine's event stream ended: reconnecting");
        tokio::time::sleep(STREAM_BACKOFF).await;
        *lock(&shared.touched) = Touched::Any;
        shared.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_touched_containers_become_any() {
        let mut touched = Touched::default();
        assert!(!touched.holds("a"));
        touched.add("a".to_owned());
        assert!(touched.holds("a") && !touched.holds("b"));
        for id in 0..=MAX_TOUCHED {
            touched.add(id.to_string());
        }
        assert_eq!(touched, Touched::Any);
        assert!(touched.holds("b"));
    }
}
