//! Distributed jobs as jobs that share one node: the whole cluster.

use std::collections::BTreeMap;

use super::Task;
use crate::scenario::{Gang, Node};

/// Each gang as a task on a cluster that is one node.
///
/// Workers slow each other down and servers do no work, so a gang holds more cores than its work
/// needs. The least core time that it holds, over all numbers of workers, is the cost of its work.
/// A gang cannot be faster than with all its workers. Tasks on the nodes hold at most what the
/// cluster has, so no schedule of gangs is better than the best schedule of these tasks.
pub(super) fn tasks(gangs: &[Gang], nodes: &[Node]) -> Vec<Task> {
    let cores: f64 = nodes.iter().map(|node| node.cpus).sum();
    let task = |gang: &Gang| {
        let numbers = gang.workers.min.max(1)..=gang.workers.max.max(1);
        let held = |workers: u32| {
            f64::from(workers) * gang.workers.cpu + f64::from(gang.servers.min) * gang.servers.cpu
        };
        let cost = numbers.clone().map(|workers| held(workers) / gang.speed(workers));
        let cost = cost.fold(f64::INFINITY, f64::min);
        let fastest = numbers.map(|workers| gang.speed(workers)).fold(0.0, f64::max);
        let work = gang.work * cost / cores;
        // As many nodes at once as finish it in the time that it takes alone.
        Task { release: gang.arrive, work, cap: (work * fastest / gang.work).min(1.0) }
    };
    gangs.iter().map(task).collect()
}

/// The fewest pairs of a parameter server and a worker of a gang that can be on different nodes;
/// `None` if its workers are not bound to nodes yet.
///
/// A node has as many pairs as its workers times its servers. So servers go where most of the
/// workers are, as many as fit there. That is exact for one gang, since its servers are alike. The
/// use by other gangs is ignored, so for several gangs it is a bound.
pub fn fewest_crossing(gang: &Gang, nodes: &[Node]) -> Option<u32> {
    let mut workers: BTreeMap<&str, u32> = BTreeMap::new();
    for node in &gang.workers.nodes {
        *workers.entry(node).or_default() += 1;
    }
    let bound: u32 = workers.values().sum();
    if bound < gang.workers.min {
        return None;
    }
    let mut rooms: Vec<(u32, u32)> = nodes
        .iter()
        .map(|node| {
            let here = workers.get(node.name.as_str()).copied().unwrap_or(0);
            (here, servers_that_fit(gang, node, here))
        })
        .collect();
    rooms.sort_unstable_by(|a, b| b.cmp(a));
    let (mut left, mut inside) = (gang.servers.min, 0);
    for (here, room) in rooms {
        let placed = room.min(left);
        left -= placed;
        inside += placed * here;
    }
    Some((gang.servers.min - left) * bound - inside)
}

/// How many parameter servers fit on a node beside the gang's workers.
fn servers_that_fit(gang: &Gang, node: &Node, workers: u32) -> u32 {
    let fits = |servers: &u32| {
        let needs =
            |server: f64, worker: f64| f64::from(*servers) * server + f64::from(workers) * worker;
        let memory = node.memory.unwrap_or(f64::INFINITY);
        needs(gang.servers.cpu, gang.workers.cpu) <= node.cpus + 1e-9
            && needs(gang.servers.memory, gang.workers.memory) <= memory + 1e-9
    };
    (0..=gang.servers.min).rev().find(fits).unwrap_or(0)
}
