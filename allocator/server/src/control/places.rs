//! How many connections are open at the same time, and whose.
//!
//! Root and the user who runs the allocator have places of their own, so that no other user can keep
//! them from giving orders. Other users share the rest. Of those, some more wait, and any beyond that
//! are closed at once.

use std::sync::Arc;

use paceline_api::live::Who;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many clients of each kind are served at the same time.
const MAX_CONNECTIONS: usize = 16;
/// How many clients of each kind are connected at the same time, served or waiting.
const MAX_CLIENTS: usize = 128;

/// The places of all connections.
#[derive(Debug)]
pub(super) struct Places {
    /// The user id of the allocator's process.
    owner: u32,
    privileged: Kind,
    others: Kind,
}

#[derive(Debug)]
struct Kind {
    clients: Arc<Semaphore>,
    served: Arc<Semaphore>,
}

/// A connection's place. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    served: Arc<Semaphore>,
    _client: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(owner: u32) -> Self {
        let kind = || Kind {
            clients: Arc::new(Semaphore::new(MAX_CLIENTS)),
            served: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        };
        Self { owner, privileged: kind(), others: kind() }
    }

    /// A place for a client; `None` if its kind has too many.
    pub(super) fn take(&self, who: Who) -> Option<Place> {
        let is_privileged = [0, self.owner].contains(&who.uid);
        let kind = if is_privileged { &self.privileged } else { &self.others };
        let client = Arc::clone(&kind.clients).try_acquire_owned().ok()?;
        Some(Place { served: Arc::clone(&kind.served), _client: client })
    }
}

impl Place {
    /// Waits until it is this client's turn, which lasts as long as the answer is kept.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.served).acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn who(uid: u32) -> Who {
        Who { uid, pid: None }
    }

    #[tokio::test(start_paused = true)]
    async fn crowd_of_another_user_delays_neither_root_nor_the_owner() {
        let places = Places::new(1000);
        let mut crowd: Vec<Place> = (0..600).filter_map(|_| places.take(who(1001))).collect();
        assert_eq!(crowd.len(), MAX_CLIENTS);
        assert!(places.take(who(1002)).is_none());
        let mut turns = Vec::new();
        for place in crowd.iter().take(MAX_CONNECTIONS) {
            turns.push(place.turn().await.unwrap());
        }
        let waits = crowd.pop().unwrap();
        let short = Duration::from_secs(1);
        assert!(timeout(short, waits.turn()).await.is_err());
        for uid in [0, 1000] {
            let place = places.take(who(uid)).unwrap();
            assert!(timeout(short, place.turn()).await.is_ok(), "{uid}");
        }
        turns.clear();
        assert!(timeout(short, waits.turn()).await.is_ok());
        drop((crowd, waits));
        assert!(places.take(who(1002)).is_some());
    }
}
