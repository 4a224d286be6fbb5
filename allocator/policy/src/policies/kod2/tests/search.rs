use proptest::prelude::*;

use super::properties::{any_jobs, any_nodes};
use super::*;

/// Step 3 as it is written, without any short cut.
fn plainly(
    crew: &Crew<'_>,
    running: &[Crew<'_>],
    books: &Books<'_>,
) -> Option<(Packing, Vec<(Victim, At)>)> {
    let mut room = books.after_removals(crew.id());
    let mut victims: Vec<Victim> = (0..running.len()).collect();
    victims.retain(|victim| running[*victim].yields_to(crew));
    victims.sort_by(|a, b| running[*a].by_yielding(&running[*b]));
    let mut removals: Vec<(Victim, At)> = Vec::new();
    for victim in victims {
        let giver = &running[victim];
        for _ in 0..books.spare(victim) {
            if Packing::find(crew, &room).is_some() {
                break;
            }
            let gone = |at| removals.iter().filter(|removal| **removal == (victim, at)).count();
            let left = |at: At| usize::try_from(books.workers(victim, at)).unwrap() > gone(at);
            let posts = giver.posts.iter().filter(|(at, _)| left(**at));
            let next = posts.min_by_key(|(at, post)| (post.servers > 0, room.idle(**at), **at));
            let Some((at, _)) = next else { break };
            room.give(*at, giver.worker);
            removals.push((victim, *at));
        }
    }
    Packing::find(crew, &room)?;
    for entry in (0..removals.len()).rev() {
        let (victim, at) = removals[entry];
        let mut less = room.clone();
        less.take(at, running[victim].worker);
        if Packing::find(crew, &less).is_some() {
            room = less;
            removals.remove(entry);
        }
    }
    Some((Packing::find(crew, &room)?, removals))
}

proptest! {
    #[test]
    fn the_short_cuts_of_the_search_change_nothing(nodes in any_nodes(), jobs in any_jobs()) {
        let frame = frame(100.0, &nodes, &jobs);
        let nodes = Nodes::new(&frame.nodes);
        let crews = Crews::new(&frame, &nodes, &mut Arrivals::default());
        let mut kept = BTreeMap::new();
        let mut books = Books::new(&nodes, &crews, &mut kept);
        let givers = Givers::new(&crews.running);
        for crew in &crews.waiting {
            let plain = plainly(crew, &crews.running, &books);
            let plan = Plan::find(crew, &givers, &books);
            prop_assert_eq!(&plan.as_ref().map(|plan| (&plan.packing, &plan.removals)),
                &plain.as_ref().map(|(packing, removals)| (packing, removals)));
            // The next search meets the reservation.
            if let Some((packing, removals)) = plain {
                books.reserve(crew, &packing, &removals);
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
