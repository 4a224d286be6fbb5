//! What orders have made of containers that ended, and may be started again under the same id.
//!
//! An order holds until it is taken back, or until the container is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound::{Excluded, Included, Unbounded};

use paceline_api::live::snapshot::Standing;
use paceline_policy::Share;
use paceline_runtime::short;
use tracing::info;

use crate::controller::watched::{Orders, WatchedContainer};

/// The most containers that are kept: the engine may hold any number of stopped ones.
const MAX_KEPT: usize = 1024;
/// How many of them the engine is asked for at once.
const MAX_ASKED: usize = 16;

/// The orders of ended containers, by their ids.
#[derive(Debug, Default)]
pub(super) struct Kept {
    all: BTreeMap<String, One>,
    /// The number of the next one.
    next: u64,
    /// The container that the engine was last asked for.
    asked: String,
    /// Containers that run again, and are to be pinned.
    due: Vec<(String, Share)>,
}

#[derive(Debug, Default)]
struct One {
    /// The lowest one is the oldest.
    number: u64,
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
            self.insert(id, One { orders, released, ..One::default() });
        }
    }

    /// Keeps its pin.
    pub(super) fn pin(&mut self, id: &str, share: Share) {
        let one = self.all.remove(id).unwrap_or_default();
        self.insert(id, One { pinned: Some(share), ..one });
    }

    fn insert(&mut self, id: &str, one: One) {
        self.all.insert(id.to_owned(), One { number: self.next, ..one });
        self.next += 1;
        if self.all.len() <= MAX_KEPT {
            return;
        }
        let oldest = self.all.iter().min_by_key(|(_, one)| one.number).map(|(id, _)| id.clone());
        if let Some(id) = oldest {
            let container = short(&id);
            info!(
                "the orders about the ended container {container} are forgotten: there are later ones about \
                 {MAX_KEPT} others"
            );
            self.all.remove(&id);
        }
    }

    /// The containers of which the engine is to say next whether it has them.
    pub(super) fn next_to_ask(&mut self) -> Vec<String> {
        let after = self.all.range::<str, _>((Excluded(self.asked.as_str()), Unbounded));
        let others = self.all.range::<str, _>((Unbounded, Included(self.asked.as_str())));
        let ids: Vec<String> =
            after.chain(others).take(MAX_ASKED).map(|(id, _)| id.clone()).collect();
        self.asked = ids.last().cloned().unwrap_or_default();
        ids
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins that are kept for this many containers. The last one has the lowest id.
    fn kept(count: usize) -> Kept {
        let mut kept = Kept::default();
        for n in (0..count).rev() {
            kept.pin(&format!("{n:04}"), Share::ALL);
        }
        kept
    }

    #[test]
    fn oldest_order_is_forgotten_if_there_are_too_many() {
        let kept = kept(MAX_KEPT + 1);
        assert_eq!(kept.all.len(), MAX_KEPT);
        assert!(kept.all.contains_key("0000") && !kept.all.contains_key("1024"));
    }

    #[test]
    fn every_ended_container_is_asked_for_in_turn() {
        let mut kept = kept(2 * MAX_ASKED + 1);
        let rounds: Vec<Vec<String>> = (0..3).map(|_| kept.next_to_ask()).collect();
        let all: BTreeSet<&String> = rounds.iter().flatten().collect();
        assert!(rounds.iter().all(|ids| ids.len() == MAX_ASKED));
        assert_eq!(all.len(), kept.all.len());
        assert!(Kept::default().next_to_ask().is_empty());
    }
}
