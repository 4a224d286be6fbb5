//! What orders have made of containers that ended, and may be started again under the same id.
//!
//! An order holds until it is taken back, or until the container is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use paceline_api::live::snapshot::Standing;
use paceline_policy::Share;
use tracing::info;

use crate::controller::watched::{Orders, WatchedContainer};

/// The most containers that are kept: the engine may hold any number of stopped ones.
const MAX_KEPT: usize = 1024;

/// The orders of ended containers, by their ids.
#[derive(Debug, Default)]
pub(super) struct Kept {
    all: BTreeMap<String, One>,
    /// Containers that run again, and are to be pinned.
    due: Vec<(String, Share)>,
}

#[derive(Debug, Default)]
struct One {
    orders: Orders,
    released: bool,
    pinned: Option<Share>,
}

impl Kept {
    /// Keeps the orders about a container that has ended.
    pub(super) fn keep(&mut self, id: &str, candidate: &WatchedContainer) {
        let orders = candidate.orders();
        let released = candidate.standing == Standing::Released;
        if released || !orders.is_empty() {
            self.insert(id, One { orders, released, pinned: None });
        }
    }

    /// Keeps its pin.
    pub(super) fn pin(&mut self, id: &str, share: Share) {
        let one = self.all.remove(id).unwrap_or_default();
        self.insert(id, One { pinned: Some(share), ..one });
    }

    fn insert(&mut self, id: &str, one: One) {
        self.all.insert(id.to_owned(), one);
        if self.all.len() > MAX_KEPT {
            self.all.pop_first();
        }
    }

    /// Gives a container that runs again what orders have made of it.
    pub(super) fn give_back(&mut self, id: &str, candidate: &mut WatchedContainer) {
        let Some(one) = self.all.remove(id) else { return };
        let job = candidate.job().clone();
        candidate.inherit(one.orders);
        if one.released {
            info!(%job, "it was released by an order, and stays so after its restart");
            candidate.release();
        }
        self.due.extend(one.pinned.map(|share| (id.to_owned(), share)));
    }

    /// The containers that are to be pinned now.
    pub(super) fn due(&mut self) -> Vec<(String, Share)> {
        mem::take(&mut self.due)
    }

    /// Forgets containers that the engine does not have any more.
    pub(super) fn forget(&mut self, missing: &BTreeSet<String>) {
        self.all.retain(|id, _| !missing.contains(id));
    }
}
