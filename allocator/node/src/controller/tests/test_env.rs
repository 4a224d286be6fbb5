//! A fake environment of a controller: a container engine on a Unix socket, a `/proc`, control groups,
//! and jobs with endpoints. Limits are files, which the fake engine writes like a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline_api::audit::Audit;
use paceline_api::json_lines::JsonLines;
use paceline_api::live::{self, Answer, Command, DaemonHandle, Snapshot, Who};
use paceline_api::signals::Ending;
use paceline_policy::limiter::{Enforcement, LimiterSettings};
use paceline_policy::{Engine, Policy, Shadow};
use paceline_runtime::Runtime;
use paceline_runtime::docker::Docker;
use paceline_runtime::testing::Fake;
use paceline_wire::Progress;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::controller::timetable::Timetable;
use crate::controller::timing::Timing;
use crate::controller::{Controller, Inventory, NewSettings, Records};
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

type Containers = Arc<Mutex<BTreeMap<String, Container>>>;

#[derive(Clone, Debug)]
struct Container {
    pid: usize,
    labels: Value,
    nano_cpus: f64,
    cpu_shares: i64,
    group: PathBuf,
    started_at: String,
    /// How often the engine was asked to describe it.
    described: usize,
    answers: EngineAnswers,
    /// How often the engine has refused to change or end it.
    refusals: usize,
}

/// How the engine answers requests about one container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EngineAnswers {
    /// It does what it is asked to.
    Done,
    /// It describes the container, and refuses to change or end it.
    Refused,
    /// It never answers.
    Never,
}

impl TestEnv {
    /// Two CPUs with these jobs under `policy`; one whose name begins with `stranger` has no label, one
    /// with `capped` has half a CPU by its owner, one with `raised` has a label for more besides, and one
    /// with `heavy` has twice the usual weight. One with `called-` has the rest as its label's name,
    /// `long-name` has a label that is too long, and one with `ends` may be ended at its objective.
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
        Self::make((woken, docker), Some(backend), policy, shadows, jobs)
    }

    /// The same, and the controller also surveys and samples by itself, many times a second.
    pub(super) fn sampling(policy: Box<dyn Policy>, jobs: &[&str]) -> Self {
        Self::make((often(), docker), Some(ActuatorBackend::Engine), policy, Vec::new(), jobs)
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
        Self::make((often(), docker), None, policy, Vec::new(), jobs)
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
            let id = format!("{name}{}", "0".repeat(64 - name.len()));
            let mut container =
                create_container(&proc, &groups, &id, 100 + n, !name.starts_with("stranger"));
            container.owned_like(name);
            let socket = proc.join(container.pid.to_string()).join("root/job.sock");
            let (says, said) = watch::channel(progress(name));
            let listener = UnixListener::bind(socket).unwrap();
            let late = if name.starts_with("late") { LATE } else { Duration::ZERO };
            tasks.spawn(endpoint(listener, said, late));
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
        let mut containers = self.containers.lock().unwrap();
        let found = containers.iter_mut().find(|(id, _)| id.starts_with(job));
        found.unwrap().1.update(&json!({"NanoCpus": cpus * 1e9}));
    }

    /// Restarts a job's container, which keeps the limits that the engine has.
    pub(super) fn restart(&self, job: &str, started_at: &str) {
        let mut containers = self.containers.lock().unwrap();
        let found = containers.iter_mut().find(|(id, _)| id.starts_with(job));
        found.unwrap().1.started_at = started_at.to_owned();
    }

    /// How often the engine was asked to describe a job's container.
    pub(super) fn described(&self, job: &str) -> usize {
        let containers = self.containers.lock().unwrap();
        containers.iter().find(|(id, _)| id.starts_with(job)).unwrap().1.described
    }

    /// From now on the engine answers so about a job's container.
    pub(super) fn answers(&self, job: &str, answers: EngineAnswers) {
        let mut containers = self.containers.lock().unwrap();
        let found = containers.iter_mut().find(|(id, _)| id.starts_with(job));
        found.unwrap().1.answers = answers;
    }

    /// How often the engine has refused to change or end a job's container.
    pub(super) fn refusals(&self, job: &str) -> usize {
        let containers = self.containers.lock().unwrap();
        containers.iter().find(|(id, _)| id.starts_with(job)).unwrap().1.refusals
    }

    /// The limit that the engine keeps for a job's container, in billionths of a CPU.
    pub(super) fn kept(&self, job: &str) -> i64 {
        let containers = self.containers.lock().unwrap();
        containers.iter().find(|(id, _)| id.starts_with(job)).unwrap().1.nano_cpus()
    }

    /// A file that the run writes.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn group(&self, job: &str) -> PathBuf {
        let containers = self.containers.lock().unwrap();
        containers.iter().find(|(id, _)| id.starts_with(job)).unwrap().1.group.clone()
    }

    /// Changes what a job reports.
    pub(super) fn report(&self, job: &str, change: impl FnOnce(&mut Progress)) {
        self.jobs[job].send_modify(change);
    }

    /// Removes the container of a job.
    pub(super) fn remove(&self, job: &str) {
        self.containers.lock().unwrap().retain(|id, _| !id.starts_with(job));
    }

    /// Ends the controller, which restores every limit.
    pub(super) async fn end(mut self) -> tempfile::TempDir {
        self.ended().await.unwrap();
        self.tasks.abort_all();
        self.folder
    }

    /// Ends the controller, and returns how it ended.
    pub(super) async fn ended(&mut self) -> anyhow::Result<Ending> {
        self.ending.send_replace(Some(Ending::Terminated));
        let ended = tokio::time::timeout(HANG_TIMEOUT, self.controller.join_next()).await;
        ended.expect("it ends in time").unwrap().unwrap()
    }
}

fn often() -> Timing {
    Timing { sample: SAMPLE_INTERVAL, reconcile: 4 * SAMPLE_INTERVAL, answers: NEVER }
}

/// Starts an engine with Docker's API.
fn docker(place: &Path, containers: &Containers, tasks: &mut JoinSet<()>) -> Runtime {
    let socket = place.join("engine.sock");
    tasks.spawn(engine(UnixListener::bind(&socket).unwrap(), Arc::clone(containers)));
    Docker::at(&format!("unix://{}", socket.display())).unwrap().into()
}

/// Makes a container the one of a pod, with the resources that its name stands for.
fn add_pod(fake: &Fake, id: &str, container: &Container) {
    let short = id.trim_end_matches('0');
    let endpoint = [("paceline.dev/endpoint", "unix:/job.sock")];
    fake.pod(short, &[("paceline.dev/enable", "true")], &endpoint);
    fake.container(short, short, "train");
    let (quota, weight, class) = match short.get(..1) {
        Some("b") => (160_000, 1228, "burstable/"),
        Some("9") => (100_000, 1024, ""),
        _ => (-1, 2, "besteffort/"),
    };
    let file = container.group.join("cpu.cfs_quota_us");
    fs::write(&file, quota.to_string()).unwrap();
    fake.declare(short, quota, weight);
    fake.change(short, |one| {
        one.group = format!("/kubepods/{class}pod{short}/{id}");
        one.pid = u32::try_from(container.pid).unwrap();
        one.quota_file = Some(file);
    });
}

/// Creates a container's files.
fn create_container(proc: &Path, groups: &Path, id: &str, pid: usize, labelled: bool) -> Container {
    let process = proc.join(pid.to_string());
    fs::create_dir_all(process.join("ns")).unwrap();
    fs::create_dir_all(process.join("root")).unwrap();
    symlink("net:[2]", process.join("ns/net")).unwrap();
    fs::write(process.join("cgroup"), format!("3:cpu,cpuacct:/{id}\n")).unwrap();
    let group = groups.join(id);
    fs::create_dir_all(&group).unwrap();
    for (file, text) in [
        ("cpu.cfs_quota_us", "-1"),
        ("cpu.cfs_period_us", "100000"),
        ("cpu.shares", "1024"),
        ("cpuacct.usage", "1000000"),
        ("cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
    ] {
        fs::write(group.join(file), text).unwrap();
    }
    let mut labels = json!({"paceline.endpoint": "unix:/job.sock"});
    if labelled {
        labels["paceline.enable"] = json!("true");
    }
    let started_at = "once".to_owned();
    Container {
        pid,
        labels,
        nano_cpus: 0.0,
        cpu_shares: 0,
        group,
        started_at,
        described: 0,
        answers: EngineAnswers::Done,
        refusals: 0,
    }
}

/// A job's first report.
pub(super) fn progress(job: &str) -> Progress {
    let json = json!({
        "schema": 1, "job": job, "pid": 1, "instance": "one", "source": "reporter",
        "state": "running", "started_at": 0.0, "now": 0.0, "step": 1, "epoch": null,
        "total_steps": null,
        "eval": {"name": "loss", "direction": "minimize", "value": 4.0, "window": 5,
                 "updated_at": 1.0, "count": 1, "sum": 4.0, "first": 4.0, "best": 4.0,
                 "max_abs": 4.0},
        "batch_latency": {"count": 0, "sum": 0.0, "last": null, "p50": null, "p95": null,
                          "p99": null},
        "targets": {"acceptable": 1.0, "objective": null, "batch_latency": null},
        "reached": {"acceptable_at": null, "objective_at": null},
        "checkpoint": {"requested": 0, "saved": 0, "step": null, "path": null, "at": null,
                       "error": null},
        "dropped": 0, "rejected": 0});
    serde_json::from_value(json).unwrap()
}

/// Serves a job's progress and events, after the delay `late`.
async fn endpoint(listener: UnixListener, said: watch::Receiver<Progress>, late: Duration) {
    tokio::time::sleep(late).await;
    let mut connections = JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut said = said.clone();
        connections.spawn(async move {
            let Some((head, _)) = request(&mut stream).await else { return };
            let text = |progress: &Progress| serde_json::to_string(progress).unwrap();
            if !head.contains("/v1/events") {
                let body = text(&said.borrow_and_update());
                drop(stream.write_all(answer(200, &body).as_bytes()).await);
                return;
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            drop(stream.write_all(head.as_bytes()).await);
            loop {
                let event = format!("data: {}\n\n", text(&said.borrow_and_update()));
                if stream.write_all(event.as_bytes()).await.is_err()
                    || said.changed().await.is_err()
                {
                    return;
                }
            }
        });
    }
}

/// Serves the part of the engine's API that the controller and the actuator use.
async fn engine(listener: UnixListener, containers: Containers) {
    let mut connections = JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let containers = Arc::clone(&containers);
        connections.spawn(async move { while turn(&mut stream, &containers).await.is_some() {} });
    }
}

async fn turn(stream: &mut UnixStream, containers: &Containers) -> Option<()> {
    let (head, body) = request(stream).await?;
    let path = head.split(' ').nth(1)?;
    if path.contains("/events") && path.contains("until=") {
        return stream.write_all(answer(200, "").as_bytes()).await.ok();
    }
    if path.contains("/events") {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.ok()?;
        return std::future::pending().await;
    }
    let Some((status, body)) = respond(path, &body, containers) else {
        return std::future::pending().await;
    };
    stream.write_all(answer(status, &body.to_string()).as_bytes()).await.ok()
}

/// The engine's answer; `None` if it never comes.
fn respond(path: &str, body: &[u8], containers: &Containers) -> Option<(u16, Value)> {
    let mut containers = containers.lock().unwrap();
    let path = path.split('?').next().unwrap_or_default();
    let mut words = path.split('/').skip_while(|word| *word != "containers").skip(1);
    Some(match (words.next(), words.next()) {
        (Some("json"), None) => {
            let labelled = |one: &&Container| one.labels["paceline.enable"] == "true";
            let listed = containers.iter().filter(|(_, one)| labelled(one));
            (200, listed.map(|(id, _)| json!({"Id": id})).collect())
        }
        (Some(wanted), Some(what)) => {
            let found = containers.iter_mut().find(|(id, _)| id.starts_with(wanted));
            let Some((id, one)) = found else {
                return Some((404, json!({"message": "no such"})));
            };
            match (one.answers, what) {
                (EngineAnswers::Never, _) => return None,
                (EngineAnswers::Refused, "update" | "stop") => {
                    one.refusals += 1;
                    (500, json!({"message": "refused"}))
                }
                (EngineAnswers::Done, "update") => {
                    one.update(&serde_json::from_slice(body).unwrap());
                    (200, json!({"Warnings": null}))
                }
                (EngineAnswers::Done, "stop") => {
                    let id = id.clone();
                    containers.remove(&id);
                    (200, Value::Null)
                }
                (EngineAnswers::Done | EngineAnswers::Refused, _) => {
                    one.described += 1;
                    (200, one.describe(id))
                }
            }
        }
        _ => (404, json!({"message": path})),
    })
}

impl Container {
    /// Sets the limits and labels of its owner, by its name.
    fn owned_like(&mut self, name: &str) {
        if name.starts_with("capped") || name.starts_with("raised") {
            self.update(&json!({"NanoCpus": 500_000_000}));
        }
        if name.starts_with("raised") {
            self.labels["paceline.max-cpus"] = json!("1.5");
        }
        if name.starts_with("long-name") {
            self.labels["paceline.job"] = json!("x".repeat(300_000));
        }
        if let Some(other) = name.strip_prefix("called-") {
            self.labels["paceline.job"] = json!(other);
        }
        if name.starts_with("ends") {
            self.labels["paceline.terminate"] = json!("true");
        }
        if name.starts_with("heavy") {
            self.update(&json!({"CpuShares": 2048}));
        }
    }

    fn update(&mut self, body: &Value) {
        if let Some(nano) = body["NanoCpus"].as_f64().filter(|nano| *nano > 0.0) {
            self.nano_cpus = nano;
            let quota = (nano / 10_000.0).floor().to_string();
            fs::write(self.group.join("cpu.cfs_quota_us"), quota).unwrap();
        }
        if let Some(weight) = body["CpuShares"].as_i64().filter(|weight| *weight > 0) {
            self.cpu_shares = weight;
            fs::write(self.group.join("cpu.shares"), weight.to_string()).unwrap();
        }
    }

    fn nano_cpus(&self) -> i64 {
        self.nano_cpus.to_string().parse().unwrap()
    }

    fn describe(&self, id: &str) -> Value {
        let name = id.trim_end_matches('0');
        let nano = self.nano_cpus();
        json!({
            "Id": id, "Name": format!("/{name}"),
            "State": {"Running": true, "Pid": self.pid, "StartedAt": self.started_at},
            "Config": {"Labels": self.labels},
            "HostConfig": {"NanoCpus": nano, "CpuQuota": 0, "CpuPeriod": 0, "CpuShares": self.cpu_shares},
        })
    }
}

fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Reads a request: its head and its body.
async fn request(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            let body = bytes.split_off(end + 4);
            if body.len() >= length {
                return Some((head, body));
            }
            bytes.extend(body);
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// The names of the jobs that a snapshot shows.
pub(super) fn names(snapshot: &Snapshot) -> BTreeSet<&str> {
    snapshot.jobs.iter().map(|job| job.job.as_str()).collect()
}
