use paceline_api::live::snapshot::{CountsView, Standing, TaskView, UsedView};
use paceline_policy::policies::{AnyPolicy, build};
use paceline_policy::{Params, Variant};

use super::*;

fn member(name: &str) -> Member {
    Member {
        name: name.to_owned(),
        id: format!("id of {name}"),
        address: None,
        cpus: 2.0,
        memory: 1e9,
        trouble: None,
        takes_tasks: true,
    }
}

fn world(machines: &[&str]) -> World {
    let Ok(AnyPolicy::Jobs(policy)) = build("specon", Variant::Resolved, &Params::default()) else {
        panic!("specon answers frames of jobs")
    };
    let mut world = World::new(policy);
    let members: Vec<Member> = machines.iter().map(|name| member(name)).collect();
    assert!(world.machines(&members));
    world
}

/// A job that has used half of two CPUs until `at`, and has reported the loss 1 `losses` times.
fn job(job: &str, at: f64, losses: u64) -> JobView {
    #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "it is small")]
    let loss_sum = losses as f64;
    JobView {
        job: job.to_owned(),
        container: format!("container of {job}"),
        standing: Standing::Managed,
        weight: 1.0,
        limit: Some(1.0),
        memory: Some(1e8),
        counts: Some(CountsView {
            instance: "one".to_owned(),
            losses,
            loss_sum,
            loss_max_abs: Some(1.0),
            used: Some(UsedView { at, cpu_seconds: at, throttled_seconds: 0.0 }),
            ..CountsView::default()
        }),
        ..JobView::default()
    }
}

fn said(t: f64, jobs: &[JobView]) -> Arc<Snapshot> {
    Arc::new(Snapshot { t, pid: 1, started_at: 5.0, jobs: jobs.to_vec(), ..Snapshot::default() })
}

fn at(seconds: f64) -> Moment {
    Moment::from_seconds(seconds)
}

fn shown(world: &World) -> Vec<JobView> {
    world.jobs(&BTreeMap::new())
}

fn frame(world: &mut World, t: f64) -> Frame {
    world.decide(at(t)).unwrap().frame
}

#[test]
fn frame_has_all_jobs_with_their_usage_since_the_last_one() {
    let mut world = world(&["w1", "w2"]);
    assert!(world.receive(at(10.0), "w1", &said(100.0, &[job("vae", 100.0, 5)])));
    assert!(world.receive(at(10.0), "w2", &said(7.0, &[job("gru", 7.0, 1)])));
    let first = frame(&mut world, 10.0);
    assert_eq!(first.nodes.len(), 2);
    assert_eq!(first.jobs.iter().map(|job| job.loss).collect::<Vec<_>>(), [None, None]);
    assert!(!world.receive(at(20.0), "w1", &said(110.0, &[job("vae", 110.0, 25)])));
    assert!(!world.receive(at(20.0), "w2", &said(17.0, &[job("gru", 17.0, 1)])));
    let frame = frame(&mut world, 20.0);
    let [vae, gru] = ["vae", "gru"]
        .map(|id| frame.jobs.iter().find(|job| job.id.as_str() == id).unwrap().clone());
    assert_eq!((vae.node.as_deref(), gru.node.as_deref()), (Some("w1"), Some("w2")));
    assert_eq!((vae.loss, gru.loss), (Some(1.0), None), "the latter reported nothing");
    assert_eq!((vae.usage.cpu, vae.usage.memory), (Some(0.5), Some(0.1)));
}

#[test]
fn late_answer_does_not_look_like_a_stalled_job() {
    let mut world = world(&["w1"]);
    world.receive(at(10.0), "w1", &said(100.0, &[job("vae", 100.0, 5)]));
    frame(&mut world, 10.0);
    // Read at the agent's second 110, and received 3 s later.
    world.receive(at(23.0), "w1", &said(110.0, &[job("vae", 110.0, 25)]));
    let frame = frame(&mut world, 23.0);
    assert_eq!(frame.jobs[0].usage.cpu, Some(0.5));
}

#[test]
fn restarted_agent_with_a_new_clock_keeps_its_jobs() {
    let mut world = world(&["w1"]);
    world.receive(at(10.0), "w1", &said(1000.0, &[job("vae", 1000.0, 5)]));
    frame(&mut world, 10.0);
    let mut restarted = job("vae", 1010.0, 25);
    restarted.counts.as_mut().unwrap().used.as_mut().unwrap().at = 2.0;
    let restarted = Snapshot { t: 2.0, pid: 2, jobs: vec![restarted], ..Snapshot::default() };
    assert!(!world.receive(at(20.0), "w1", &Arc::new(restarted)), "it is the same job");
    let frame = frame(&mut world, 20.0);
    assert_eq!((frame.jobs[0].loss, frame.jobs[0].usage.cpu), (Some(1.0), Some(0.5)));
}

#[test]
fn unmanaged_job_is_shown_but_not_in_the_frame() {
    let mut world = world(&["w1"]);
    let waiting = JobView { standing: Standing::Waiting, ..job("vae", 1.0, 0) };
    assert!(!world.receive(at(1.0), "w1", &said(1.0, &[waiting])));
    assert_eq!(frame(&mut world, 1.0).jobs, []);
    assert_eq!(shown(&world)[0].node.as_deref(), Some("w1"));
    assert!(world.receive(at(2.0), "w1", &said(2.0, &[job("vae", 2.0, 1)])));
    assert_eq!(frame(&mut world, 2.0).jobs.len(), 1);
    assert!(shown(&world)[0].class.is_some());
    assert!(world.receive(at(3.0), "w1", &said(3.0, &[])));
    assert_eq!(frame(&mut world, 3.0).jobs, []);
}

#[test]
fn reached_target_asks_for_a_decision() {
    let mut world = world(&["w1"]);
    world.receive(at(1.0), "w1", &said(1.0, &[job("vae", 1.0, 1)]));
    let reached = JobView { acceptable_at: Some(7.0), ..job("vae", 2.0, 2) };
    assert!(world.receive(at(2.0), "w1", &said(2.0, &[reached])));
}

#[test]
fn jobs_of_one_name_on_two_machines_get_distinct_names() {
    let mut world = world(&["w1", "w2"]);
    for machine in ["w1", "w2"] {
        let own = JobView { container: machine.to_owned(), ..job("vae", 1.0, 1) };
        world.receive(at(1.0), machine, &said(1.0, &[own]));
    }
    let names: Vec<String> =
        frame(&mut world, 1.0).jobs.iter().map(|job| job.id.to_string()).collect();
    assert_eq!(names, ["vae", "vae@w2"]);
    let listed: Vec<String> = shown(&world).into_iter().map(|job| job.job).collect();
    assert_eq!(listed, names);
}

#[test]
fn machine_in_trouble_has_no_jobs() {
    let mut world = world(&["w1", "w2"]);
    world.receive(at(1.0), "w1", &said(1.0, &[job("vae", 1.0, 1)]));
    world.receive(at(1.0), "w2", &said(1.0, &[]));
    let down = Member { trouble: Some("down".to_owned()), ..member("w1") };
    assert!(world.machines(&[down.clone(), member("w2")]));
    assert!(
        !world.receive(at(2.0), "w1", &said(2.0, &[job("vae", 2.0, 2)])),
        "its agent is not asked"
    );
    let frame = frame(&mut world, 2.0);
    assert_eq!((frame.jobs.len(), frame.nodes.len()), (0, 1));
    assert_eq!(world.nodes()[0].trouble.as_deref(), Some("down"));
    assert!(!world.machines(&[down, member("w2")]), "that is known");
    world.machines(&[member("w1"), member("w2")]);
    assert!(world.receive(at(3.0), "w1", &said(3.0, &[job("vae", 3.0, 3)])), "it is back");
}

#[test]
fn machine_that_takes_no_tasks_is_not_a_target() {
    let mut world = world(&["w1", "w2"]);
    world.receive(at(1.0), "w1", &said(1.0, &[job("vae", 1.0, 1)]));
    world.receive(at(1.0), "w2", &said(1.0, &[]));
    let drained = Member { takes_tasks: false, ..member("w1") };
    assert!(!world.machines(&[drained, member("w2")]), "its jobs continue");
    let frame = frame(&mut world, 2.0);
    let listed: Vec<&str> = frame.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!((frame.jobs.len(), listed), (1, vec!["w2"]));
}

#[test]
fn machine_whose_agent_does_not_answer_is_not_a_target() {
    let mut world = world(&["w1", "w2"]);
    let targets = |world: &mut World| -> Vec<String> {
        frame(world, 2.0).nodes.iter().map(|node| node.name.to_string()).collect()
    };
    world.receive(at(1.0), "w1", &said(1.0, &[job("vae", 1.0, 1)]));
    assert_eq!(targets(&mut world), ["w1"], "no agent of w2 was heard");
    world.receive(at(1.0), "w2", &said(1.0, &[]));
    assert_eq!(targets(&mut world), ["w1", "w2"]);
    world.unreachable("w2", "no answer");
    world.machines(&[member("w1"), member("w2")]);
    assert!(!world.answers("w2"));
    assert_eq!(targets(&mut world), ["w1"]);
    world.receive(at(2.0), "w2", &said(2.0, &[]));
    assert_eq!(targets(&mut world), ["w1", "w2"]);
}

#[test]
fn last_report_stays_valid_while_the_agent_is_unreachable() {
    let mut world = world(&["w1"]);
    let last = said(1.0, &[job("vae", 1.0, 1)]);
    world.receive(at(1.0), "w1", &last);
    world.unreachable("w1", "no answer");
    assert_eq!(shown(&world)[0].trouble.as_deref(), Some("no answer"));
    assert_eq!(frame(&mut world, 2.0).jobs.len(), 1);
    world.receive(at(3.0), "w1", &said(3.0, &[job("vae", 3.0, 2)]));
    assert_eq!(shown(&world)[0].trouble, None);
}

/// The same job in a task of another service.
fn of_service(service: &str, view: JobView) -> JobView {
    let task = TaskView { service: service.to_owned(), ..TaskView::default() };
    JobView { container: format!("container of {service}"), task: Some(task), ..view }
}

fn vae() -> JobId {
    JobId::new("vae").unwrap()
}

/// A job that is frozen on w1 and moving to w2, where its replacement already runs.
fn on_its_way() -> World {
    let mut world = world(&["w1", "w2"]);
    world.receive(at(1.0), "w1", &said(1.0, &[of_service("one", job("vae", 1.0, 1))]));
    world.hold_back("two".to_owned());
    world.depart(at(2.0), &vae(), "w2");
    world.receive(at(3.0), "w2", &said(3.0, &[of_service("two", job("vae", 3.0, 1))]));
    let frame = frame(&mut world, 3.0);
    let [only] = &frame.jobs[..] else { panic!("{:?}", frame.jobs) };
    assert_eq!((only.id.as_str(), only.node.as_deref()), ("vae", Some("w2")));
    let shown = shown(&world);
    let [only] = &shown[..] else { panic!("{shown:?}") };
    assert_eq!((only.standing, only.node.as_deref()), (Standing::Moving, Some("w1")));
    assert_eq!(world.find(&vae()), None);
    world
}

#[test]
fn moved_job_is_on_the_target_and_its_old_container_hidden() {
    let mut world = on_its_way();
    world.arrived(&vae(), "container of one".to_owned(), Some("two"));
    // The source's agent has not noticed yet.
    world.receive(at(4.0), "w1", &said(4.0, &[of_service("one", job("vae", 2.0, 1))]));
    assert!(world.receive(at(4.0), "w2", &said(4.0, &[of_service("two", job("vae", 4.0, 2))])));
    assert_eq!(world.find(&vae()).map(|(node, _)| node), Some("w2"));
    assert_eq!(frame(&mut world, 4.0).jobs.len(), 1);
    assert_eq!(shown(&world).len(), 1);
}

#[test]
fn job_of_a_failed_move_is_back_on_its_source() {
    let mut world = on_its_way();
    world.stays(at(4.0), &vae(), "w1", Some("two"));
    let between = frame(&mut world, 4.0);
    assert_eq!(between.jobs[0].node.as_deref(), Some("w1"));
    world.receive(at(5.0), "w2", &said(5.0, &[]));
    assert!(world.receive(at(5.0), "w1", &said(5.0, &[of_service("one", job("vae", 2.0, 1))])));
    assert_eq!(world.find(&vae()).map(|(node, _)| node), Some("w1"));
    assert_eq!(shown(&world)[0].standing, Standing::Managed);
}

#[test]
fn obstacle_to_a_move_is_shown() {
    let mut world = world(&["w1"]);
    let jobs = [of_service("one", job("vae", 1.0, 1)), job("gru", 1.0, 1)];
    world.receive(at(1.0), "w1", &said(1.0, &jobs));
    let why = BTreeMap::from([("one".to_owned(), "no checkpoint".to_owned())]);
    let unmovable: Vec<_> = world.jobs(&why).into_iter().map(|job| job.unmovable).collect();
    let expected = ["it is not a Swarm task", "no checkpoint"];
    assert_eq!(unmovable, expected.map(|why| Some(why.to_owned())));
}
