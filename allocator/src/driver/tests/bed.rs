//! A stand-in for all that a driver meets: an engine on a Unix socket, a `/proc`, control groups,
//! and jobs with endpoints. Limits are files, and come into force as the engine would bring them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bollard::Docker;
use paceline_policy::limiter::{Enforcement, LimiterSettings};
use paceline_policy::{Engine, Policy, Shadow};
use paceline_wire::Progress;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::actuate::originals::Originals;
use crate::actuate::{Actuator, Means, OnDrift};
use crate::audit::Audit;
use crate::driver::timing::Timing;
use crate::driver::{Driver, Records, Renewal, Roster};
use crate::json_lines::JsonLines;
use crate::live::{self, Answer, Command, Live, Snapshot, Who};
use crate::observe::node::Machine;
use crate::signals::Ending;

/// How long anything may take that a test waits for: only what hangs takes so long.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than any test: nothing comes that nothing wakes the driver for.
const NEVER: Duration = Duration::from_hours(1);
/// How often a driver that goes by itself looks at jobs.
const LOOK: Duration = Duration::from_millis(25);
/// So much later than others a job answers whose name begins so.
const LATE: Duration = Duration::from_millis(150);

pub(super) struct Bed {
    pub(super) live: Live,
    folder: tempfile::TempDir,
    containers: Containers,
    jobs: BTreeMap<String, watch::Sender<Progress>>,
    ending: watch::Sender<Option<Ending>>,
    renewals: mpsc::Sender<Renewal>,
    driver: JoinSet<anyhow::Result<Ending>>,
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
    /// How often it was described.
    described: usize,
}

impl Bed {
    /// Two CPUs with these jobs under `policy`; a name that begins with `stranger` has no label. What
    /// happens happens at once: the driver looks and compares once, and then only when it is woken.
    pub(super) fn new(policy: Box<dyn Policy>, shadows: Vec<Shadow>, jobs: &[&str]) -> Self {
        Self::by(Means::Engine, policy, shadows, jobs)
    }

    /// The same, limited by these means.
    pub(super) fn by(
        means: Means,
        policy: Box<dyn Policy>,
        shadows: Vec<Shadow>,
        jobs: &[&str],
    ) -> Self {
        let woken = Timing { look: NEVER, reconcile: NEVER, answers: NEVER };
        Self::make(woken, Some(means), policy, shadows, jobs)
    }

    /// The same, and the driver also looks and compares by itself, many times a second.
    pub(super) fn looking(policy: Box<dyn Policy>, jobs: &[&str]) -> Self {
        Self::make(often(), Some(Means::Engine), policy, Vec::new(), jobs)
    }

    /// The same in a dry run, which records its frames.
    pub(super) fn watching(policy: Box<dyn Policy>, jobs: &[&str]) -> Self {
        Self::make(often(), None, policy, Vec::new(), jobs)
    }

    fn make(
        timing: Timing,
        means: Option<Means>,
        policy: Box<dyn Policy>,
        shadows: Vec<Shadow>,
        jobs: &[&str],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
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
            let container = put(&proc, &groups, &id, 100 + n, !name.starts_with("stranger"));
            let socket = proc.join(container.pid.to_string()).join("root/job.sock");
            let (says, said) = watch::channel(progress(name));
            let listener = UnixListener::bind(socket).unwrap();
            let late = if name.starts_with("late") { LATE } else { Duration::ZERO };
            tasks.spawn(endpoint(listener, said, late));
            containers.lock().unwrap().insert(id, container);
            endpoints.insert((*name).to_owned(), says);
        }
        let socket = folder.path().join("engine.sock");
        tasks.spawn(engine(UnixListener::bind(&socket).unwrap(), Arc::clone(&containers)));
        let docker = Docker::connect_with_host(&format!("unix://{}", socket.display())).unwrap();
        let machine = Machine { cpus: 2.0, memory: 1e9, proc: proc.clone() };
        let originals = Originals::open(&folder.path().join("state"), "engine", "test").unwrap();
        let actuator = Actuator::new(docker.clone(), originals, proc, 2.0);
        let actuator = means.map(|means| actuator.by(means, OnDrift::default()));
        let settings =
            LimiterSettings { enforcement: Enforcement::Quota, ..LimiterSettings::default() };
        let engine = Engine::new("here".to_owned(), 2.0, Some(1e9), policy);
        let engine = engine.limited_by(settings).unwrap();
        let roster = Roster::new(docker, machine, Vec::new());
        let (live, stage) = live::pair(Snapshot::default());
        let audit = Some(Audit::open(folder.path()).unwrap());
        let frames = Some(JsonLines::create(&folder.path().join("frames.jsonl")).unwrap());
        let records = Records { frames, audit, ..Records::default() };
        let mut driver = Driver::new(engine, roster, actuator, records, stage);
        driver.timing = timing;
        let (ending, ended) = watch::channel(None);
        let (renewals, renewed) = mpsc::channel(1);
        let running = driver.shadowed_by(shadows).renewed_by(renewed).run(ended);
        let driver = std::iter::once(running).collect();
        Self { live, folder, containers, jobs: endpoints, ending, renewals, driver, tasks }
    }

    /// Hands new settings in.
    pub(super) async fn renew(&self, renewal: Renewal) {
        self.renewals.send(renewal).await.unwrap();
    }

    /// Gives an order; its answer.
    pub(super) async fn order(&self, command: Command) -> Answer {
        let answer = self.live.order(command, Who { uid: 0, pid: None });
        tokio::time::timeout(PATIENCE, answer).await.expect("it is answered")
    }

    /// Waits until the snapshot shows what is looked for.
    pub(super) async fn shows(
        &self,
        what: &str,
        holds: impl Fn(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        let mut snapshots = self.live.follow();
        let shown = snapshots.wait_for(|snapshot| holds(snapshot));
        let shown = tokio::time::timeout(PATIENCE, shown).await;
        let shown = shown.map(|shown| Arc::clone(&shown.unwrap()));
        shown.unwrap_or_else(|_| panic!("it never shows {what}: {:#?}", self.live.now()))
    }

    /// Waits until the driver has looked so often.
    pub(super) async fn looks(&self, times: u32) {
        let until = self.live.now().t + (LOOK * times).as_secs_f64();
        self.shows("more looks", |snapshot| snapshot.t >= until).await;
    }

    /// Waits until the kernel has this quota for a job, in microseconds of 100 ms; −1 is none.
    pub(super) async fn has_quota(&self, job: &str, quota: i64) {
        let began = tokio::time::Instant::now();
        while self.quota(job) != quota {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let hangs = began.elapsed() > PATIENCE;
            assert!(!hangs, "{job} has {} and not {quota}", self.quota(job));
        }
    }

    pub(super) fn quota(&self, job: &str) -> i64 {
        self.number(job, "cpu.cfs_quota_us")
    }

    /// The kernel's weight of a job; 1024 is that of a job which nobody has weighed.
    pub(super) fn weight(&self, job: &str) -> i64 {
        self.number(job, "cpu.shares")
    }

    fn number(&self, job: &str, file: &str) -> i64 {
        // A file that is being written is empty for a moment.
        loop {
            let text = fs::read_to_string(self.group(job).join(file)).unwrap();
            if !text.is_empty() {
                return text.trim().parse().unwrap();
            }
        }
    }

    /// Somebody else sets a quota, past everyone.
    pub(super) fn meddle(&self, job: &str, quota: i64) {
        fs::write(self.group(job).join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
    }

    /// How often the engine has described a job's container.
    pub(super) fn described(&self, job: &str) -> usize {
        let containers = self.containers.lock().unwrap();
        containers.iter().find(|(id, _)| id.starts_with(job)).unwrap().1.described
    }

    /// A file that the run writes.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn group(&self, job: &str) -> PathBuf {
        let containers = self.containers.lock().unwrap();
        containers.iter().find(|(id, _)| id.starts_with(job)).unwrap().1.group.clone()
    }

    /// A job says something else from now on.
    pub(super) fn says(&self, job: &str, change: impl FnOnce(&mut Progress)) {
        self.jobs[job].send_modify(change);
    }

    /// The container of a job is gone from one moment to the next.
    pub(super) fn remove(&self, job: &str) {
        self.containers.lock().unwrap().retain(|id, _| !id.starts_with(job));
    }

    /// Ends the driver, which puts every limit back.
    pub(super) async fn end(mut self) -> tempfile::TempDir {
        self.ending.send_replace(Some(Ending::Terminated));
        let ended = tokio::time::timeout(PATIENCE, self.driver.join_next()).await;
        ended.unwrap().unwrap().unwrap().unwrap();
        self.tasks.abort_all();
        self.folder
    }
}

fn often() -> Timing {
    Timing { look: LOOK, reconcile: 4 * LOOK, answers: NEVER }
}

/// Makes a container's files.
fn put(proc: &Path, groups: &Path, id: &str, pid: usize, labelled: bool) -> Container {
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
    Container { pid, labels, nano_cpus: 0.0, cpu_shares: 0, group, described: 0 }
}

/// What a job says at first.
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

/// Serves a job's progress and events, after a while.
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

/// Speaks as much of the engine's API as the driver and the actuator ask for.
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
    if path.contains("/events") {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.ok()?;
        return std::future::pending().await;
    }
    let (status, body) = respond(path, &body, containers);
    stream.write_all(answer(status, &body.to_string()).as_bytes()).await.ok()
}

fn respond(path: &str, body: &[u8], containers: &Containers) -> (u16, Value) {
    let mut containers = containers.lock().unwrap();
    let path = path.split('?').next().unwrap_or_default();
    let mut words = path.split('/').skip_while(|word| *word != "containers").skip(1);
    match (words.next(), words.next()) {
        (Some("json"), None) => {
            let labelled = |one: &&Container| one.labels["paceline.enable"] == "true";
            let listed = containers.iter().filter(|(_, one)| labelled(one));
            (200, listed.map(|(id, _)| json!({"Id": id})).collect())
        }
        (Some(wanted), Some(what)) => {
            let found = containers.iter_mut().find(|(id, _)| id.starts_with(wanted));
            let Some((id, one)) = found else { return (404, json!({"message": "no such"})) };
            if what == "update" {
                one.update(&serde_json::from_slice(body).unwrap());
                return (200, json!({"Warnings": null}));
            }
            one.described += 1;
            (200, one.describe(id))
        }
        _ => (404, json!({"message": path})),
    }
}

impl Container {
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

    fn describe(&self, id: &str) -> Value {
        let name = id.trim_end_matches('0');
        let nano: i64 = self.nano_cpus.to_string().parse().unwrap();
        json!({
            "Id": id, "Name": format!("/{name}"),
            "State": {"Running": true, "Pid": self.pid, "StartedAt": "once"},
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

/// The head of a request, and its body.
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
