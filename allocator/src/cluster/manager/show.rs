//! The cluster as it is shown: by the snapshot that a single machine is shown by.

use std::path::Path;
use std::sync::Arc;

use paceline_policy::Moment;

use super::{Manager, reviving};
use crate::clock::unix_seconds;
use crate::cluster::swarm::Swarm;
use crate::live::snapshot::{CostView, NodeView, Snapshot};
use crate::migrate::moves::Moves;
use crate::observe::own;

impl Manager {
    /// Shows how all stands now.
    pub(super) fn publish(&self, now: Moment, swarm: &Swarm) {
        let before = Arc::clone(&self.stage.snapshots.borrow());
        let mut nodes = self.world.nodes();
        reviving::tell(&mut nodes, swarm);
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
            moves: self.moves.as_ref().map(Moves::views).unwrap_or_default(),
            gangs: self.placing.as_ref().map(|it| it.jobs().to_vec()).unwrap_or_default(),
            decision: self.decided.clone(),
            cost,
            ..before.lasting()
        };
        self.stage.snapshots.send_replace(Arc::new(snapshot));
    }
}

/// All machines as one.
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
    fn a_cluster_uses_what_its_machines_use_once_all_are_known() {
        let node = |cpus, cpu| NodeView { cpus, cpu, memory: 1.0, ..NodeView::default() };
        let all = altogether(&[node(2.0, Some(0.5)), node(6.0, Some(1.0))]);
        assert_eq!((all.cpus, all.memory, all.cpu), (8.0, 2.0, Some(0.875)));
        assert_eq!(altogether(&[node(2.0, Some(0.5)), node(6.0, None)]).cpu, None);
        assert_eq!(altogether(&[]).cpu, None);
    }
}
