use bollard::models::TaskState;
use paceline_policy::policies::{AnyPolicy, build};
use paceline_policy::{Params, Variant};

use super::*;
use crate::cluster::gangs::fake::{FakeSwarm, job};

/// 2026 began at this second.
const EPOCH: f64 = 1_767_225_600.0;

fn judge(policy: &str) -> Judge {
    let mind = match build(policy, Variant::Resolved, &Params::default()).unwrap() {
        AnyPolicy::Tasks(policy) => Mind::Tasks(policy),
        AnyPolicy::Gangs(policy) => Mind::Gangs(policy),
        AnyPolicy::Jobs(_) => panic!("{policy} answers frames of jobs"),
    };
    Judge::new(mind, EPOCH)
}

/// Decides at a second, and has it done; what waits.
fn turn(judge: &mut Judge, swarm: &mut FakeSwarm, second: f64) -> Vec<String> {
    let (orders, _) = judge.decide(Moment::from_seconds(second), &swarm.seen());
    swarm.obey(&orders.list);
    orders.waits.keys().map(ToString::to_string).collect()
}

#[test]
fn a_server_goes_to_the_most_workers_of_its_job() {
    let mut swarm = FakeSwarm::of(&[("a", 4.0), ("b", 4.0), ("c", 4.0)]);
    swarm.submit(&(job("j", 2, 3, 3) + "nodes = ['a', 'c', 'a']"), 0);
    let mut judge = judge("dltap");
    turn(&mut judge, &mut swarm, 1.0);
    assert_eq!(swarm.places(), ["j-worker-0@a", "j-worker-1@c", "j-worker-2@a"]);
    assert!(turn(&mut judge, &mut swarm, 2.0).is_empty());
    let servers: Vec<String> =
        swarm.places().into_iter().filter(|place| place.starts_with("j-ps")).collect();
    assert_eq!(servers, ["j-ps-0@a", "j-ps-1@a"]);
    // All is placed, and stays.
    let (orders, _) = judge.decide(Moment::from_seconds(3.0), &swarm.seen());
    assert_eq!(orders, Orders::default());
}

#[test]
fn a_job_whose_machine_is_unknown_waits_for_it() {
    let mut swarm = FakeSwarm::of(&[("a", 4.0)]);
    swarm.submit(&(job("j", 1, 1, 1) + "nodes = ['z']"), 0);
    for policy in ["dltap", "fifo-gang"] {
        let (orders, _) = judge(policy).decide(Moment::from_seconds(1.0), &swarm.seen());
        let why = orders.waits.values().next().unwrap();
        assert_eq!(why, "j-worker-0: no machine z takes tasks");
        assert!(orders.list.is_empty(), "{orders:?}");
    }
}

#[test]
fn a_job_starts_whole_or_waits() {
    let mut swarm = FakeSwarm::of(&[("a", 2.0), ("b", 2.0)]);
    swarm.submit(&job("first", 1, 2, 2), 0);
    swarm.submit(&job("second", 1, 2, 2), 1);
    let mut judge = judge("kod2");
    assert_eq!(turn(&mut judge, &mut swarm, 2.0), ["second"]);
    assert_eq!(swarm.places().len(), 3);
    for task in ["first-worker-0", "first-worker-1"] {
        swarm.ends(task, TaskState::COMPLETE);
    }
    // The end of its workers is that of a job: its server is taken back, and then there is room.
    turn(&mut judge, &mut swarm, 3.0);
    assert!(!swarm.places().iter().any(|place| place.starts_with("first-ps")));
    assert!(turn(&mut judge, &mut swarm, 4.0).is_empty());
    let second = swarm.places().into_iter().filter(|place| place.starts_with("second"));
    assert_eq!(second.count(), 3);
}

#[test]
fn a_job_grows_when_nobody_waits_and_shrinks_for_a_better_one() {
    let mut swarm = FakeSwarm::of(&[("a", 4.0)]);
    swarm.submit(&job("small", 1, 1, 3), 0);
    let mut judge = judge("kod2");
    turn(&mut judge, &mut swarm, 1.0);
    assert_eq!(swarm.places().len(), 2);
    turn(&mut judge, &mut swarm, 62.0);
    assert_eq!(swarm.places().len(), 4);
    // Twice the workers at the least: it counts more.
    swarm.submit(&job("better", 0, 2, 2), 59);
    assert_eq!(turn(&mut judge, &mut swarm, 63.0), ["better"]);
    assert_eq!(swarm.places(), ["small-ps-0@a", "small-worker-0@a"]);
    assert!(turn(&mut judge, &mut swarm, 64.0).is_empty());
    let better = swarm.places().into_iter().filter(|place| place.starts_with("better"));
    assert_eq!(better.count(), 2);
}

#[test]
fn a_start_that_was_cut_short_is_taken_back_and_made_anew() {
    let mut swarm = FakeSwarm::of(&[("a", 4.0)]);
    swarm.submit(&job("j", 1, 2, 2), 0);
    let (orders, _) = judge("kod2").decide(Moment::from_seconds(1.0), &swarm.seen());
    swarm.obey(orders.list.get(..2).unwrap());
    // Another manager, or one that could not do all of it.
    let mut judge = judge("kod2");
    turn(&mut judge, &mut swarm, 2.0);
    assert!(swarm.places().is_empty());
    turn(&mut judge, &mut swarm, 3.0);
    assert_eq!(swarm.places().len(), 3);
    judge.doubt();
    turn(&mut judge, &mut swarm, 4.0);
    assert_eq!(swarm.places().len(), 3, "it runs as a whole");
}

#[test]
fn a_job_that_is_still_being_submitted_is_not_started() {
    let mut swarm = FakeSwarm::of(&[("a", 4.0)]);
    swarm.submit(&job("j", 1, 2, 2), 0);
    let last = swarm.services.pop().unwrap();
    for policy in ["kod2", "dltap", "fifo", "fifo-gang"] {
        let (orders, frame) = judge(policy).decide(Moment::from_seconds(1.0), &swarm.seen());
        assert_eq!((orders, frame.is_some()), (Orders::default(), true), "{policy}");
    }
    swarm.services.push(last);
    let (orders, _) = judge("kod2").decide(Moment::from_seconds(1.0), &swarm.seen());
    assert_eq!(orders.list.len(), 3);
}

#[test]
fn tasks_bound_one_by_one_can_lock_one_another_out() {
    let mut swarm = FakeSwarm::of(&[("a", 2.0), ("b", 2.0)]);
    for name in ["first", "second"] {
        swarm.submit(&job(name, 1, 2, 2), 0);
    }
    let mut judge = judge("fifo");
    for second in 1..9 {
        let waiting = turn(&mut judge, &mut swarm, f64::from(second));
        assert_eq!(waiting.last().map(String::as_str), Some("second"));
    }
    // Four CPUs: the first has its three, and the second holds the last one for nothing.
    assert_eq!(swarm.places().len(), 4);
}
