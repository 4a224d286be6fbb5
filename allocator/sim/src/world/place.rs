//! Where jobs run, and what it takes to move one.

use paceline_policy::decision::{Assignment, Migration};

use super::World;
use super::queue::What;
use crate::fluid::Index;
use crate::scenario::Placement;

impl World<'_> {
    /// A job has arrived that is bound to no node.
    pub(super) fn place(&mut self, index: Index) {
        if self.cluster.is_some() {
            // The policy may have a word to say.
            self.waiting.push(index);
            self.hurry_all();
        } else {
            self.settle_on(index, self.default_node());
        }
    }

    /// Binds the jobs that the cluster's policy has placed, and all others as the scenario says.
    pub(super) fn bind(&mut self, chosen: &[Assignment]) {
        for index in std::mem::take(&mut self.waiting) {
            let id = self.jobs.get(index).map(|live| &live.job.id);
            let assigned = chosen.iter().find(|assigned| Some(&assigned.job) == id);
            let node = assigned.and_then(|assigned| self.node(&assigned.node));
            self.settle_on(index, node.unwrap_or_else(|| self.default_node()));
        }
    }

    fn settle_on(&mut self, index: Index, node: usize) {
        self.turns += 1;
        if let Some(live) = self.jobs.get_mut(index) {
            live.node = Some(node);
        }
        self.begin(index);
    }

    fn default_node(&self) -> usize {
        match self.run.scenario.placement {
            Placement::RoundRobin => self.turns % self.stations.len().max(1),
            Placement::Fewest => self.by_jobs.first().map_or(0, |(_, node)| *node),
        }
    }

    fn node(&self, name: &str) -> Option<usize> {
        self.run.scenario.nodes.iter().position(|node| node.name == name)
    }

    /// Stops jobs, and has them begin anew elsewhere once their checkpoint is there.
    pub(super) fn migrate(&mut self, moves: &[Migration]) {
        for Migration { job, from, to, .. } in moves {
            let (Some(from), Some(to)) = (self.node(from), self.node(to)) else { continue };
            let Some(index) = self.by_id.get(job).copied() else { continue };
            if !self.jobs.get(index).is_some_and(|live| live.running && live.node == Some(from)) {
                continue;
            }
            self.depart(index, from);
            self.plan(from);
            if let Some(live) = self.jobs.get_mut(index) {
                live.node = Some(to);
                live.outcome.moves += 1;
                let cost = live.job.checkpoint;
                let seconds = cost.mean + cost.deviation * live.checkpoints.normal();
                self.moving.insert(index);
                self.queue.push(self.now + seconds.max(0.0), What::Resume(index));
            }
        }
    }
}
