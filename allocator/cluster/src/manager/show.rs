//! The published snapshot of a cluster. It has the form of a single machine's snapshot.

use std::path::Path;
use std::sync::Arc;

use paceline_api::clock::unix_seconds;
use paceline_api::live::snapshot::{CostView, NodeView, Snapshot};
use paceline_cgroup::own;
use paceline_node::migration::moves::MigrationQueue;
use paceline_policy::Moment;

use super::{Manager, reviving};
use crate::swarm::Swarm;

impl Manager {
    /// Publishes the current snapshot.
    pub(super) fn publish(&self, now: Moment, swarm: &Swarm) {
        let before = Arc::clone(&self.channels.snapshots.borrow());
        let mut nodes = self.world.nodes();
        reviving::add_waiting_jobs(&mut nodes, swarm);
        let (cpu_seconds, memory) = own::used(Path::new("/proc"));
        let cost = CostView {
            cpu_seconds: cpu_seconds.unwrap_or_default(),
            memory,
            moves: self.tally.done,
            failed_moves: self.tally.failed,
            move_seconds: self.tally.seconds,
            ..CostView::default()
        };
        let snapshot = Snapshot {
            now: unix_seconds(),
            t: now.seconds(),
            node: altogether(&nodes),
            nodes,
            jobs: self.world.jobs(&swarm.obstacles),
            moves: self.moves.as_ref().map(MigrationQueue::views).unwrap_or_default(),
            gangs: self.placing.as_ref().map(|it| it.jobs().to_vec()).unwrap_or_default(),
            decision: self.decided.clone(),
            cost,
            ..before.lasting()
        };
        self.channels.snapshots.send_replace(Arc::new(snapshot));
    }
}

/// The sum of all machines.
fn altogether(nodes: &[NodeView]) -> NodeView {
    let cpus: f64 = nodes.iter().map(|node| node.cpus).sum();
    let used: Option<f64> = nodes.iter().map(|node| node.cpu.map(|used| used * node.cpus)).sum();
    NodeView {
        name: format!("a Swarm of {} machines", nodes.len()),
        cpus,
        memory: nodes.iter().map(|node| node.memory).sum(),
        cpu: used.filter(|_| cpus > 0.0).map(|used| used / cpus),
        trouble: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_usage_is_known_once_all_machines_are() {
        let node = |cpus, cpu| NodeView { cpus, cpu, memory: 1.0, ..NodeView::default() };
        let all = altogether(&[node(2.0, Some(0.5)), node(6.0, Some(1.0))]);
        assert_eq!((all.cpus, all.memory, all.cpu), (8.0, 2.0, Some(0.875)));
        assert_eq!(altogether(&[node(2.0, Some(0.5)), node(6.0, None)]).cpu, None);
        assert_eq!(altogether(&[]).cpu, None);
    }
}
