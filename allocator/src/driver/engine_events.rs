//! The engine's stream of events, as a nudge to look: what an event says is not believed, what is
//! then seen is.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::Docker;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::labels::ENABLE;

/// How long to wait before a broken stream is opened again.
const RETRY: Duration = Duration::from_secs(1);
/// More containers than these are not remembered one by one.
const MOST: usize = 4096;

/// Follows the starts and ends of opted-in containers for as long as this lives.
#[derive(Debug)]
pub(super) struct EngineEvents {
    shared: Arc<Shared>,
    _stream: AbortOnDropHandle<()>,
}

/// Which containers something happened to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Touched {
    /// Perhaps any: events may have been lost.
    Any,
    /// None.
    #[default]
    None,
    /// These, by id.
    These(BTreeSet<String>),
}

#[derive(Debug, Default)]
struct Shared {
    nudge: Notify,
    touched: Mutex<Touched>,
    /// Containers without the label that were opted in by an order.
    adopted: Mutex<BTreeSet<String>>,
}

impl EngineEvents {
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(super) fn follow(docker: Docker) -> Self {
        let shared = Arc::new(Shared::default());
        let stream = tokio::spawn(listen(docker, Arc::clone(&shared)));
        Self { shared, _stream: AbortOnDropHandle::new(stream) }
    }

    /// Returns when something has changed since the last call.
    pub(super) async fn changed(&self) {
        self.shared.nudge.notified().await;
    }

    /// What has changed since this was last asked.
    pub(super) fn take(&self) -> Touched {
        std::mem::take(&mut *lock(&self.shared.touched))
    }

    /// These containers are listened to as well, though they lack the label.
    pub(super) fn adopt(&self, ids: &BTreeSet<String>) {
        lock(&self.shared.adopted).clone_from(ids);
    }
}

impl Touched {
    /// Whether container `id` is to be looked at.
    pub(super) fn holds(&self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::None => false,
            Self::These(ids) => ids.contains(id),
        }
    }

    /// What was touched before, and this.
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
            Self::These(mut ids) if ids.len() < MOST => {
                ids.insert(id);
                Self::These(ids)
            }
            Self::These(_) | Self::Any => Self::Any,
        };
    }
}

impl Shared {
    fn take_in(&self, event: EventMessage) {
        let Some(actor) = event.actor else { return };
        let Some(id) = actor.id else { return };
        let labels = actor.attributes.unwrap_or_default();
        let labelled = labels.get(ENABLE).is_some_and(|value| value == "true");
        if labelled || lock(&self.adopted).contains(&id) {
            lock(&self.touched).add(id);
            self.nudge.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Limits that are written make `update` events, which are not asked for: they are our own.
async fn listen(docker: Docker, shared: Arc<Shared>) {
    let filters = [
        ("type".to_owned(), vec!["container".to_owned()]),
        ("event".to_owned(), ["start", "die", "rename"].map(str::to_owned).to_vec()),
    ];
    let filters = filters.into_iter().collect();
    loop {
        let options = EventsOptionsBuilder::default().filters(&filters).build();
        let mut events = std::pin::pin!(docker.events(Some(options)));
        while let Some(Ok(event)) = events.next().await {
            shared.take_in(event);
        }
        warn!("the engine's events broke off: they are asked for again");
        tokio::time::sleep(RETRY).await;
        *lock(&shared.touched) = Touched::Any;
        shared.nudge.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_remembered_one_by_one_until_they_are_too_many() {
        let mut touched = Touched::default();
        assert!(!touched.holds("a"));
        touched.add("a".to_owned());
        assert!(touched.holds("a") && !touched.holds("b"));
        for id in 0..=MOST {
            touched.add(id.to_string());
        }
        assert_eq!(touched, Touched::Any);
        assert!(touched.holds("b"));
    }
}
