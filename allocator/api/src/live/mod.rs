//! The interface between the controller and everything that faces people.
//!
//! The controller publishes a [`Snapshot`] after every sample and takes [`Order`]s. The control
//! socket, the web page, the metrics and the command line know only these two.

pub mod order;
pub mod snapshot;
mod words;

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

pub use order::{Answer, Command, Order, Refusal, Who};
pub use snapshot::Snapshot;

/// The most orders that wait for the controller; it refuses one more as busy.
const MAX_QUEUED_ORDERS: usize = 64;

/// The side that faces people: cheap to clone.
#[derive(Clone, Debug)]
pub struct DaemonHandle {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    orders: mpsc::Sender<Order>,
}

/// The controller's side.
#[derive(Debug)]
pub struct DaemonChannels {
    /// The latest snapshot is put here.
    pub snapshots: watch::Sender<Arc<Snapshot>>,
    /// Orders come from here.
    pub orders: mpsc::Receiver<Order>,
}

/// Both sides, beginning with the snapshot before the first sample.
pub fn pair(first: Snapshot) -> (DaemonHandle, DaemonChannels) {
    let (publish, snapshots) = watch::channel(Arc::new(first));
    let (orders, taken) = mpsc::channel(MAX_QUEUED_ORDERS);
    (DaemonHandle { snapshots, orders }, DaemonChannels { snapshots: publish, orders: taken })
}

impl DaemonHandle {
    /// The latest snapshot.
    pub fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// Snapshots as they come. A slow reader misses some, but never the latest.
    pub fn follow(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Gives an order and waits for the controller's answer.
    pub async fn order(&self, command: Command, who: Who) -> Answer {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let order = Order { command, who, answer };
        self.orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::Busy,
            TrySendError::Closed(_) => Refusal::Ending,
        })?;
        answered.await.unwrap_or(Err(Refusal::Ending))
    }
}
