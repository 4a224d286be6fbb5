//! One round of a manager: it takes in all reports of agents or Docker, the policy decides, and the
//! answer becomes actions. Run it with `make bench-cluster`.
//!
//! Expected: a round for 1,000 machines with 20 jobs each takes at most 250 ms. It grows with the
//! number of machines no worse than n log n. Of the distributed jobs a tenth waits. Data that
//! exceeds the processor's caches is slower whatever is done with it. `sort`, which is n log n by
//! itself, shows how much slower on this machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bollard::models::{Service, Task, TaskState, TaskStatus};
use divan::{Bencher, black_box};
use paceline_api::live::Snapshot;
use paceline_api::live::snapshot::{CountsView, JobView, Standing, TaskView, UsedView};
use paceline_cluster::gangs::decider::{Decider, PlacementPolicy};
use paceline_cluster::gangs::orders::{Action, Order};
use paceline_cluster::gangs::state::SwarmState;
use paceline_cluster::gangs::{Gang, spec};
use paceline_cluster::member::Member;
use paceline_cluster::world::World;
use paceline_policy::policies::{AnyPolicy, build};
use paceline_policy::unit::count;
use paceline_policy::{Moment, Params, Variant};

const MACHINES: [usize; 4] = [10, 100, 1_000, 10_000];
const JOBS: usize = 20;
/// After all jobs were submitted, in Unix seconds.
const LATER: f64 = 1_800_000_000.0;
/// CPUs of a machine.
const CPUS: f64 = 20.0;

fn main() {
    divan::main();
}

fn built(name: &str) -> AnyPolicy {
    build(name, Variant::Resolved, &Params::default()).expect("it has defaults")
}

fn members(machines: usize) -> Vec<Member> {
    let member = |at| Member {
        name: format!("m{at:05}"),
        id: format!("id-of-m{at:05}"),
        address: None,
        cpus: CPUS,
        memory: 1e11,
        trouble: None,
        takes_tasks: true,
    };
    (0..machines).map(member).collect()
}

/// `SpeCon`: one second of answers from all agents.
#[divan::bench(args = MACHINES, sample_count = 10, sample_size = 1)]
fn specon(bencher: Bencher<'_, '_>, machines: usize) {
    let AnyPolicy::Jobs(policy) = built("specon") else { return };
    let members = members(machines);
    let mut world = World::new(policy);
    let round = |world: &mut World, second: usize, said: &[Arc<Snapshot>]| {
        let now = Moment::from_seconds(60.0 * count(second));
        world.machines(&members);
        for (member, said) in members.iter().zip(said) {
            world.receive(now, &member.name, said);
        }
        let decided = world.decide(now);
        black_box(world.jobs(&BTreeMap::new()));
        decided
    };
    for second in 1..4 {
        black_box(round(&mut world, second, &answers(machines, second)));
    }
    let second = RefCell::new(3);
    let next = || {
        *second.borrow_mut() += 1;
        (*second.borrow(), answers(machines, *second.borrow()))
    };
    bencher.with_inputs(next).bench_local_values(|(second, said)| round(&mut world, second, &said));
}

/// The agents' answers: of three jobs one has converged.
fn answers(machines: usize, second: usize) -> Vec<Arc<Snapshot>> {
    let at = 60.0 * count(second);
    let job = |machine: usize, at_job: usize| {
        let rate = if at_job.is_multiple_of(3) { 0.0 } else { 0.1 };
        let reports = 100 * u64::try_from(second).unwrap_or(0);
        JobView {
            job: format!("job-{machine}-{at_job}"),
            container: format!("c-{machine}-{at_job}"),
            standing: Standing::Managed,
            counts: Some(CountsView {
                instance: "one".to_owned(),
                losses: reports,
                loss_sum: (1..=second).map(|s| 100.0 * (-rate * count(s)).exp()).sum(),
                loss_max_abs: Some(1.0),
                used: Some(UsedView { at, cpu_seconds: at / 2.0, throttled_seconds: 0.0 }),
                ..CountsView::default()
            }),
            task: Some(TaskView {
                service: format!("s-{machine}-{at_job}"),
                ..TaskView::default()
            }),
            ..JobView::default()
        }
    };
    let of = |machine| {
        let jobs = (0..JOBS).map(|at_job| job(machine, at_job)).collect();
        Arc::new(Snapshot { t: at, pid: 1, jobs, ..Snapshot::default() })
    };
    (0..machines).map(of).collect()
}

/// KOD2: Docker's state with as many jobs as machines. Each job has a parameter server and 19
/// workers; a tenth of the jobs waits.
#[divan::bench(args = MACHINES, sample_count = 5, sample_size = 1)]
fn kod2(bencher: Bencher<'_, '_>, machines: usize) {
    let AnyPolicy::Gangs(policy) = built("kod2") else { return };
    let mut decider = Decider::new(PlacementPolicy::Gangs(policy), LATER);
    let members = members(machines);
    let (mut services, mut tasks) = (submitted(machines), Vec::new());
    let second = RefCell::new(1);
    let mut round = |services: &[Service], tasks: &[Task]| {
        *second.borrow_mut() += 1;
        let state = SwarmState::new(&members, services, tasks);
        let (orders, frame) = decider.decide(Moment::from_seconds(count(*second.borrow())), &state);
        let views: Vec<_> = state.jobs.iter().map(|(id, job)| job.view(id, None)).collect();
        black_box((views, frame));
        orders.list
    };
    // All that fits is started: nine tenths.
    let started = round(&services, &tasks);
    obey(&mut services, &mut tasks, &started);
    bencher.bench_local(|| round(&services, &tasks));
}

/// For comparison: the same services, sorted by name.
#[divan::bench(args = MACHINES, sample_count = 5, sample_size = 1)]
fn sort(bencher: Bencher<'_, '_>, machines: usize) {
    let services = submitted(machines);
    let mut mixed: Vec<&Service> = services.iter().collect();
    mixed.sort_by_cached_key(|service| {
        let mut hasher = DefaultHasher::new();
        service.id.hash(&mut hasher);
        hasher.finish()
    });
    bencher.with_inputs(|| mixed.clone()).bench_local_values(|mut order| {
        order.sort_by(|one, other| one.id.cmp(&other.id));
        order
    });
}

/// The services of the jobs: a tenth asks for the room of two machines.
fn submitted(machines: usize) -> Vec<Service> {
    let mut services = Vec::new();
    for at in 0..machines {
        let cpus = if at % 10 == 9 { 2.0 } else { 1.0 };
        let text = format!(
            "name = 'job-{at:05}'\nimage = 'i'\n[ps]\ncount = 1\ncpus = 1\n\
             [worker]\nmin = {}\ncpus = {cpus}",
            JOBS - 1
        );
        let gang = Gang::parse(&text).expect("it is a job");
        for spec in spec::services(&gang, "net").expect("it has services") {
            services.push(Service {
                id: spec.name.clone(),
                created_at: Some("2026-01-01T00:00:00Z".to_owned()),
                spec: Some(spec),
                ..Service::default()
            });
        }
    }
    services
}

fn obey(services: &mut [Service], tasks: &mut Vec<Task>, orders: &[Order]) {
    let at: BTreeMap<String, usize> = services
        .iter()
        .enumerate()
        .filter_map(|(at, service)| Some((service.id.clone()?, at)))
        .collect();
    for Order { service: id, action, .. } in orders {
        let (Action::Place(_, node), Some(at)) = (action, at.get(id)) else { continue };
        let spec = services.get_mut(*at).and_then(|service| service.spec.as_mut());
        spec::place(spec.expect("it has one"), node);
        tasks.push(Task {
            service_id: Some(id.clone()),
            node_id: Some(node.clone()),
            status: Some(TaskStatus { state: Some(TaskState::RUNNING), ..TaskStatus::default() }),
            ..Task::default()
        });
    }
}
