use proptest::prelude::*;

use super::properties::{any_jobs, any_nodes};
use super::*;

/// Step 3 as described, without any shortcut.
fn plainly(
    gang: &GangPlan<'_>,
    running: &[GangPlan<'_>],
    reservations: &Reservations<'_>,
) -> Option<(Packing, Vec<(Victim, NodeIndex)>)> {
    let mut room = reservations.after_removals(gang.id());
    let mut victims: Vec<Victim> = (0..running.len()).collect();
    victims.retain(|victim| running[*victim].may_shrink_for(gang));
    victims.sort_by(|a, b| running[*a].by_removal_order(&running[*b]));
    let mut removals: Vec<(Victim, NodeIndex)> = Vec::new();
    for victim in victims {
        let donor = &running[victim];
        for _ in 0..reservations.removable_workers(victim) {
            if Packing::find(gang, &room).is_some() {
                break;
            }
            let gone = |at| removals.iter().filter(|removal| **removal == (victim, at)).count();
            let left = |at: NodeIndex| {
                usize::try_from(reservations.workers(victim, at)).unwrap() > gone(at)
            };
            let sources = donor.placement.iter().filter(|(at, _)| left(**at));
            let next = sources.min_by_key(|(at, tasks)| (tasks.servers > 0, room.idle(**at), **at));
            let Some((at, _)) = next else { break };
            room.give(*at, donor.worker);
            removals.push((victim, *at));
        }
    }
    Packing::find(gang, &room)?;
    for entry in (0..removals.len()).rev() {
        let (victim, at) = removals[entry];
        let mut less = room.clone();
        less.take(at, running[victim].worker);
        if Packing::find(gang, &less).is_some() {
            room = less;
            removals.remove(entry);
        }
    }
    Some((Packing::find(gang, &room)?, removals))
}

proptest! {
    #[test]
    fn search_shortcuts_give_the_same_result(nodes in any_nodes(), jobs in any_jobs()) {
        let frame = frame(100.0, &nodes, &jobs);
        let nodes = Nodes::new(&frame.nodes);
        let gangs = GangPlans::new(&frame, &nodes, &mut Arrivals::default());
        let mut kept = BTreeMap::new();
        let mut reservations = Reservations::new(&nodes, &gangs, &mut kept);
        let donors = Donors::new(&gangs.running);
        for gang in &gangs.waiting {
            let plain = plainly(gang, &gangs.running, &reservations);
            let plan = Plan::find(gang, &donors, &reservations);
            prop_assert_eq!(&plan.as_ref().map(|plan| (&plan.packing, &plan.removals)),
                &plain.as_ref().map(|(packing, removals)| (packing, removals)));
            // The next search runs beside this reservation.
            if let Some((packing, removals)) = plain {
                reservations.reserve(gang, &packing, &removals);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_job_that_fills_the_cluster_starts_however_its_parts_add_up(
        counts in prop::collection::vec(0..40_u32, 1..6), cpu in 1e-6..1e3_f64, memory in 1.0..1e12_f64
    ) {
        let nodes = counts.iter().zip(0_u32..).map(|(count, number)| Node {
            name: format!("w{number}").into(),
            cpus: Some(cpu * f64::from(*count)),
            memory: Some(memory * f64::from(*count)),
            ..Node::default()
        });
        let mut job = gang("a", 0.0, 0.0, counts.iter().sum(), cpu);
        job.worker.memory = Some(memory);
        let scaling = decide(0.0, &nodes.collect::<Vec<_>>(), &[job]);
        prop_assert_eq!(started(&scaling), ["a"]);
    }
}
