//! Where the driver meets everything that faces people.
//!
//! The driver publishes a [`Snapshot`] after every look and takes [`Order`]s; the control socket,
//! the web page, the metrics and the command line know these two and nothing else of it.

pub mod order;
pub mod snapshot;
mod words;

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

pub use order::{Answer, Command, Order, Refusal, Who};
pub use snapshot::Snapshot;

/// So many orders wait for the driver; one more is told that it is busy.
const ORDERS: usize = 64;

/// The side that faces people: cheap to clone.
#[derive(Clone, Debug)]
pub struct Live {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    orders: mpsc::Sender<Order>,
}

/// The driver's side.
#[derive(Debug)]
pub struct Backstage {
    /// The latest snapshot is put here.
    pub snapshots: watch::Sender<Arc<Snapshot>>,
    /// Orders come from here.
    pub orders: mpsc::Receiver<Order>,
}

/// Both sides, beginning with what is known before the first look.
pub fn pair(first: Snapshot) -> (Live, Backstage) {
    let (publish, snapshots) = watch::channel(Arc::new(first));
    let (orders, taken) = mpsc::channel(ORDERS);
    (Live { snapshots, orders }, Backstage { snapshots: publish, orders: taken })
}

impl Live {
    /// What is known now.
    pub fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// Snapshots as they come. A reader that is slow misses some, never the latest.
    pub fn follow(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Gives an order and waits for the driver's answer.
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
