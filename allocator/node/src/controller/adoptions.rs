//! Orders that opt in a container which is not known yet. The engine describes it in a task of its own, so
//! that a slow engine delays neither the controller nor orders about other containers.
//!
//! Later orders that may be about the same container are held back until it is described. All orders after
//! one that is held back are held back as well: they stay in their order.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use paceline_api::live::{Order, Refusal};
use paceline_runtime::{Container, Runtime, RuntimeError};
use tokio::task::JoinSet;

/// How long the container engine may take to describe a container that an order names.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The most orders that wait here. Others wait in their channel, which refuses one more as busy.
const MAX_WAITING: usize = 64;

/// The orders that wait for a description.
#[derive(Debug, Default)]
pub(super) struct Adoptions {
    under_way: JoinSet<Described>,
    /// The orders that opt in a container, by the name that they give it.
    orders: BTreeMap<String, Order>,
    held_back: VecDeque<Order>,
}

/// A container that an order has named.
#[derive(Debug)]
pub(super) struct Described {
    name: String,
    pub(super) found: Result<Container, Refusal>,
}

impl Adoptions {
    /// Whether one more order may wait.
    pub(super) fn have_room(&self) -> bool {
        self.orders.len() + self.held_back.len() < MAX_WAITING
    }

    /// Whether an order must be held back that names a container so. `may_be_one` is whether that may be one
    /// of the containers that are being described.
    pub(super) fn must_wait(&self, name: &str, may_be_one: impl FnOnce() -> bool) -> bool {
        !self.held_back.is_empty()
            || self.orders.contains_key(name)
            || (!self.orders.is_empty() && may_be_one())
    }

    /// Holds an order back.
    pub(super) fn hold_back(&mut self, order: Order) {
        self.held_back.push_back(order);
    }

    /// Has the engine describe a container for an order.
    pub(super) fn begin(&mut self, runtime: Runtime, name: String, order: Order) {
        self.orders.insert(name.clone(), order);
        self.under_way.spawn(async move {
            let found = describe(&runtime, &name).await;
            Described { name, found }
        });
    }

    /// Waits for the next description; never returns if none is under way. Nothing is lost when the
    /// future is dropped.
    pub(super) async fn described(&mut self) -> Described {
        match self.under_way.join_next().await {
            Some(Ok(described)) => described,
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            None => std::future::pending().await,
        }
    }

    /// Takes the order that a description is for.
    pub(super) fn take(&mut self, described: &Described) -> Option<Order> {
        self.orders.remove(&described.name)
    }

    /// Takes the orders that were held back.
    pub(super) fn take_held_back(&mut self) -> VecDeque<Order> {
        std::mem::take(&mut self.held_back)
    }

    /// Gives up all descriptions. Returns the orders that have waited.
    pub(super) fn give_up(&mut self) -> Vec<Order> {
        let Self { orders, held_back, .. } = std::mem::take(self);
        orders.into_values().chain(held_back).collect()
    }
}

/// A running container, as the engine describes it.
async fn describe(runtime: &Runtime, name: &str) -> Result<Container, Refusal> {
    let found = tokio::time::timeout(DESCRIBE_TIMEOUT, runtime.inspect(name))
        .await
        .map_err(|_| Refusal::Failed("the container engine did not answer in time".to_owned()))?;
    let container = match found {
        Ok(Some(container)) => container,
        Ok(None) => return Err(Refusal::Unknown(name.to_owned())),
        Err(RuntimeError::Ambiguous(_)) => {
            let why = format!("{name:?} is the beginning of several containers' ids");
            return Err(Refusal::Ambiguous(why));
        }
        Err(error) => {
            return Err(Refusal::Failed(format!("cannot describe container {name}: {error}")));
        }
    };
    if container.pid.is_none() {
        let name = container.name;
        return Err(Refusal::Impossible(format!("container {name} is not running")));
    }
    Ok(container)
}
