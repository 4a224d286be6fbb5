//! Jobs that are moved, on a controller that the test drives step by step. No engine answers it.

use std::sync::Arc;

use paceline_api::audit::Audit;
use paceline_api::live::{self, Snapshot, snapshot::Standing};
use paceline_api::nodes::Nodes;
use paceline_policy::decision::{Cause, Migration};
use paceline_policy::{Cluster, Effect, Event, JobId, Share};
use paceline_runtime::docker::Docker;
use paceline_runtime::testing::described;
use paceline_runtime::{Container, Runtime};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::UnixListener;

use super::{audited, policy};
use crate::controller::survey::Survey;
use crate::controller::write_queue::WriteQueue;
use crate::controller::{Controller, Inventory, Records};
use crate::limits::originals::Originals;
use crate::limits::{Actuator, ActuatorBackend, OnDrift};
use crate::migration::containers::{Containers, OneMachine};
use crate::migration::journal::Folder;
use crate::migration::mover::MigrationHost;
use crate::migration::moves::{MigrationEvent, MigrationQueue};
use crate::migration::{Ended, MigrationMethod, MigrationResult, News, Settings};
use crate::observe::node::Machine;

pub(super) struct ManualController {
    pub(super) controller: Controller,
    folder: TempDir,
}

fn vae() -> JobId {
    JobId::new("vae").unwrap()
}

/// A container of the job, limited to half a CPU by its owner.
fn container(id: &str, cpus: &str) -> Container {
    described(json!({
        "Id": id, "Name": format!("/{id}"),
        "Config": {"Labels": {"paceline.enable": "true", "paceline.job": "vae"}},
        "HostConfig": {"CpusetCpus": cpus, "NanoCpus": 500_000_000},
    }))
}

impl ManualController {
    /// Two nodes of one CPU each; a job is moved at most once.
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .unwrap();
        let socket = folder.path().join("engine.sock");
        drop(UnixListener::bind(&socket).unwrap());
        let engine = Docker::at(&format!("unix://{}", socket.display())).unwrap();
        let runtime = Runtime::from(engine);
        let proc = folder.path().join("proc");
        let nodes = ["a=0", "b=1"].iter().map(|node| node.parse().unwrap()).collect();
        let nodes = Nodes::new(nodes).unwrap();
        let engine = Cluster::new(2.0, 1e9, nodes.specs(), policy("none"));
        let machine = Machine { cpus: 2.0, memory: 1e9, proc: proc.clone() };
        let inventory = Inventory::new(runtime.clone(), machine, Vec::new()).on(nodes);
        let originals = Originals::open(&folder.path().join("state"), "engine", "test").unwrap();
        let journal = Folder::open(originals.folder()).unwrap();
        let actuator = Actuator::new(runtime.clone(), originals, proc.clone(), 2.0)
            .with_backend(ActuatorBackend::Engine, OnDrift::default());
        let audit = Some(Audit::open(folder.path()).unwrap());
        let records = Records { audit, ..Records::default() };
        let channels = live::pair(Snapshot::default()).1;
        let settings = Settings { by: MigrationMethod::Cpuset, most: 1, ..Settings::default() };
        let controller = Controller::new(engine, inventory, Some(actuator), records, channels);
        let controller = controller.moving_by(Containers::new(runtime, proc), journal, settings);
        Self { controller, folder }
    }

    /// Takes the originals from another state folder.
    fn reads_originals(&mut self, state: &std::path::Path) {
        let originals = Originals::open(state, "engine", "test").unwrap();
        let runtime = self.controller.inventory.runtime().clone();
        let actuator = Actuator::new(runtime, originals, self.folder.path().join("proc"), 2.0);
        self.controller.writes = Some(WriteQueue::new(Arc::new(actuator), self.controller.clock));
    }

    /// The same, with the job on node a.
    pub(super) fn with_job() -> Self {
        let mut manual = Self::new();
        manual.survey(&[("old", "0")]);
        manual.answers("old");
        manual
    }

    /// Takes in a survey: these containers run, each on its CPUs.
    fn survey(&mut self, running: &[(&str, &str)]) {
        let known = self.controller.inventory.candidates().map(|(id, _)| id.to_owned()).collect();
        self.controller.compare(Ok(Survey {
            present: running.iter().map(|(id, _)| (*id).to_owned()).collect(),
            described: running.iter().map(|(id, cpus)| container(id, cpus)).collect(),
            known,
            ..Survey::default()
        }));
    }

    /// The endpoint of a container answers for the first time.
    fn answers(&mut self, id: &str) {
        let machine = self.controller.inventory.machine().clone();
        let seen = self.controller.inventory.get(id).unwrap().appear(&machine, Standing::Managed);
        self.controller.ingest(seen);
    }

    /// The policy decides to move the job to node b.
    fn wants(&mut self) {
        let (from, to) = ("a".to_owned(), "b".to_owned());
        let migration = Migration { job: vae(), from, to, reason: Cause::Converged };
        self.controller.migrate(&[migration]);
    }

    fn moves(&mut self) -> &mut MigrationQueue<OneMachine> {
        self.controller.moves.as_mut().unwrap()
    }

    /// Its successor is created, and the job paused.
    fn is_frozen(&mut self) {
        self.wants();
        let made = News::Made { successor: "new".to_owned() };
        self.controller.moved(MigrationEvent::News(vae(), made));
        self.controller.moved(MigrationEvent::News(vae(), News::Frozen));
        assert_eq!(self.frame(), ["vae on b"], "it counts at the target");
    }

    fn ends(&mut self, ended: Ended) {
        let plan = self.moves().plan(&vae()).unwrap().clone();
        let successor = Some("new".to_owned());
        let result = MigrationResult { plan, ended, successor, saving: None, cost: None };
        self.controller.moved(MigrationEvent::Over(vae(), Box::new(result)));
    }

    /// The jobs in the policy's frame.
    fn frame(&mut self) -> Vec<String> {
        let effects = self.controller.engine.step(self.controller.clock.now(), Event::Decide);
        let mut effects = effects.into_iter();
        let Some(Effect::Decided(decided)) = effects.next() else { panic!("no decision") };
        let on = |job: &paceline_policy::frame::Job| {
            format!("{} on {}", job.id, job.node.as_deref().unwrap_or_default())
        };
        decided.0.jobs.iter().map(on).collect()
    }

    /// Why the job was not moved last time.
    fn refused(&self) -> String {
        let stayed = audited(&self.folder, "stayed");
        stayed.last().unwrap()["why"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn job_whose_successor_ends_before_a_survey_is_gone() {
    let mut manual = ManualController::with_job();
    manual.is_frozen();
    manual.ends(Ended::Moved);
    manual.survey(&[]);
    assert!(manual.frame().is_empty());
    assert_eq!(audited(&manual.folder, "gone")[0]["container"], "new");
}

#[tokio::test]
async fn job_whose_successor_ends_before_it_answers_is_gone() {
    let mut manual = ManualController::with_job();
    manual.is_frozen();
    manual.ends(Ended::Moved);
    manual.survey(&[("new", "1")]);
    assert_eq!(manual.controller.inventory.get("new").unwrap().job(), &vae(), "it keeps its name");
    assert_eq!(manual.frame(), ["vae on b"]);
    manual.survey(&[]);
    assert!(manual.frame().is_empty());
}

#[tokio::test]
async fn job_that_stays_and_ends_before_it_answers_is_gone() {
    let mut manual = ManualController::with_job();
    manual.is_frozen();
    manual.survey(&[("old", "0"), ("new", "1")]);
    manual.ends(Ended::Stayed("no".to_owned()));
    assert_eq!(manual.frame(), ["vae on a"]);
    manual.survey(&[]);
    assert!(manual.frame().is_empty());
}

#[tokio::test]
async fn new_job_with_the_name_of_a_moving_one_continues() {
    let mut manual = ManualController::with_job();
    manual.wants();
    manual.survey(&[("other", "0")]);
    manual.answers("other");
    manual.ends(Ended::Stayed("its container has ended".to_owned()));
    assert_eq!(manual.frame(), ["vae on a"]);
}

#[tokio::test]
async fn pinned_job_or_one_with_unknown_limits_is_not_moved() {
    let mut manual = ManualController::with_job();
    manual.controller.inventory.get("old").unwrap().standing = Standing::Pinned;
    manual.wants();
    assert_eq!(manual.refused(), "it is pinned or is being ended");
    manual.controller.inventory.get("old").unwrap().standing = Standing::Managed;
    // A killed run has left a file that cannot be read.
    let state = manual.folder.path().join("left");
    let kept = state.join("engine/old.json");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::write(&kept, "{}").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&state, private).unwrap();
    manual.reads_originals(&state);
    manual.wants();
    assert!(manual.refused().contains("does not hold a container's original limits"));
    std::fs::remove_file(kept).unwrap();
    manual.wants();
    let plan = manual.moves().plan(&vae()).unwrap();
    assert_eq!(plan.limits.nano_cpus, 500_000_000, "nothing was written: it is its owner's limit");
}

#[tokio::test]
async fn each_job_has_its_own_maximum_of_moves() {
    let mut manual = ManualController::with_job();
    manual.wants();
    let event = manual.moves().next_event().await;
    manual.controller.moved(event);
    manual.wants();
    assert!(manual.refused().contains("it has been moved 1 times"));
    manual.survey(&[]);
    manual.survey(&[("tomorrow", "0")]);
    manual.answers("tomorrow");
    manual.wants();
    assert!(manual.moves().has(&vae()), "{}", manual.refused());
}

#[tokio::test]
async fn job_follows_its_owners_change_of_cpus() {
    let mut manual = ManualController::with_job();
    manual.survey(&[("old", "1")]);
    assert_eq!(manual.frame(), ["vae on b"]);
    manual.controller.inventory.get("old").unwrap().standing = Standing::Pinned;
    let share = Share::nearest(0.2);
    manual.controller.apply_event(Event::Pinned(vae(), share));
    manual.survey(&[("old", "0")]);
    let pinned = |manual: &ManualController| {
        manual.controller.engine.status(&vae()).map(|status| status.pinned)
    };
    assert_eq!(pinned(&manual), Some(Some(share)), "it is still pinned there");
    manual.survey(&[("old", "0-1")]);
    assert_eq!(pinned(&manual), None, "it is on none of the nodes");
    assert_eq!(manual.controller.inventory.get("old").unwrap().standing, Standing::Waiting);
}

#[tokio::test]
async fn job_that_leaves_all_nodes_is_restored_until_that_succeeds() {
    let mut manual = ManualController::with_job();
    let state = manual.folder.path().join("limited");
    std::fs::create_dir_all(state.join("engine")).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&state, private).unwrap();
    let host = json!({"nano_cpus": 500_000_000, "cpu_quota": 0, "cpu_period": 0, "cpu_shares": 0});
    let record =
        json!({"format": 2, "id": "old", "name": "old", "host_config": host, "cgroup": null});
    std::fs::write(state.join("engine/old.json"), record.to_string()).unwrap();
    manual.reads_originals(&state);
    let writes = |manual: &ManualController| {
        manual.controller.writes.as_ref().unwrap().has_to_do_with("old")
    };
    manual.controller.reconcile_records();
    assert!(!writes(&manual), "it is managed");
    manual.survey(&[("old", "0-1")]);
    let done = manual.controller.writes.as_mut().unwrap().done().await;
    assert!(done.outcome.is_err(), "no engine answers");
    manual.controller.write_result(done);
    assert!(!writes(&manual));
    manual.controller.reconcile_records();
    assert!(writes(&manual), "it is tried again");
}
