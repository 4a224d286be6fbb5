use paceline_policy::cluster::gangs::Change;
use paceline_policy::policies::Why;

use super::*;
use crate::cluster::gangs::fake::{FakeSwarm, job};

fn scaling() -> Scaling {
    Scaling {
        t: 1.0,
        policy: "kod2",
        weights: BTreeMap::new(),
        start: Vec::new(),
        scale_in: Vec::new(),
        scale_out: Vec::new(),
        waiting: Vec::new(),
    }
}

fn change(count: u32, node: &str) -> Change {
    let job = JobId::new("j").unwrap();
    Change { job, node: node.to_owned(), count, why: Why::Unlimited }
}

/// A job with a server and a worker on each of two machines, of three workers.
fn swarm() -> FakeSwarm {
    let mut swarm = FakeSwarm::of(&[("a", 9.0), ("b", 9.0)]);
    swarm.submit(&job("j", 1, 1, 3), 0);
    let (seen, id) = (swarm.seen(), JobId::new("j").unwrap());
    let seats = &seen.jobs.get(&id).unwrap().seats;
    let on = [("a", 0), ("a", 1), ("b", 2)];
    let orders =
        on.iter().filter_map(|(node, at)| place(&seen, &id, seats.get(*at)?, node, String::new()));
    swarm.obey(&orders.collect::<Vec<_>>());
    swarm
}

fn named(orders: &Orders) -> Vec<String> {
    let name = |order: &Order| match &order.what {
        What::Place(node, _) => format!("{}>{node}", order.task),
        What::Withdraw(node) => format!("{}<{node}", order.task),
    };
    orders.list.iter().map(name).collect()
}

#[test]
fn workers_that_come_are_those_that_wait() {
    let grown = Scaling { scale_out: vec![change(2, "b")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().seen(), &grown)), ["j-worker-2>b"]);
    let twice = Scaling { scale_out: vec![change(1, "b"), change(1, "a")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().seen(), &twice)), ["j-worker-2>b"]);
}

#[test]
fn workers_that_go_are_those_of_the_machine_that_was_named() {
    let shrunk = Scaling { scale_in: vec![change(1, "b")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().seen(), &shrunk)), ["j-worker-1<b"]);
    let other = Scaling { scale_in: vec![change(9, "a")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().seen(), &other)), ["j-worker-0<a"]);
}

#[test]
fn a_machine_or_a_job_that_is_gone_is_asked_for_nothing() {
    let gone = Scaling { scale_out: vec![change(1, "z")], ..scaling() };
    assert!(of_scaling(&swarm().seen(), &gone).list.is_empty());
    let nobody = Scaling { scale_in: vec![change(1, "a")], ..scaling() };
    assert!(of_scaling(&FakeSwarm::of(&[]).seen(), &nobody).list.is_empty());
}

#[test]
fn all_that_a_job_has_is_taken_back_at_its_end() {
    let mut swarm = swarm();
    assert!(of_ended(&swarm.seen()).is_empty());
    swarm.ends("j-ps-0", bollard::models::TaskState::FAILED);
    let orders = Orders { list: of_ended(&swarm.seen()), waits: BTreeMap::new() };
    assert_eq!(named(&orders), ["j-worker-0<a", "j-worker-1<b"]);
}
