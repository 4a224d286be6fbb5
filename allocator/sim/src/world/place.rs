//! Where jobs run, and what it takes to move one.

use paceline_policy::decision::{Assignment, Migration};

use super::World;
use super::queue::What;
use crate::fluid::Index;
use crate::scenario::Placement;

impl World<'_> {
    /// A job is to run that is bound to no node.
    pub(super) fn place(&mut self, index: Index) {
        if let Some(live) = self.jobs.get_mut(index) {
            live.node = None;
        }
        if self.cluster.is_some() {
            // The policy may have a word to say.
            self.waiting.push(index);
            self.hurry_all();
        } else {
            self.settle_on(index, self.default_node());
        }
    }

    /// A job has no node that works: it waits for one.
    pub(super) fn strand(&mut self, index: Index) {
        self.stranded.push(index);
    }

    /// Binds the jobs that the cluster's policy has placed, and all others as the scenario says.
    pub(super) fn bind(&mut self, chosen: &[Assignment]) {
        for index in std::mem::take(&mut self.waiting) {
            let id = self.jobs.get(index).map(|live| &live.job.id);
            let assigned = chosen.iter().find(|assigned| Some(&assigned.job) == id);
            let node = assigned.and_then(|assigned| self.node(&assigned.node));
            self.settle_on(index, node.or_else(|| self.default_node()));
        }
    }

    fn settle_on(&mut self, index: Index, node: Option<usize>) {
        let Some(node) = node else { return self.strand(index) };
        self.turns += 1;
        if let Some(live) = self.jobs.get_mut(index) {
            live.node = Some(node);
        }
        self.begin(index);
    }

    fn default_node(&self) -> Option<usize> {
        match self.run.scenario.placement {
            Placement::RoundRobin => {
                let nodes = self.stations.len();
                let mut turns = (self.turns..).take(nodes).map(|turn| turn % nodes);
                turns.find(|node| self.is_up(*node))
            }
            Placement::Fewest => self.by_jobs.first().map(|(_, node)| *node),
        }
    }

    /// The node of this name, if it works.
    fn node(&self, name: &str) -> Option<usize> {
        let node = self.run.scenario.nodes.iter().position(|node| node.name == name)?;
        self.is_up(node).then_some(node)
    }

    /// Stops jobs, and has them begin anew elsewhere once their checkpoint is there.
    pub(super) fn migrate(&mut self, moves: &[Migration]) {
        for Migration { job, from, to, .. } in moves {
            let (Some(from), Some(to)) = (self.node(from), self.node(to)) else { continue };
            let Some(index) = self.index(from, job) else { continue };
            self.depart(index, from);
            self.plan(from);
            if let Some(live) = self.jobs.get_mut(index) {
                live.node = Some(to);
                live.outcome.moves += 1;
                live.save();
                let at = self.now + live.restoring();
                self.moving.insert(index);
                self.queue.push(at, What::Resume(index));
            }
        }
    }
}
