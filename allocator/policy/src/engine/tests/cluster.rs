use super::*;
use crate::engine::{Cluster, NodeSpec};
use crate::policies::SpeCon;

/// Two nodes of one CPU each, under `SpeCon`.
fn cluster() -> Cluster {
    let mut params = Params::default();
    params.set("interval", 10.0);
    let policy = SpeCon::new(Variant::Resolved, &params).unwrap();
    let node = |name: &str| NodeSpec { name: name.to_owned(), cpus: 1.0 };
    Cluster::new(2.0, 1e9, ["a", "b"].map(node), Box::new(policy))
}

fn step(cluster: &mut Cluster, t: f64, event: Event) {
    assert_eq!(cluster.step(at(t), event), []);
}

fn on(node: &str, name: &str) -> JobSpec {
    JobSpec { node: Some(node.to_owned()), ..spec(name) }
}

fn run(cluster: &mut Cluster, t: f64) -> (Frame, Decision, Vec<Change>) {
    let (mut decided, mut set) = (None, Vec::new());
    for effect in cluster.step(at(t), Event::Decide) {
        match effect {
            Effect::Decided(one) => decided = Some(*one),
            Effect::Set(changes) => set = changes,
            Effect::WakeAt(when) => assert_eq!(when, at(t + 10.0)),
            Effect::End(jobs) => panic!("{jobs:?}"),
        }
    }
    let (frame, decision) = decided.unwrap();
    (frame, decision, set)
}

fn homes(frame: &Frame) -> Vec<(&str, Option<&str>)> {
    frame.jobs.iter().map(|job| (job.id.as_str(), job.node.as_deref())).collect()
}

#[test]
fn frame_has_all_nodes_and_usage_relative_to_each_jobs_node() {
    let mut cluster = cluster();
    step(&mut cluster, 0.0, Event::Appeared(on("a", "x")));
    step(&mut cluster, 0.0, Event::Appeared(on("b", "y")));
    for (t, seconds) in [(0.0, 1.0), (10.0, 6.0)] {
        step(&mut cluster, t, Event::Used(id("x"), used(seconds)));
        cluster.node_used(at(t), "a", seconds + 2.0);
        drop(run(&mut cluster, t));
    }
    step(&mut cluster, 20.0, Event::Used(id("x"), used(16.0)));
    cluster.node_used(at(20.0), "a", 18.0);
    let (frame, decision, set) = run(&mut cluster, 20.0);
    assert_eq!(homes(&frame), [("x", Some("a")), ("y", Some("b"))]);
    assert_eq!(frame.jobs[0].usage.cpu, Some(1.0), "10 CPU seconds in 10 s on 1 CPU");
    let nodes: Vec<_> =
        frame.nodes.iter().map(|node| (node.name.as_str(), node.cpus, node.usage.cpu)).collect();
    assert_eq!(nodes, [("a", Some(1.0), Some(1.0)), ("b", Some(1.0), None)]);
    assert_eq!((decision.policy, set), ("specon", Vec::new()), "it leaves limits alone");
}

#[test]
fn moving_job_counts_on_its_target_until_it_appears_there() {
    let mut cluster = cluster();
    step(&mut cluster, 0.0, Event::Appeared(on("a", "x")));
    step(&mut cluster, 0.0, Event::Reported(id("x"), progress(2, 8.0, 2, 1.0)));
    step(&mut cluster, 1.0, Event::Moving(id("x"), "b".to_owned()));
    let (frame, ..) = run(&mut cluster, 1.0);
    assert_eq!(homes(&frame), [("x", Some("b"))]);
    assert_eq!(frame.jobs[0].loss, None, "it reports nothing while it is moved");
    assert_eq!(cluster.status(&id("x")), None);
    step(&mut cluster, 2.0, Event::Appeared(on("b", "x")));
    step(&mut cluster, 2.0, Event::Reported(id("x"), progress(2, 6.0, 2, 1.0)));
    let (frame, ..) = run(&mut cluster, 2.0);
    assert_eq!(homes(&frame), [("x", Some("b"))]);
    assert_eq!(frame.jobs[0].loss, Some(3.0), "its new process counts from 0");
    step(&mut cluster, 3.0, Event::Gone(id("x")));
    assert_eq!(run(&mut cluster, 3.0).0.jobs, []);
}

#[test]
fn shares_are_machine_fractions_outside_and_node_ones_inside() {
    let mut cluster = cluster();
    let capped = JobSpec { max: Some(Share::nearest(0.25)), ..on("a", "x") };
    step(&mut cluster, 0.0, Event::Appeared(capped));
    let (frame, _, set) = run(&mut cluster, 0.0);
    assert_eq!(frame.jobs[0].limit.max, Some(0.5), "a quarter of the machine is half of the node");
    assert_eq!(set.len(), 1);
    assert_eq!((set[0].from, set[0].to), (cap(1.0), cap(0.25)));
    step(&mut cluster, 0.0, Event::Applied(id("x"), cap(0.25)));
    let status = cluster.status(&id("x")).unwrap();
    assert_eq!(status.in_force.cap, Share::nearest(0.25));
    assert_eq!(run(&mut cluster, 1.0).2, [], "it is in force");
    step(&mut cluster, 2.0, Event::Pinned(id("x"), Share::nearest(0.4)));
    let (frame, _, set) = run(&mut cluster, 2.0);
    assert_eq!((frame.jobs.len(), set[0].to), (0, cap(0.4)), "the policy does not see pinned jobs");
}

#[test]
fn a_job_on_no_node_is_not_known() {
    let mut cluster = cluster();
    step(&mut cluster, 0.0, Event::Appeared(spec("x")));
    step(&mut cluster, 0.0, Event::Appeared(on("c", "y")));
    step(&mut cluster, 0.0, Event::Pinned(id("x"), Share::nearest(0.4)));
    assert_eq!(run(&mut cluster, 1.0).0.jobs, []);
    assert_eq!(cluster.status(&id("y")), None);
}

#[test]
fn new_policy_and_new_limiter_settings_are_used() {
    let mut cluster = cluster();
    step(&mut cluster, 0.0, Event::Appeared(on("a", "x")));
    let none = Unlimited::new(&Params::default()).unwrap();
    cluster.set_policy(Box::new(none));
    let effects = cluster.step(at(1.0), Event::Decide);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Decided(one) if one.1.policy == "none"))
    );
    let (quota, usual) = (
        LimiterSettings { enforcement: limiter::Enforcement::Quota, ..Default::default() },
        LimiterSettings::default(),
    );
    assert_eq!(cluster.set_limiter(quota).unwrap(), usual);
    assert_eq!(cluster.set_limiter(usual).unwrap(), quota);
}

#[test]
fn machines_join_and_leave_and_shares_stay_relative_to_them() {
    let policy = SpeCon::new(Variant::Resolved, &Params::default()).unwrap();
    let mut cluster = Cluster::for_machines(Box::new(policy));
    let machine = |name: &str, cpus| NodeSpec { name: name.to_owned(), cpus };
    cluster.join(&machine("a", 2.0), 1e9);
    cluster.join(&machine("b", 6.0), 4e9);
    let capped = JobSpec { max: Some(Share::nearest(0.25)), ..on("a", "x") };
    step(&mut cluster, 0.0, Event::Appeared(capped));
    step(&mut cluster, 0.0, Event::Appeared(on("b", "y")));
    step(&mut cluster, 0.0, Event::Appeared(on("c", "z")));
    let decided = |cluster: &mut Cluster, t| {
        let mut effects = cluster.step(at(t), Event::Decide).into_iter();
        let Some(Effect::Decided(one)) = effects.next() else { panic!("no decision") };
        one.0
    };
    let frame = decided(&mut cluster, 0.0);
    assert_eq!(homes(&frame), [("x", Some("a")), ("y", Some("b"))], "machine c is unknown");
    assert_eq!(frame.jobs[0].limit.max, Some(0.25));
    cluster.join(&machine("a", 2.0), 1e9);
    assert_eq!(homes(&decided(&mut cluster, 1.0)).len(), 2, "it was there");
    cluster.set_accepts_jobs("b", false);
    let frame = decided(&mut cluster, 1.0);
    let listed: Vec<&str> = frame.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!((homes(&frame).len(), listed), (2, vec!["a"]), "its jobs are still there");
    cluster.set_accepts_jobs("b", true);
    cluster.leave("a");
    let frame = decided(&mut cluster, 2.0);
    assert_eq!((homes(&frame), frame.nodes.len()), (vec![("y", Some("b"))], 1));
    assert_eq!(cluster.status(&id("x")), None);
    assert!(cluster.status(&id("y")).is_some(), "jobs of other machines stay known");
    cluster.join(&machine("a", 2.0), 1e9);
    step(&mut cluster, 3.0, Event::Appeared(on("a", "x")));
    assert_eq!(homes(&decided(&mut cluster, 3.0)).len(), 2);
}
