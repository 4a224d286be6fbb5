use paceline_policy::cluster::gangs::Change;
use paceline_policy::reason::Why;

use super::*;
use crate::gangs::fake::{FakeSwarm, job};

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
    let mut swarm = FakeSwarm::new(&[("a", 9.0), ("b", 9.0)]);
    swarm.submit(&job("j", 1, 1, 3), 0);
    let (state, id) = (swarm.state(), JobId::new("j").unwrap());
    let tasks = &state.jobs.get(&id).unwrap().tasks;
    let on = [("a", 0), ("a", 1), ("b", 2)];
    let orders =
        on.iter().filter_map(|(node, at)| place(&state, &id, tasks.get(*at)?, node, String::new()));
    swarm.obey(&orders.collect::<Vec<_>>());
    swarm
}

fn named(orders: &Orders) -> Vec<String> {
    let name = |order: &Order| match &order.action {
        Action::Place(node, _) => format!("{}>{node}", order.task),
        Action::Withdraw(node) => format!("{}<{node}", order.task),
    };
    orders.list.iter().map(name).collect()
}

#[test]
fn scale_out_places_only_waiting_workers() {
    let grown = Scaling { scale_out: vec![change(2, "b")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().state(), &grown)), ["j-worker-2>b"]);
    let twice = Scaling { scale_out: vec![change(1, "b"), change(1, "a")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().state(), &twice)), ["j-worker-2>b"]);
}

#[test]
fn scale_in_withdraws_workers_of_the_named_machine() {
    let shrunk = Scaling { scale_in: vec![change(1, "b")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().state(), &shrunk)), ["j-worker-1<b"]);
    let other = Scaling { scale_in: vec![change(9, "a")], ..scaling() };
    assert_eq!(named(&of_scaling(&swarm().state(), &other)), ["j-worker-0<a"]);
}

#[test]
fn missing_machine_or_job_gives_no_orders() {
    let gone = Scaling { scale_out: vec![change(1, "z")], ..scaling() };
    assert!(of_scaling(&swarm().state(), &gone).list.is_empty());
    let missing = Scaling { scale_in: vec![change(1, "a")], ..scaling() };
    assert!(of_scaling(&FakeSwarm::new(&[]).state(), &missing).list.is_empty());
}

#[test]
fn ended_job_has_all_its_tasks_withdrawn() {
    let mut swarm = swarm();
    assert!(of_ended(&swarm.state()).is_empty());
    swarm.ends("j-ps-0", bollard::models::TaskState::FAILED);
    let orders = Orders { list: of_ended(&swarm.state()), waits: BTreeMap::new() };
    assert_eq!(named(&orders), ["j-worker-0<a", "j-worker-1<b"]);
}
