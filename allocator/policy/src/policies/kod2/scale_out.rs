//! Step 4, Algorithm 3: what nobody waits for goes to the running jobs.
//!
//! In print, an exact fit is refused (O1) and nodes come in no order (O4).

use super::crew::Crew;
use super::room::{At, Room};

/// The workers to add: the job, the node, and how many, in the order in which they were chosen.
pub(super) fn plan<'c, 'f>(
    running: &'c [Crew<'f>],
    mut room: Room,
) -> Vec<(&'c Crew<'f>, At, u32)> {
    let mut jobs: Vec<&Crew<'_>> = running.iter().collect();
    jobs.sort_by(|a, b| a.by_raw(b));
    let mut added: Vec<(&Crew<'_>, At, u32)> = Vec::new();
    for crew in jobs {
        let first = added.len();
        let mut missing = crew.most().saturating_sub(crew.workers());
        while missing > 0 {
            let here = added.get(first..).unwrap_or_default();
            let Some((at, count)) = next(crew, here, missing, &room) else { break };
            room.take(at, crew.worker.times(count));
            missing -= count;
            match added.iter_mut().skip(first).find(|(_, node, _)| *node == at) {
                Some((_, _, sum)) => *sum += count,
                None => added.push((crew, at, count)),
            }
        }
    }
    added
}

/// The node for the next worker, and how many go there with it: where the job's parameter servers
/// are first, then where its workers are, then any; among equals the idlest.
fn next(
    crew: &Crew<'_>,
    added: &[(&Crew<'_>, At, u32)],
    missing: u32,
    room: &Room,
) -> Option<(At, u32)> {
    let nearness = |at: &At| {
        let post = crew.posts.get(at).copied().unwrap_or_default();
        let worked = post.workers > 0 || added.iter().any(|(_, node, _)| node == at);
        if post.servers > 0 {
            0_u8
        } else if worked {
            1
        } else {
            2
        }
    };
    let fits = |at: &At| room.free(*at).covers(crew.worker);
    let nearest = room.nodes().filter(fits).map(|at| nearness(&at)).min()?;
    let among = || room.nodes().filter(fits).filter(|at| nearness(at) == nearest);
    let at = room.idlest(among())?;
    Some((at, room.together(at, crew.worker, missing, among().nth(1).is_some())))
}
