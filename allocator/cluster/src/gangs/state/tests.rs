use bollard::models::{ResourceObject, TaskSpec, TaskSpecResources};
use paceline_api::live::snapshot::{GangState, PlaceView};
use paceline_policy::cluster::gangs::State;

use super::*;
use crate::gangs::fake::{FakeSwarm, job, task};
use crate::gangs::orders::{Action, Order};

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn placed_on(swarm: &FakeSwarm, name: &str, node: &str) -> Order {
    let state = swarm.state();
    let job = id("j");
    let task = state.jobs[&job].tasks.iter().find(|task| task.name == name).unwrap();
    Order {
        job: job.clone(),
        task: name.to_owned(),
        service: task.service.clone(),
        action: Action::Place(node.to_owned(), format!("id-of-{node}")),
        why: String::new(),
    }
}

fn swarm() -> FakeSwarm {
    let mut swarm = FakeSwarm::new(&[("a", 4.0), ("b", 4.0)]);
    swarm.submit(&job("j", 1, 1, 2), 5);
    swarm
}

fn stand(swarm: &FakeSwarm, name: &str) -> PlacementState {
    let state = swarm.state();
    state.jobs[&id("j")].tasks.iter().find(|task| task.name == name).unwrap().placement.clone()
}

fn cpus(nodes: &[Node]) -> Vec<f64> {
    nodes.iter().filter_map(|node| node.cpus).collect()
}

#[test]
fn task_placement_follows_docker() {
    let mut swarm = swarm();
    assert_eq!(stand(&swarm, "j-ps-0"), PlacementState::Free);
    swarm.obey(&[placed_on(&swarm, "j-ps-0", "a")]);
    assert_eq!(stand(&swarm, "j-ps-0"), PlacementState::Placed("a".to_owned()));
    // A service is placed before Docker has created its task.
    let made = swarm.tasks.clone();
    swarm.tasks.clear();
    assert_eq!(stand(&swarm, "j-ps-0"), PlacementState::Placed("a".to_owned()));
    // A failed first attempt does not end the task while there is a second.
    swarm.tasks = made;
    swarm.tasks.insert(0, task("id-of-j-ps-0", Some("id-of-a".to_owned()), TaskState::FAILED));
    assert_eq!(stand(&swarm, "j-ps-0"), PlacementState::Placed("a".to_owned()));
    swarm.tasks.pop();
    let over = PlacementState::Over("a".to_owned(), Some("failed: ".to_owned()));
    assert_eq!(stand(&swarm, "j-ps-0"), over);
    let spec = swarm.services.first_mut().and_then(|service| service.spec.as_mut()).unwrap();
    crate::engine::scale(spec, 0);
    assert_eq!(stand(&swarm, "j-ps-0"), PlacementState::Free);
    swarm.tasks = vec![task("id-of-j-ps-0", Some("id-of-a".to_owned()), TaskState::RUNNING)];
    assert_eq!(stand(&swarm, "j-ps-0"), PlacementState::Leaving("a".to_owned()));
}

#[test]
fn gang_frame_has_placements_and_subtracts_other_services() {
    let mut swarm = swarm();
    swarm.obey(&[placed_on(&swarm, "j-ps-0", "a"), placed_on(&swarm, "j-worker-0", "b")]);
    let frame = swarm.state().gang_frame(Moment::from_seconds(9.0), 1_767_225_600.0);
    let gang = frame.jobs.first().unwrap();
    assert_eq!((gang.state, gang.submitted), (State::Running, Some(5.0)));
    assert_eq!((gang.worker.min, gang.worker.max), (1, Some(2)));
    assert_eq!(gang.placement.ps, BTreeMap::from([("a".to_owned(), 1)]));
    assert_eq!(gang.placement.workers, BTreeMap::from([("b".to_owned(), 1)]));
    assert_eq!(cpus(&frame.nodes), [4.0, 4.0]);
    let resources =
        Some(ResourceObject { nano_cpus: Some(1_500_000_000), ..ResourceObject::default() });
    let spec = TaskSpec {
        resources: Some(TaskSpecResources {
            reservations: resources,
            ..TaskSpecResources::default()
        }),
        ..TaskSpec::default()
    };
    let other = Task {
        spec: Some(spec),
        ..task("another", Some("id-of-b".to_owned()), TaskState::RUNNING)
    };
    swarm.tasks.push(other);
    let frame = swarm.state().gang_frame(Moment::from_seconds(9.0), 0.0);
    assert_eq!(cpus(&frame.nodes), [4.0, 2.5]);
}

#[test]
fn ended_job_holds_resources_until_its_tasks_leave() {
    let mut swarm = swarm();
    swarm.obey(&[placed_on(&swarm, "j-ps-0", "a"), placed_on(&swarm, "j-worker-0", "b")]);
    swarm.ends("j-worker-0", TaskState::COMPLETE);
    let state = swarm.state();
    assert!(state.jobs[&id("j")].has_ended());
    let now = Moment::from_seconds(9.0);
    assert_eq!(cpus(&state.gang_frame(now, 0.0).nodes), [3.0, 4.0]);
    let frame = state.task_frame(now);
    assert_eq!((cpus(&frame.nodes), frame.tasks.len()), (vec![3.0, 4.0], 0));
}

#[test]
fn machines_that_take_no_tasks_are_left_out() {
    let mut swarm = FakeSwarm::new(&[("a", 4.0), ("b", 4.0), ("c", 4.0)]);
    swarm.members[0].takes_tasks = false;
    swarm.members[1].trouble = Some("down".to_owned());
    assert_eq!(swarm.state().machines.keys().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn view_has_places_and_failure() {
    let mut swarm = swarm();
    let state = swarm.state();
    let view = state.jobs[&id("j")].view(&id("j"), Some("no room".to_owned()));
    assert_eq!((view.state, view.why.as_deref()), (GangState::Waiting, Some("no room")));
    swarm.obey(&[placed_on(&swarm, "j-ps-0", "a"), placed_on(&swarm, "j-worker-1", "a")]);
    let view = swarm.state().jobs[&id("j")].view(&id("j"), None);
    assert_eq!(view.state, GangState::Running);
    assert_eq!(view.places, BTreeMap::from([("a".to_owned(), PlaceView { ps: 1, workers: 1 })]));
    swarm.ends("j-worker-1", TaskState::FAILED);
    let view = swarm.state().jobs[&id("j")].view(&id("j"), None);
    assert_eq!(view.state, GangState::Failed);
    assert_eq!(view.trouble.as_deref(), Some("j-worker-1: failed: exit 1"));
    swarm.services.pop();
    assert_eq!(swarm.state().jobs[&id("j")].view(&id("j"), None).state, GangState::Incomplete);
}
