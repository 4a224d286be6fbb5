use bollard::models::TaskState;
use paceline_policy::policies::{AnyPolicy, build};
use paceline_policy::{Params, Variant};

use super::*;
use crate::gangs::fake::{FakeSwarm, job};

/// 2026 began at this second.
const EPOCH: f64 = 1_767_225_600.0;

fn decider(policy: &str) -> Decider {
    let policy = match build(policy, Variant::Resolved, &Params::default()).unwrap() {
        AnyPolicy::Tasks(policy) => PlacementPolicy::Tasks(policy),
        AnyPolicy::Gangs(policy) => PlacementPolicy::Gangs(policy),
        AnyPolicy::Jobs(_) => panic!("{policy} answers frames of jobs"),
    };
    Decider::new(policy, EPOCH)
}

/// Decides at a second and carries out the orders. Returns the waiting jobs.
fn turn(decider: &mut Decider, swarm: &mut FakeSwarm, second: f64) -> Vec<String> {
    let (orders, _) = decider.decide(Moment::from_seconds(second), &swarm.state());
    swarm.obey(&orders.list);
    orders.waits.keys().map(ToString::to_string).collect()
}

#[test]
fn server_is_placed_with_most_workers_of_its_job() {
    let mut swarm = FakeSwarm::new(&[("a", 4.0), ("b", 4.0), ("c", 4.0)]);
    swarm.submit(&(job("j", 2, 3, 3) + "nodes = ['a', 'c', 'a']"), 0);
    let mut decider = decider("dltap");
    turn(&mut decider, &mut swarm, 1.0);
    assert_eq!(swarm.places(), ["j-worker-0@a", "j-worker-1@c", "j-worker-2@a"]);
    assert!(turn(&mut decider, &mut swarm, 2.0).is_empty());
    let servers: Vec<String> =
        swarm.places().into_iter().filter(|place| place.starts_with("j-ps")).collect();
    assert_eq!(servers, ["j-ps-0@a", "j-ps-1@a"]);
    // All tasks are placed, and stay.
    let (orders, _) = decider.decide(Moment::from_seconds(3.0), &swarm.state());
    assert_eq!(orders, Orders::default());
}

#[test]
fn job_with_unknown_machine_waits_for_it() {
    let mut swarm = FakeSwarm::new(&[("a", 4.0)]);
    swarm.submit(&(job("j", 1, 1, 1) + "nodes = ['z']"), 0);
    for policy in ["dltap", "fifo-gang"] {
        let (orders, _) = decider(policy).decide(Moment::from_seconds(1.0), &swarm.state());
        let why = orders.waits.values().next().unwrap();
        assert_eq!(why, "j-worker-0: machine z is unknown or takes no tasks");
        assert!(orders.list.is_empty(), "{orders:?}");
    }
}

#[test]
fn owners_order_that_is_not_carried_out_blocks_no_other_job() {
    let mut swarm = FakeSwarm::new(&[("a", 8.0)]);
    swarm.submit(&(job("chosen", 1, 1, 1) + "nodes = ['a']"), 0);
    swarm.submit(&job("other", 1, 1, 1), 1);
    for policy in ["dltap", "fifo", "kod2", "fifo-gang"] {
        let mut decider = decider(policy);
        let mut decide = |second| {
            let (orders, frame) = decider.decide(Moment::from_seconds(second), &swarm.state());
            let tasks = orders.list.into_iter().map(|order| order.task);
            (tasks.collect::<Vec<String>>(), frame.is_some())
        };
        assert_eq!(decide(2.0), (vec!["chosen-worker-0".to_owned()], false), "{policy}");
        let (tasks, is_asked) = decide(3.0);
        let of = |job: &str| tasks.iter().filter(|task| task.starts_with(job)).count();
        assert!(is_asked && of("chosen") == 1 && of("other") > 0, "{policy}: {tasks:?}");
    }
}

#[test]
fn job_starts_completely_or_waits() {
    let mut swarm = FakeSwarm::new(&[("a", 2.0), ("b", 2.0)]);
    swarm.submit(&job("first", 1, 2, 2), 0);
    swarm.submit(&job("second", 1, 2, 2), 1);
    let mut decider = decider("kod2");
    assert_eq!(turn(&mut decider, &mut swarm, 2.0), ["second"]);
    assert_eq!(swarm.places().len(), 3);
    for task in ["first-worker-0", "first-worker-1"] {
        swarm.ends(task, TaskState::COMPLETE);
    }
    // A job ends with its workers: its server is withdrawn, which frees the resources.
    turn(&mut decider, &mut swarm, 3.0);
    assert!(!swarm.places().iter().any(|place| place.starts_with("first-ps")));
    assert!(turn(&mut decider, &mut swarm, 4.0).is_empty());
    let second = swarm.places().into_iter().filter(|place| place.starts_with("second"));
    assert_eq!(second.count(), 3);
}

#[test]
fn job_grows_if_none_waits_and_shrinks_for_a_better_one() {
    let mut swarm = FakeSwarm::new(&[("a", 4.0)]);
    swarm.submit(&job("small", 1, 1, 3), 0);
    let mut decider = decider("kod2");
    turn(&mut decider, &mut swarm, 1.0);
    assert_eq!(swarm.places().len(), 2);
    turn(&mut decider, &mut swarm, 62.0);
    assert_eq!(swarm.places().len(), 4);
    // At least twice the workers: it has a higher weight.
    swarm.submit(&job("better", 0, 2, 2), 59);
    assert_eq!(turn(&mut decider, &mut swarm, 63.0), ["better"]);
    assert_eq!(swarm.places(), ["small-ps-0@a", "small-worker-0@a"]);
    assert!(turn(&mut decider, &mut swarm, 64.0).is_empty());
    let better = swarm.places().into_iter().filter(|place| place.starts_with("better"));
    assert_eq!(better.count(), 2);
}

#[test]
fn interrupted_start_is_withdrawn_and_repeated() {
    let mut swarm = FakeSwarm::new(&[("a", 4.0)]);
    swarm.submit(&job("j", 1, 2, 2), 0);
    let (orders, _) = decider("kod2").decide(Moment::from_seconds(1.0), &swarm.state());
    swarm.obey(orders.list.get(..2).unwrap());
    // Another manager, or one whose orders failed in part.
    let mut decider = decider("kod2");
    turn(&mut decider, &mut swarm, 2.0);
    assert!(swarm.places().is_empty());
    turn(&mut decider, &mut swarm, 3.0);
    assert_eq!(swarm.places().len(), 3);
    decider.doubt();
    turn(&mut decider, &mut swarm, 4.0);
    assert_eq!(swarm.places().len(), 3, "the job runs completely");
}

#[test]
fn partly_submitted_job_is_not_started() {
    let mut swarm = FakeSwarm::new(&[("a", 4.0)]);
    swarm.submit(&job("j", 1, 2, 2), 0);
    let last = swarm.services.pop().unwrap();
    for policy in ["kod2", "dltap", "fifo", "fifo-gang"] {
        let (orders, frame) = decider(policy).decide(Moment::from_seconds(1.0), &swarm.state());
        assert_eq!((orders, frame.is_some()), (Orders::default(), true), "{policy}");
    }
    swarm.services.push(last);
    let (orders, _) = decider("kod2").decide(Moment::from_seconds(1.0), &swarm.state());
    assert_eq!(orders.list.len(), 3);
}

#[test]
fn placing_single_tasks_can_deadlock_two_jobs() {
    let mut swarm = FakeSwarm::new(&[("a", 2.0), ("b", 2.0)]);
    for name in ["first", "second"] {
        swarm.submit(&job(name, 1, 2, 2), 0);
    }
    let mut decider = decider("fifo");
    for second in 1..9 {
        let waiting = turn(&mut decider, &mut swarm, f64::from(second));
        assert_eq!(waiting.last().map(String::as_str), Some("second"));
    }
    // Four CPUs: the first job has its three, and the second holds the last one without using
    // it.
    assert_eq!(swarm.places().len(), 4);
}
