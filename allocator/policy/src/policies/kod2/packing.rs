//! Step 2: where a job's parameter servers and least number of workers go, on as few nodes as
//! possible (section 4.1, O8).

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::gangs::Layout;

use super::On;
use super::crew::Crew;
use super::room::{Amount, At, Idle, Nodes, Room};

/// Places for all that a job needs to start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::policies) struct Packing {
    pub(super) servers: BTreeMap<At, u32>,
    pub(super) workers: BTreeMap<At, u32>,
    /// What the only node is left with, where one takes all.
    alone: Option<Idle>,
}

impl Packing {
    /// Packs `crew` into `room`, if it fits.
    pub(in crate::policies) fn find(crew: &Crew<'_>, room: &Room) -> Option<Self> {
        // To place one task after the other takes long, and in vain where there is too little.
        if !room.in_all().covers(crew.least()) {
            return None;
        }
        Self::on_one_node(crew, room).or_else(|| Self::over_nodes(crew, room))
    }

    /// The node that would be left the least idle of those that fit all.
    fn on_one_node(crew: &Crew<'_>, room: &Room) -> Option<Self> {
        let all = crew.least();
        let fitting = room.nodes().filter(|at| room.free(*at).covers(all));
        let (left, at) = fitting.map(|at| (room.idle_without(at, all), at)).min()?;
        let mut packing = Self { alone: Some(left), ..Self::default() };
        packing.add_servers(at, crew.gang.ps.count);
        packing.add_workers(at, crew.gang.worker.min);
        Some(packing)
    }

    fn over_nodes(crew: &Crew<'_>, room: &Room) -> Option<Self> {
        let mut packing = Self::default();
        let mut room = room.clone();
        let mut unplaced = crew.gang.worker.min;
        // The order is fixed before the first worker is placed.
        for at in room.by_idleness() {
            let placed = room.free(at).holds(crew.worker, unplaced);
            room.take(at, crew.worker.times(placed));
            packing.add_workers(at, placed);
            unplaced -= placed;
            if unplaced == 0 {
                break;
            }
        }
        if unplaced > 0 {
            return None;
        }
        let mut unplaced = crew.gang.ps.count;
        while unplaced > 0 {
            let (at, placed) = packing.next_servers(crew.server, unplaced, &room)?;
            room.take(at, crew.server.times(placed));
            packing.add_servers(at, placed);
            unplaced -= placed;
        }
        Some(packing)
    }

    /// The node for the next parameter server, and how many go there with it: the one with most of
    /// the job's workers, or else the idlest on which it fits.
    fn next_servers(&self, server: Amount, unplaced: u32, room: &Room) -> Option<(At, u32)> {
        let workers = |at: At| self.workers.get(&at).copied().unwrap_or(0);
        let most = room.nodes().map(workers).max()?;
        let with_most = || room.nodes().filter(|at| workers(*at) == most);
        let beside = room.idlest(with_most()).filter(|at| room.free(*at).covers(server));
        let (at, rival) = match beside {
            Some(at) => (at, with_most().nth(1).is_some()),
            None => (room.idlest_for(server)?, true),
        };
        Some((at, room.together(at, server, unplaced, rival)))
    }

    fn add_servers(&mut self, at: At, count: u32) {
        if count > 0 {
            *self.servers.entry(at).or_default() += count;
        }
    }

    fn add_workers(&mut self, at: At, count: u32) {
        if count > 0 {
            *self.workers.entry(at).or_default() += count;
        }
    }

    /// Whether any of the tasks goes to that node.
    pub(super) fn uses(&self, at: At) -> bool {
        self.servers.contains_key(&at) || self.workers.contains_key(&at)
    }

    /// On how many nodes it is.
    pub(in crate::policies) fn on(&self) -> On {
        let nodes: BTreeSet<&At> = self.servers.keys().chain(self.workers.keys()).collect();
        self.alone.map_or(On::Several(nodes.len()), |left| On::One(left.share()))
    }

    /// What it takes, node by node.
    pub(in crate::policies) fn amounts<'a>(
        &'a self,
        crew: &'a Crew<'_>,
    ) -> impl Iterator<Item = (At, Amount)> + 'a {
        let servers = self.servers.iter().map(|(at, count)| (*at, crew.server.times(*count)));
        servers.chain(self.workers.iter().map(|(at, count)| (*at, crew.worker.times(*count))))
    }

    /// The same by the nodes' names.
    pub(in crate::policies) fn layout(&self, nodes: &Nodes<'_>) -> Layout {
        let named = |counts: &BTreeMap<At, u32>| {
            counts.iter().map(|(at, count)| (nodes.name(*at).to_owned(), *count)).collect()
        };
        Layout { ps: named(&self.servers), workers: named(&self.workers) }
    }
}
