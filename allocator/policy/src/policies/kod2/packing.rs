//! Step 2: packs a job's parameter servers and least number of workers on as few nodes as possible
//! (section 4.1, O8).

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::gangs::Layout;

use super::Span;
use super::capacity::{Amount, FreeCapacity, Idle, NodeIndex, Nodes};
use super::gang_plan::GangPlan;

/// The nodes for all tasks that a job needs to start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::policies) struct Packing {
    pub(super) servers: BTreeMap<NodeIndex, u32>,
    pub(super) workers: BTreeMap<NodeIndex, u32>,
    /// The idle share that is left, if all tasks go to one node.
    alone: Option<Idle>,
}

impl Packing {
    /// Packs `gang` into `room`, if it fits.
    pub(in crate::policies) fn find(gang: &GangPlan<'_>, room: &FreeCapacity) -> Option<Self> {
        // A cheap test first: placing the tasks one by one takes long.
        if !room.total_bound().covers(gang.least_demand()) {
            return None;
        }
        Self::on_one_node(gang, room).or_else(|| Self::over_nodes(gang, room))
    }

    /// Of the nodes that fit all tasks, the one that is left the least idle.
    fn on_one_node(gang: &GangPlan<'_>, room: &FreeCapacity) -> Option<Self> {
        let all = gang.least_demand();
        let fitting = room.nodes().filter(|at| room.free(*at).covers(all));
        let (left, at) = fitting.map(|at| (room.idle_without(at, all), at)).min()?;
        let mut packing = Self { alone: Some(left), ..Self::default() };
        packing.add_servers(at, gang.spec.ps.count);
        packing.add_workers(at, gang.spec.worker.min);
        Some(packing)
    }

    fn over_nodes(gang: &GangPlan<'_>, room: &FreeCapacity) -> Option<Self> {
        let mut packing = Self::default();
        let mut room = room.clone();
        let mut unplaced = gang.spec.worker.min;
        // The order is fixed before the first worker is placed.
        for at in room.by_idleness() {
            let placed = room.free(at).holds(gang.worker, unplaced);
            room.take(at, gang.worker.times(placed));
            packing.add_workers(at, placed);
            unplaced -= placed;
            if unplaced == 0 {
                break;
            }
        }
        if unplaced > 0 {
            return None;
        }
        let mut unplaced = gang.spec.ps.count;
        while unplaced > 0 {
            let (at, placed) = packing.next_servers(gang.server, unplaced, &room)?;
            room.take(at, gang.server.times(placed));
            packing.add_servers(at, placed);
            unplaced -= placed;
        }
        Some(packing)
    }

    /// The node for the next parameter server, and how many go there at once. It is the node with most of
    /// the job's workers, or else the idlest one on which it fits.
    fn next_servers(
        &self,
        server: Amount,
        unplaced: u32,
        room: &FreeCapacity,
    ) -> Option<(NodeIndex, u32)> {
        let workers = |at: NodeIndex| self.workers.get(&at).copied().unwrap_or(0);
        let most = room.nodes().map(workers).max()?;
        let with_most = || room.nodes().filter(|at| workers(*at) == most);
        let beside = room.idlest(with_most()).filter(|at| room.free(*at).covers(server));
        let (at, rival) = match beside {
            Some(at) => (at, with_most().nth(1).is_some()),
            None => (room.idlest_for(server)?, true),
        };
        Some((at, room.batch_size(at, server, unplaced, rival)))
    }

    fn add_servers(&mut self, at: NodeIndex, count: u32) {
        if count > 0 {
            *self.servers.entry(at).or_default() += count;
        }
    }

    fn add_workers(&mut self, at: NodeIndex, count: u32) {
        if count > 0 {
            *self.workers.entry(at).or_default() += count;
        }
    }

    /// Whether any of the tasks goes to that node.
    pub(super) fn uses(&self, at: NodeIndex) -> bool {
        self.servers.contains_key(&at) || self.workers.contains_key(&at)
    }

    /// The number of nodes that it uses.
    pub(in crate::policies) fn on(&self) -> Span {
        let nodes: BTreeSet<&NodeIndex> = self.servers.keys().chain(self.workers.keys()).collect();
        self.alone.map_or(Span::Several(nodes.len()), |left| Span::One(left.share()))
    }

    /// The capacity that it takes, node by node.
    pub(in crate::policies) fn amounts<'a>(
        &'a self,
        gang: &'a GangPlan<'_>,
    ) -> impl Iterator<Item = (NodeIndex, Amount)> + 'a {
        let servers = self.servers.iter().map(|(at, count)| (*at, gang.server.times(*count)));
        servers.chain(self.workers.iter().map(|(at, count)| (*at, gang.worker.times(*count))))
    }

    /// The same by the nodes' names.
    pub(in crate::policies) fn layout(&self, nodes: &Nodes<'_>) -> Layout {
        let named = |counts: &BTreeMap<NodeIndex, u32>| {
            counts.iter().map(|(at, count)| (nodes.name(*at).to_owned(), *count)).collect()
        };
        Layout { ps: named(&self.servers), workers: named(&self.workers) }
    }
}
