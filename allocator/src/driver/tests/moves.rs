//! What becomes of jobs that are moved, on a driver that is led by hand: no engine answers it.

use bollard::Docker;
use bollard::models::ContainerInspectResponse;
use paceline_policy::decision::{Cause, Migration};
use paceline_policy::{Cluster, Effect, Event, JobId, Share};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::UnixListener;

use super::{audited, policy};
use crate::actuate::Actuator;
use crate::actuate::originals::Originals;
use crate::audit::Audit;
use crate::driver::survey::Survey;
use crate::driver::{Driver, Records, Roster};
use crate::live::{self, Snapshot, snapshot::Standing};
use crate::migrate::containers::{Containers, OneMachine};
use crate::migrate::journal::Folder;
use crate::migrate::mover::Mover;
use crate::migrate::moves::{Came, Moves};
use crate::migrate::{Ended, Means, News, Settings, Trip};
use crate::nodes::Nodes;
use crate::observe::container::Container;
use crate::observe::node::Machine;

struct Led {
    driver: Driver,
    folder: TempDir,
}

fn vae() -> JobId {
    JobId::new("vae").unwrap()
}

/// A container of the job, limited to half a CPU by its owner.
fn container(id: &str, cpus: &str) -> Container {
    let described = json!({
        "Id": id, "Name": format!("/{id}"),
        "Config": {"Labels": {"paceline.enable": "true", "paceline.job": "vae"}},
        "HostConfig": {"CpusetCpus": cpus, "NanoCpus": 500_000_000},
    });
    serde_json::from_value::<ContainerInspectResponse>(described).unwrap().into()
}

impl Led {
    /// Two nodes of one CPU each; a job is moved once.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        drop(UnixListener::bind(&socket).unwrap());
        let docker = Docker::connect_with_host(&format!("unix://{}", socket.display())).unwrap();
        let proc = folder.path().join("proc");
        let nodes = ["a=0", "b=1"].iter().map(|node| node.parse().unwrap()).collect();
        let nodes = Nodes::new(nodes).unwrap();
        let engine = Cluster::new(2.0, 1e9, nodes.specs(), policy("none"));
        let machine = Machine { cpus: 2.0, memory: 1e9, proc: proc.clone() };
        let roster = Roster::new(docker.clone(), machine, Vec::new()).on(nodes);
        let originals = Originals::open(&folder.path().join("state"), "engine", "test").unwrap();
        let journal = Folder::open(originals.folder()).unwrap();
        let actuator = Actuator::new(docker.clone(), originals, proc.clone(), 2.0);
        let audit = Some(Audit::open(folder.path()).unwrap());
        let records = Records { audit, ..Records::default() };
        let stage = live::pair(Snapshot::default()).1;
        let settings = Settings { by: Means::Cpuset, most: 1, ..Settings::default() };
        let driver = Driver::new(engine, roster, Some(actuator), records, stage);
        let driver = driver.moving_by(Containers::new(docker, proc), journal, settings);
        Self { driver, folder }
    }

    /// The same, with the job on node a.
    fn with_job() -> Self {
        let mut led = Self::new();
        led.survey(&[("old", "0")]);
        led.answers("old");
        led
    }

    /// These run, each on its CPUs.
    fn survey(&mut self, running: &[(&str, &str)]) {
        let known = self.driver.roster.candidates().map(|(id, _)| id.to_owned()).collect();
        self.driver.compare(Ok(Survey {
            present: running.iter().map(|(id, _)| (*id).to_owned()).collect(),
            described: running.iter().map(|(id, cpus)| container(id, cpus)).collect(),
            known,
            ..Survey::default()
        }));
    }

    /// The endpoint of a container answers for the first time.
    fn answers(&mut self, id: &str) {
        let machine = self.driver.roster.machine().clone();
        let seen = self.driver.roster.get(id).unwrap().appear(&machine, Standing::Managed);
        self.driver.take_in(seen);
    }

    /// The policy has the job moved to node b.
    fn wants(&mut self) {
        let (from, to) = ("a".to_owned(), "b".to_owned());
        let migration = Migration { job: vae(), from, to, reason: Cause::Converged };
        self.driver.migrate(&[migration]);
    }

    fn moves(&mut self) -> &mut Moves<OneMachine> {
        self.driver.moves.as_mut().unwrap()
    }

    /// Its successor is made, and the job frozen.
    fn is_frozen(&mut self) {
        self.wants();
        let made = News::Made { successor: "new".to_owned() };
        self.driver.moved(Came::News(vae(), made));
        self.driver.moved(Came::News(vae(), News::Frozen));
        assert_eq!(self.frame(), ["vae on b"], "it counts where it goes");
    }

    fn ends(&mut self, ended: Ended) {
        let plan = self.moves().plan(&vae()).unwrap().clone();
        let successor = Some("new".to_owned());
        let trip = Trip { plan, ended, successor, saving: None, cost: None };
        self.driver.moved(Came::Over(vae(), Box::new(trip)));
    }

    /// The jobs that the policy is shown.
    fn frame(&mut self) -> Vec<String> {
        let effects = self.driver.engine.step(self.driver.clock.now(), Event::Decide);
        let mut effects = effects.into_iter();
        let Some(Effect::Decided(decided)) = effects.next() else { panic!("no decision") };
        let on = |job: &paceline_policy::frame::Job| {
            format!("{} on {}", job.id, job.node.as_deref().unwrap_or_default())
        };
        decided.0.jobs.iter().map(on).collect()
    }

    /// Why the job was not moved the last time.
    fn refused(&self) -> String {
        let stayed = audited(&self.folder, "stayed");
        stayed.last().unwrap()["why"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_job_whose_new_container_has_ended_before_it_was_seen_is_gone() {
    let mut led = Led::with_job();
    led.is_frozen();
    led.ends(Ended::Moved);
    led.survey(&[]);
    assert!(led.frame().is_empty());
    assert_eq!(audited(&led.folder, "gone")[0]["container"], "new");
}

#[tokio::test]
async fn a_job_whose_new_container_has_ended_before_it_answers_is_gone() {
    let mut led = Led::with_job();
    led.is_frozen();
    led.ends(Ended::Moved);
    led.survey(&[("new", "1")]);
    assert_eq!(led.driver.roster.get("new").unwrap().job(), &vae(), "whatever it is called");
    assert_eq!(led.frame(), ["vae on b"]);
    led.survey(&[]);
    assert!(led.frame().is_empty());
}

#[tokio::test]
async fn a_job_that_was_to_stay_and_has_ended_before_it_answers_is_gone() {
    let mut led = Led::with_job();
    led.is_frozen();
    led.survey(&[("old", "0"), ("new", "1")]);
    led.ends(Ended::Stayed("no".to_owned()));
    assert_eq!(led.frame(), ["vae on a"]);
    led.survey(&[]);
    assert!(led.frame().is_empty());
}

#[tokio::test]
async fn a_job_that_came_under_the_name_of_one_that_was_to_move_goes_on() {
    let mut led = Led::with_job();
    led.wants();
    led.survey(&[("other", "0")]);
    led.answers("other");
    led.ends(Ended::Stayed("its container has ended".to_owned()));
    assert_eq!(led.frame(), ["vae on a"]);
}

#[tokio::test]
async fn a_job_that_is_held_or_whose_limits_are_unknown_is_not_moved() {
    let mut led = Led::with_job();
    led.driver.roster.get("old").unwrap().standing = Standing::Pinned;
    led.wants();
    assert_eq!(led.refused(), "it is held or on its way to its end");
    led.driver.roster.get("old").unwrap().standing = Standing::Managed;
    let kept = led.folder.path().join("state/engine/old.json");
    std::fs::write(&kept, "{}").unwrap();
    led.wants();
    assert!(led.refused().contains("does not hold a container's original limits"));
    std::fs::remove_file(kept).unwrap();
    led.wants();
    let plan = led.moves().plan(&vae()).unwrap();
    assert_eq!(plan.limits.nano_cpus, 500_000_000, "nothing was written: they are its owner's");
}

#[tokio::test]
async fn a_job_is_moved_so_often_and_another_one_of_its_name_as_often() {
    let mut led = Led::with_job();
    led.wants();
    let came = led.moves().came().await;
    led.driver.moved(came);
    led.wants();
    assert!(led.refused().contains("it has been moved 1 times"));
    led.survey(&[]);
    led.survey(&[("tomorrow", "0")]);
    led.answers("tomorrow");
    led.wants();
    assert!(led.moves().has(&vae()), "{}", led.refused());
}

#[tokio::test]
async fn a_job_is_where_its_owner_has_put_it() {
    let mut led = Led::with_job();
    led.survey(&[("old", "1")]);
    assert_eq!(led.frame(), ["vae on b"]);
    led.driver.roster.get("old").unwrap().standing = Standing::Pinned;
    let share = Share::nearest(0.2);
    led.driver.tell(Event::Pinned(vae(), share));
    led.survey(&[("old", "0")]);
    let pinned = |led: &Led| led.driver.engine.account(&vae()).map(|account| account.pinned);
    assert_eq!(pinned(&led), Some(Some(share)), "it is held there as it was");
    led.survey(&[("old", "0-1")]);
    assert_eq!(pinned(&led), None, "it is on none of the nodes");
    assert_eq!(led.driver.roster.get("old").unwrap().standing, Standing::Waiting);
}
