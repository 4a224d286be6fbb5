//! Step 4, Algorithm 3: when no job waits, free capacity goes to the running jobs.
//!
//! In print, an exact fit is refused (O1), and nodes have no order (O4).

use super::capacity::{FreeCapacity, NodeIndex};
use super::gang_plan::GangPlan;

/// The workers to add: the job, the node, and how many, in the order in which they were chosen.
pub(super) fn plan<'c, 'f>(
    running: &'c [GangPlan<'f>],
    mut room: FreeCapacity,
) -> Vec<(&'c GangPlan<'f>, NodeIndex, u32)> {
    let mut jobs: Vec<&GangPlan<'_>> = running.iter().collect();
    jobs.sort_by(|a, b| a.by_raw(b));
    let mut added: Vec<(&GangPlan<'_>, NodeIndex, u32)> = Vec::new();
    for gang in jobs {
        let first = added.len();
        let mut missing = gang.max_workers().saturating_sub(gang.workers());
        while missing > 0 {
            let here = added.get(first..).unwrap_or_default();
            let Some((at, count)) = next(gang, here, missing, &room) else { break };
            room.take(at, gang.worker.times(count));
            missing -= count;
            match added.iter_mut().skip(first).find(|(_, node, _)| *node == at) {
                Some((_, _, sum)) => *sum += count,
                None => added.push((gang, at, count)),
            }
        }
    }
    added
}

/// The node for the next worker, and how many go there at once. Nodes with the job's parameter servers
/// come first, then those with its workers, then the others; among equals, the idlest.
fn next(
    gang: &GangPlan<'_>,
    added: &[(&GangPlan<'_>, NodeIndex, u32)],
    missing: u32,
    room: &FreeCapacity,
) -> Option<(NodeIndex, u32)> {
    let nearness = |at: &NodeIndex| {
        let tasks = gang.placement.get(at).copied().unwrap_or_default();
        let worked = tasks.workers > 0 || added.iter().any(|(_, node, _)| node == at);
        if tasks.servers > 0 {
            0_u8
        } else if worked {
            1
        } else {
            2
        }
    };
    let fits = |at: &NodeIndex| room.free(*at).covers(gang.worker);
    let nearest = room.nodes().filter(fits).map(|at| nearness(&at)).min()?;
    let among = || room.nodes().filter(fits).filter(|at| nearness(at) == nearest);
    let at = room.idlest(among())?;
    Some((at, room.batch_size(at, gang.worker, missing, among().nth(1).is_some())))
}
