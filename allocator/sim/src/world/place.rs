//! Placement and moves of jobs.

use paceline_policy::decision::{Assignment, Migration};

use super::World;
use super::queue::SimEvent;
use crate::fluid::Index;
use crate::scenario::Placement;

impl World<'_> {
    /// Places a job that is bound to no node.
    pub(super) fn place(&mut self, index: Index) {
        if let Some(live) = self.jobs.get_mut(index) {
            live.node = None;
        }
        if self.cluster.is_some() {
            // The policy may place it.
            self.waiting.push(index);
            self.request_cluster_decision();
        } else {
            self.bind_to(index, self.default_node());
        }
    }

    /// Queues a job until a node works.
    pub(super) fn strand(&mut self, index: Index) {
        self.stranded.push(index);
    }

    /// Binds the waiting jobs, as the cluster's policy has placed them or else as the scenario
    /// does.
    pub(super) fn bind(&mut self, chosen: &[Assignment]) {
        for index in std::mem::take(&mut self.waiting) {
            let id = self.jobs.get(index).map(|live| &live.job.id);
            let assigned = chosen.iter().find(|assigned| Some(&assigned.job) == id);
            let node = assigned.and_then(|assigned| self.node(&assigned.node));
            self.bind_to(index, node.or_else(|| self.default_node()));
        }
    }

    fn bind_to(&mut self, index: Index, node: Option<usize>) {
        let Some(node) = node else { return self.strand(index) };
        self.placements += 1;
        if let Some(live) = self.jobs.get_mut(index) {
            live.node = Some(node);
        }
        self.begin(index);
    }

    fn default_node(&self) -> Option<usize> {
        match self.run.scenario.placement {
            Placement::RoundRobin => {
                let nodes = self.nodes.len();
                let mut turns = (self.placements..).take(nodes).map(|turn| turn % nodes);
                turns.find(|node| self.is_up(*node))
            }
            Placement::Fewest => self.nodes_by_load.first().map(|(_, node)| *node),
        }
    }

    /// The node of this name, if it works.
    fn node(&self, name: &str) -> Option<usize> {
        let node = self.run.scenario.nodes.iter().position(|node| node.name == name)?;
        self.is_up(node).then_some(node)
    }

    /// Stops jobs, and restarts them elsewhere once their checkpoint is there.
    pub(super) fn migrate(&mut self, moves: &[Migration]) {
        for Migration { job, from, to, .. } in moves {
            let (Some(from), Some(to)) = (self.node(from), self.node(to)) else { continue };
            let Some(index) = self.index(from, job) else { continue };
            self.stop_process(index, from);
            self.schedule_goal(from);
            if let Some(live) = self.jobs.get_mut(index) {
                live.node = Some(to);
                live.outcome.moves += 1;
                live.save_checkpoint();
                let at = self.now + live.resume_seconds();
                self.moving.insert(index);
                self.queue.push(at, SimEvent::Resume(index));
            }
        }
    }
}
