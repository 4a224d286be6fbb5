//! A fake environment of a controller: a container engine on a Unix socket, a `/proc`, control groups,
//! and jobs with endpoints. Limits are files, which the fake engine writes like a real one.

mod container;
mod endpoint;
mod engine;
mod http;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use paceline_api::audit::Audit;
use paceline_api::json_lines::JsonLines;
use paceline_api::live::{self, Answer, Command, DaemonHandle, Snapshot, Who};
use paceline_api::signals::Ending;
use paceline_policy::limiter::{Enforcement, LimiterSettings};
use paceline_policy::{Engine, Policy};
use paceline_runtime::Runtime;
use paceline_runtime::testing::Fake;
use paceline_wire::Progress;
use serde_json::json;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub(super) use container::EngineAnswers;
use container::{Container, Containers, add_pod};

use crate::controller::timetable::Timetable;
use crate::controller::timing::Timing;
use crate::controller::{Controller, Inventory, NewSettings, Records, Shadow};
use crate::limits::originals::Originals;
use crate::limits::{Actuator, ActuatorBackend, OnDrift};
use crate::observe::node::Machine;

/// How long a test waits for anything; only a test that hangs takes this long.
pub(super) const HANG_TIMEOUT: Duration = Duration::from_mins(1);
/// Longer than any test: the controller acts only when it is woken.
const NEVER: Duration = Duration::from_hours(1);
/// How often a controller with short intervals samples its jobs.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(25);
/// By how much a job answers later whose name begins with `late`.
const LATE: Duration = Duration::from_millis(150);

pub(super) struct TestEnv {
    pub(super) live: DaemonHandle,
    folder: tempfile::TempDir,
    containers: Containers,
    jobs: BTreeMap<String, watch::Sender<Progress>>,
    ending: watch::Sender<Option<Ending>>,
    renewals: mpsc::Sender<NewSettings>,
    controller: JoinSet<anyhow::Result<Ending>>,
    tasks: JoinSet<()>,
}

impl TestEnv {
    /// Two CPUs with these jobs under `policy`; one whose name begins with `stranger` has no label, one
    /// with `capped` has half a CPU by its owner, one with `raised` has a label for more besides, and one
    /// with `heavy` has twice the usual weight. One with `scoped` in its name has 0.6 CPUs by its owner, which
    /// the engine does not know. One with `called-` has the rest as its label's name,
    /// `long-name` has a label that is too long, one with `ends` may be ended at its objective, and
    /// the engine never describes one with `mute`.
    /// The controller surveys and samples once, and then only when it is woken.
    pub(super) fn new(policy: Box<dyn Policy>, shadows: Vec<Shadow>, jobs: &[&str]) -> Self {
        Self::with_backend(ActuatorBackend::Engine, policy, shadows, jobs)
    }

    /// The same, with limits written by this backend.
    pub(super) fn with_backend(
        backend: ActuatorBackend,
        policy: Box<dyn Policy>,
        shadows: Vec<Shadow>,
        jobs: &[&str],
    ) -> Self {
        let woken = Timing { sample: NEVER, reconcile: NEVER, answers: NEVER };
        Self::make((woken, engine::docker), Some(backend), policy, shadows, jobs)
    }

    /// The same, and the controller also surveys and samples by itself, many times a second.
    pub(super) fn sampling(policy: Box<dyn Policy>, jobs: &[&str]) -> Self {
        Self::make(
            (often(), engine::docker),
            Some(ActuatorBackend::Engine),
            policy,
            Vec::new(),
            jobs,
        )
    }

    /// The same with a container runtime of Kubernetes, where each job is the container of a pod with its
    /// name. The names have hexadecimal digits only, as ids do. One whose name begins with `b` has requested
    /// 1.2 CPUs and may use up to 1.6, one with `c` may use what is free, and one with `9` is guaranteed.
    pub(super) fn pods(policy: Box<dyn Policy>, jobs: &[&str]) -> (Self, Arc<Fake>) {
        let fake = Arc::new(Fake::start());
        let serves = {
            let fake = Arc::clone(&fake);
            move |place: &Path, containers: &Containers, _: &mut JoinSet<()>| {
                for (id, container) in &*containers.lock().unwrap() {
                    add_pod(&fake, id, container);
                }
                Runtime::from(fake.cri_with(&place.join("proc")))
            }
        };
        let backend = Some(ActuatorBackend::Auto);
        (Self::make((often(), serves), backend, policy, Vec::new(), jobs), fake)
    }

    /// The same in a dry run, which records its frames.
    pub(super) fn dry_run(policy: Box<dyn Policy>, jobs: &[&str]) -> Self {
        Self::make((often(), engine::docker), None, policy, Vec::new(), jobs)
    }

    /// `serves` starts the container engine.
    fn make(
        (timing, serves): (Timing, impl FnOnce(&Path, &Containers, &mut JoinSet<()>) -> Runtime),
        backend: Option<ActuatorBackend>,
        policy: Box<dyn Policy>,
        shadows: Vec<Shadow>,
        jobs: &[&str],
    ) -> Self {
        let folder = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir()
            .unwrap();
        let proc = folder.path().join("proc");
        fs::create_dir_all(proc.join("self/ns")).unwrap();
        symlink("net:[1]", proc.join("self/ns/net")).unwrap();
        fs::write(proc.join("stat"), "cpu  1 0 0 9 0 0 0 0 0 0\n").unwrap();
        let groups = folder.path().join("cgroup");
        let mount = format!("31 24 0:27 / {} rw - cgroup cgroup rw,cpu,cpuacct", groups.display());
        fs::write(proc.join("self/mountinfo"), mount).unwrap();
        let containers = Containers::default();
        let mut tasks = JoinSet::new();
        let mut endpoints = BTreeMap::new();
        for (n, name) in jobs.iter().enumerate() {
            let (id, container) = container::create(&proc, &groups, name, 100 + n);
            let socket = proc.join(container.pid.to_string()).join("root/job.sock");
            let (says, said) = watch::channel(endpoint::progress(name));
            let listener = UnixListener::bind(socket).unwrap();
            let late = if name.starts_with("late") { LATE } else { Duration::ZERO };
            tasks.spawn(endpoint::serve(listener, said, late));
            containers.lock().unwrap().insert(id, container);
            endpoints.insert((*name).to_owned(), says);
        }
        let runtime = serves(folder.path(), &containers, &mut tasks);
        let machine = Machine { cpus: 2.0, memory: 1e9, proc: proc.clone() };
        let originals = Originals::open(&folder.path().join("state"), "engine", "test").unwrap();
        let actuator = Actuator::new(runtime.clone(), originals, proc, 2.0);
        let actuator = backend.map(|backend| actuator.with_backend(backend, OnDrift::default()));
        let settings =
            LimiterSettings { enforcement: Enforcement::Quota, ..LimiterSettings::default() };
        let engine = Engine::new("here".to_owned(), 2.0, Some(1e9), policy);
        let engine = engine.with_limiter(settings).unwrap();
        let inventory = Inventory::new(runtime, machine, Vec::new());
        let (live, stage) = live::pair(Snapshot::default());
        let audit = Some(Audit::open(folder.path()).unwrap());
        let frames = Some(JsonLines::create(&folder.path().join("frames.jsonl")).unwrap());
        let records = Records { frames, audit, ..Records::default() };
        let mut controller = Controller::new(engine, inventory, actuator, records, stage);
        controller.timetable = Timetable::new(timing);
        let (ending, ended) = watch::channel(None);
        let (renewals, renewed) = mpsc::channel(1);
        let running = controller.shadowed_by(shadows).with_reloads(renewed).run(ended);
        let controller = std::iter::once(running).collect();
        Self { live, folder, containers, jobs: endpoints, ending, renewals, controller, tasks }
    }

    /// Sends new settings to the controller.
    pub(super) async fn renew(&self, renewal: NewSettings) {
        self.renewals.send(renewal).await.unwrap();
    }

    /// Gives an order and returns its answer.
    pub(super) async fn order(&self, command: Command) -> Answer {
        let answer = self.live.order(command, Who { uid: 0, pid: None });
        tokio::time::timeout(HANG_TIMEOUT, answer).await.expect("it is answered")
    }

    /// Waits until a snapshot fulfils `holds`.
    pub(super) async fn wait_until(
        &self,
        what: &str,
        holds: impl Fn(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        let mut snapshots = self.live.follow();
        let shown = snapshots.wait_for(|snapshot| holds(snapshot));
        let shown = tokio::time::timeout(HANG_TIMEOUT, shown).await;
        let shown = shown.map(|shown| Arc::clone(&shown.unwrap()));
        shown.unwrap_or_else(|_| panic!("it never shows {what}: {:#?}", self.live.now()))
    }

    /// Waits until the controller has taken this many samples.
    pub(super) async fn wait_for_samples(&self, times: u32) {
        let until = self.live.now().t + (SAMPLE_INTERVAL * times).as_secs_f64();
        self.wait_until("more samples", |snapshot| snapshot.t >= until).await;
    }

    /// Waits until a job has this quota, in microseconds of 100 ms; −1 is unlimited.
    pub(super) async fn has_quota(&self, job: &str, quota: i64) {
        self.has_one_of(job, &[quota]).await;
    }

    /// Waits until a job may use both CPUs: without a quota, or with one of all CPUs.
    pub(super) async fn is_unlimited(&self, job: &str) {
        self.has_one_of(job, &[-1, 200_000]).await;
    }

    async fn has_one_of(&self, job: &str, quotas: &[i64]) {
        let began = tokio::time::Instant::now();
        while !quotas.contains(&self.quota(job)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let hangs = began.elapsed() > HANG_TIMEOUT;
            assert!(!hangs, "{job} has {} and none of {quotas:?}", self.quota(job));
        }
    }

    pub(super) fn quota(&self, job: &str) -> i64 {
        self.number(job, "cpu.cfs_quota_us")
    }

    /// A job's weight; 1024 is the default.
    pub(super) fn weight(&self, job: &str) -> i64 {
        self.number(job, "cpu.shares")
    }

    fn number(&self, job: &str, file: &str) -> i64 {
        // A file is empty for a moment while it is written.
        loop {
            let text = fs::read_to_string(self.group(job).join(file)).unwrap();
            if !text.is_empty() {
                return text.trim().parse().unwrap();
            }
        }
    }

    /// Sets a quota outside of Paceline and of the engine.
    pub(super) fn set_quota_outside(&self, job: &str, quota: i64) {
        fs::write(self.group(job).join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
    }

    /// Sets a limit outside of Paceline, as by `docker update --cpus`.
    pub(super) fn update_outside(&self, job: &str, cpus: f64) {
        self.container(job, |one| one.update(&json!({"NanoCpus": cpus * 1e9})));
    }

    /// Restarts a job's container, which keeps the limits that the engine has.
    pub(super) fn restart(&self, job: &str, started_at: &str) {
        self.container(job, |one| started_at.clone_into(&mut one.started_at));
    }

    /// How often the engine was asked to describe a job's container.
    pub(super) fn described(&self, job: &str) -> usize {
        self.container(job, |one| one.described)
    }

    /// From now on the engine answers so about a job's container.
    pub(super) fn answers(&self, job: &str, answers: EngineAnswers) {
        self.container(job, |one| one.answers = answers);
    }

    /// How often the engine has refused to change or end a job's container.
    pub(super) fn refusals(&self, job: &str) -> usize {
        self.container(job, |one| one.refusals)
    }

    /// The limit that the engine keeps for a job's container, in billionths of a CPU.
    pub(super) fn kept(&self, job: &str) -> i64 {
        self.container(job, |one| one.nano_cpus())
    }

    /// A file that the run writes.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn group(&self, job: &str) -> PathBuf {
        self.container(job, |one| one.group.clone())
    }

    fn container<T>(&self, job: &str, use_it: impl FnOnce(&mut Container) -> T) -> T {
        let mut containers = self.containers.lock().unwrap();
        let found = containers.iter_mut().find(|(id, _)| id.starts_with(job));
        use_it(found.unwrap().1)
    }

    /// Changes what a job reports.
    pub(super) fn report(&self, job: &str, change: impl FnOnce(&mut Progress)) {
        self.jobs[job].send_modify(change);
    }

    /// Removes the container of a job.
    pub(super) fn remove(&self, job: &str) {
        self.container(job, |one| one.exists = false);
    }

    /// Creates the container of a job again, with the same id.
    pub(super) fn create_again(&self, job: &str) {
        self.container(job, |one| one.exists = true);
    }

    /// Whether the engine has the container of a job.
    pub(super) fn exists(&self, job: &str) -> bool {
        self.container(job, |one| one.exists)
    }

    /// Whether the engine starts the container of a job again when it ends.
    pub(super) fn restarts(&self, job: &str) -> bool {
        self.container(job, |one| one.restarts)
    }

    /// Ends the controller, which restores every limit.
    pub(super) async fn end(mut self) -> tempfile::TempDir {
        self.ended().await.unwrap();
        self.tasks.abort_all();
        self.folder
    }

    /// Ends the controller, and returns how it ended.
    pub(super) async fn ended(&mut self) -> anyhow::Result<Ending> {
        self.ended_within(HANG_TIMEOUT).await
    }

    /// The same. It panics if the controller takes longer than `limit`.
    pub(super) async fn ended_within(&mut self, limit: Duration) -> anyhow::Result<Ending> {
        self.ending.send_replace(Some(Ending::Terminated));
        let ended = tokio::time::timeout(limit, self.controller.join_next()).await;
        ended.expect("it ends in time").unwrap().unwrap()
    }
}

fn often() -> Timing {
    Timing { sample: SAMPLE_INTERVAL, reconcile: 4 * SAMPLE_INTERVAL, answers: NEVER }
}

/// The names of the jobs that a snapshot shows.
pub(super) fn names(snapshot: &Snapshot) -> BTreeSet<&str> {
    snapshot.jobs.iter().map(|job| job.job.as_str()).collect()
}
