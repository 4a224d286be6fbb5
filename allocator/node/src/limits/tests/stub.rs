//! A fake container engine with Docker's rules, on a machine whose control groups are folders. It applies
//! updates, reports false failures or false success, loses its data, and changes its id.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline_cgroup::{Cgroup, Quota, WeightScale};
use paceline_runtime::docker::Docker;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::limits::originals::{Originals, OriginalsError, Scope};
use crate::limits::{Actuator, ActuatorBackend, OnDrift};

/// How the engine answers updates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Behavior {
    #[default]
    Honest,
    /// It reports a failure after it has changed the kernel.
    FailsLate,
    /// It reports a success and changes nothing.
    Idle,
    /// It refuses each update.
    Refuses,
}

/// Why the engine is of no use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Trouble {
    /// It reports a failure of its own.
    Fails,
    /// It never answers.
    Silent,
    /// It never answers what it is asked of this container.
    SilentAbout(&'static str),
}

/// The machine's control groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Groups {
    /// Version 1, which the engine writes itself.
    First,
    /// Version 2 by systemd, which applies all that it keeps of a group with each request. The engine
    /// converts weights by this one of its rules.
    Second(usize),
}

impl Groups {
    /// The name of a container's group.
    fn name(self, id: &str) -> String {
        match self {
            Self::First => id.to_owned(),
            Self::Second(_) => format!("docker-{id}.scope"),
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    groups: Groups,
    /// What systemd keeps of the containers' groups, by id. It may be more recent than what the engine keeps.
    units: BTreeMap<String, Value>,
    pub(super) behavior: Behavior,
    /// The engine's id.
    pub(super) id: String,
    /// The machine's CPUs.
    pub(super) cpus: u32,
    /// It has come up without its data.
    pub(super) lost: bool,
    /// Its answers to all requests, if they are not of use.
    pub(super) trouble: Option<Trouble>,
    /// The containers' `HostConfig`, by id.
    pub(super) hosts: BTreeMap<String, Value>,
    /// The containers whose removal it remembers.
    removed: BTreeSet<String>,
    /// How often it was asked to describe a container.
    pub(super) inspections: usize,
    /// Updates so far: id and body.
    pub(super) updates: Vec<(String, Value)>,
    /// How many control groups have ended.
    ended: usize,
}

#[derive(Debug)]
pub(super) struct Stub {
    folder: tempfile::TempDir,
    pub(super) state: Arc<Mutex<State>>,
    _serving: JoinSet<()>,
}

impl Stub {
    /// An engine with these containers, on a machine of 2 CPUs.
    pub(super) fn start(containers: &[&str]) -> Self {
        Self::start_on(Groups::First, containers)
    }

    /// The same on a machine with such control groups.
    pub(super) fn start_on(groups: Groups, containers: &[&str]) -> Self {
        // Nothing here has to survive the machine, so memory is enough, and quicker.
        let memory = tempfile::tempdir_in("/dev/shm");
        let folder = memory.or_else(|_| tempfile::tempdir()).unwrap();
        let cgroups = folder.path().join("cgroup");
        let mut state = State {
            groups,
            units: BTreeMap::new(),
            behavior: Behavior::default(),
            id: "stub".to_owned(),
            cpus: 2,
            lost: false,
            trouble: None,
            hosts: BTreeMap::new(),
            removed: BTreeSet::new(),
            inspections: 0,
            updates: Vec::new(),
            ended: 0,
        };
        for (pid, id) in (100..).zip(containers) {
            let process = folder.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            let text = match groups {
                Groups::First => format!("3:cpu,cpuacct:/{id}\n4:blkio:/{id}\n"),
                Groups::Second(_) => format!("0::/{}\n", groups.name(id)),
            };
            fs::write(process.join("cgroup"), text).unwrap();
            state.hosts.insert((*id).to_owned(), json!({"Pid": pid, "StartedAt": 0}));
            state.begin_group(&cgroups, id);
        }
        let boot = folder.path().join("proc/sys/kernel/random");
        fs::create_dir_all(&boot).unwrap();
        fs::write(boot.join("boot_id"), "1").unwrap();
        fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        let mount = |of| format!("1 1 0:1 / {} rw - {of}\n", cgroups.display());
        let mounts = match groups {
            Groups::First => {
                mount("cgroup cgroup rw,cpu,cpuacct") + &mount("cgroup cgroup rw,blkio")
            }
            Groups::Second(_) => mount("cgroup2 cgroup2 rw"),
        };
        fs::write(folder.path().join("proc/self/mountinfo"), mounts).unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let (state, mut serving) = (Arc::new(Mutex::new(state)), JoinSet::new());
        let known = Arc::clone(&state);
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (known, cgroups) = (Arc::clone(&known), cgroups.clone());
                open.spawn(async move { answer(stream, &known, &cgroups).await });
            }
        });
        Self { folder, state, _serving: serving }
    }

    pub(super) fn actuator(&self) -> Actuator {
        self.allocator("state", Scope::All).unwrap()
    }

    /// The same, writing by the engine.
    pub(super) fn engine_actuator(&self) -> Actuator {
        self.actuator().with_backend(ActuatorBackend::Engine, OnDrift::default())
    }

    /// An allocator with the state folder `name`.
    pub(super) fn allocator(&self, name: &str, scope: Scope) -> Result<Actuator, OriginalsError> {
        let socket = self.folder.path().join("engine.sock");
        let docker = Docker::at(&format!("unix://{}", socket.display())).unwrap();
        let (engine, cpus) = {
            let state = self.state.lock().unwrap();
            (state.id.clone(), state.cpus)
        };
        let originals = Originals::open(&self.state_folder(name), &engine, name)?;
        let locks = self.folder.path().join("locks");
        let originals = originals.lock_engine(&locks, "/data", (scope, Duration::ZERO))?;
        let proc = self.folder.path().join("proc");
        Ok(Actuator::new(docker.into(), originals, proc, f64::from(cpus)))
    }

    /// The machine's `/proc`.
    pub(super) fn proc(&self) -> PathBuf {
        self.folder.path().join("proc")
    }

    pub(super) fn state_folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The files of the machine's locks.
    pub(super) fn locks(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path().join("locks")).into_iter().flatten();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(super) fn cgroup(&self, id: &str) -> Cgroup {
        let pid = self.state.lock().unwrap().hosts[id]["Pid"].as_u64().unwrap();
        Cgroup::for_process(&self.folder.path().join("proc"), u32::try_from(pid).unwrap()).unwrap()
    }

    /// A file of a container's control group.
    pub(super) fn file(&self, id: &str, name: &str) -> PathBuf {
        self.groups().join(self.kind().name(id)).join(name)
    }

    /// Whether a container has a control group.
    pub(super) fn has_group(&self, id: &str) -> bool {
        self.groups().join(self.kind().name(id)).exists()
    }

    fn kind(&self) -> Groups {
        self.state.lock().unwrap().groups
    }

    /// A `docker update` outside of Paceline; returns whether the engine accepts it.
    pub(super) fn update(&self, id: &str, body: &Value) -> bool {
        self.state.lock().unwrap().update(&self.groups(), id, body).is_ok()
    }

    /// A field that the engine keeps for a container.
    pub(super) fn kept(&self, id: &str, field: &str) -> i64 {
        self.state.lock().unwrap().field(id, field)
    }

    /// A container ends, and stays known to the engine.
    pub(super) fn end(&self, id: &str) {
        self.state.lock().unwrap().end_group(&self.groups(), id);
    }

    /// Systemd applies what it keeps of a group, as at `systemctl daemon-reload`.
    pub(super) fn apply_again(&self, id: &str) {
        self.state.lock().unwrap().write_all(&self.groups(), id);
    }

    /// Starts a container again; returns whether the engine accepts what it keeps for it.
    pub(super) fn restart(&self, id: &str) -> bool {
        self.state.lock().unwrap().restart(&self.groups(), id)
    }

    /// Moves a container's process into a group below its own.
    pub(super) fn move_process(&self, id: &str, name: &str) {
        let pid = self.state.lock().unwrap().hosts[id]["Pid"].as_u64().unwrap();
        let group = self.groups().join(id).join(name);
        fs::create_dir(&group).unwrap();
        for (file, value) in
            [("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000"), ("cpu.shares", "1024")]
        {
            fs::write(group.join(file), value).unwrap();
        }
        let path = self.folder.path().join(format!("proc/{pid}/cgroup"));
        fs::write(path, format!("3:cpu,cpuacct:/{id}/{name}\n4:blkio:/{id}/{name}\n")).unwrap();
    }

    /// From now on a container's process is in the group of another one.
    pub(super) fn show_as(&self, id: &str, other: &str) {
        let pid = self.state.lock().unwrap().hosts[id]["Pid"].as_u64().unwrap();
        let path = self.folder.path().join(format!("proc/{pid}/cgroup"));
        fs::write(path, format!("3:cpu,cpuacct:/{other}\n4:blkio:/{other}\n")).unwrap();
    }

    /// Removes a container.
    pub(super) fn remove(&self, id: &str) {
        let mut state = self.state.lock().unwrap();
        state.end_group(&self.groups(), id);
        state.hosts.remove(id);
        state.removed.insert(id.to_owned());
    }

    /// Restarts the engine, which forgets its events and may have another id.
    pub(super) fn restart_engine(&self, id: &str) {
        let mut state = self.state.lock().unwrap();
        state.removed.clear();
        id.clone_into(&mut state.id);
    }

    /// Boots the machine with this number of CPUs; all containers are started again.
    pub(super) fn boot(&self, cpus: u32) {
        let mut state = self.state.lock().unwrap();
        (state.cpus, state.ended) = (cpus, state.ended + 1);
        let boot = self.folder.path().join("proc/sys/kernel/random/boot_id");
        fs::write(boot, format!("boot {}", state.ended)).unwrap();
        state.removed.clear();
        let ids: Vec<String> = state.hosts.keys().cloned().collect();
        for id in ids {
            state.restart(&self.groups(), &id);
        }
    }

    fn groups(&self) -> PathBuf {
        self.folder.path().join("cgroup")
    }
}

impl State {
    fn field(&self, id: &str, field: &str) -> i64 {
        self.hosts[id][field].as_i64().unwrap_or(0)
    }

    /// Creates a container's control group with what the engine keeps for it.
    fn begin_group(&mut self, cgroups: &Path, id: &str) {
        fs::create_dir_all(cgroups.join(self.groups.name(id))).unwrap();
        let mut unit = json!({});
        give(&mut unit, &self.hosts[id]);
        self.units.insert(id.to_owned(), unit);
        self.write_all(cgroups, id);
    }

    /// Writes all that is kept of a control group into it.
    fn write_all(&self, cgroups: &Path, id: &str) {
        let (group, host) = (cgroups.join(self.groups.name(id)), &self.units[id]);
        let field = |name: &str| host[name].as_i64().unwrap_or(0);
        let period = if field("CpuPeriod") > 0 { field("CpuPeriod") } else { 100_000 };
        let quota = Some(field("CpuQuota")).filter(|quota| *quota > 0);
        let shares = u64::try_from(field("CpuShares")).unwrap();
        let files = match self.groups {
            Groups::First => vec![
                ("cpu.cfs_quota_us", quota.unwrap_or(-1).to_string()),
                ("cpu.cfs_period_us", period.to_string()),
                ("cpu.shares", if shares > 0 { shares } else { 1024 }.to_string()),
            ],
            Groups::Second(rule) => {
                let quota = quota.map_or_else(|| "max".to_owned(), |quota| quota.to_string());
                let weight =
                    if shares > 0 { WeightScale::Weight.by_engines(shares)[rule] } else { 100 };
                vec![("cpu.max", format!("{quota} {period}")), ("cpu.weight", weight.to_string())]
            }
        };
        for (file, value) in files {
            fs::write(group.join(file), value).unwrap();
        }
    }

    fn end_group(&mut self, cgroups: &Path, id: &str) {
        // The folder stays elsewhere, so that its number is not given to another one.
        self.ended += 1;
        let elsewhere = cgroups.with_file_name(format!("ended-{}", self.ended));
        drop(fs::rename(cgroups.join(self.groups.name(id)), elsewhere));
    }

    fn restart(&mut self, cgroups: &Path, id: &str) -> bool {
        self.end_group(cgroups, id);
        let fits = self.field(id, "NanoCpus") <= i64::from(self.cpus) * 1_000_000_000;
        self.hosts.get_mut(id).unwrap()["StartedAt"] = json!(self.ended);
        if fits {
            self.begin_group(cgroups, id);
        }
        fits
    }

    /// Applies an update by Docker's rules.
    fn update(&mut self, cgroups: &Path, id: &str, body: &Value) -> Result<(), &'static str> {
        self.check(id, body)?;
        merge(self.hosts.get_mut(id).unwrap(), body);
        self.write(cgroups, id, body);
        Ok(())
    }

    fn check(&self, id: &str, body: &Value) -> Result<(), &'static str> {
        let by_quota = self.field(id, "CpuQuota") != 0 || self.field(id, "CpuPeriod") != 0;
        if let Some(nano) = body["NanoCpus"].as_i64() {
            if by_quota {
                return Err("Conflicting options: Nano CPUs cannot be updated as CPU Quota is set");
            }
            if !(10_000_000..=i64::from(self.cpus) * 1_000_000_000).contains(&nano) {
                return Err("Range of CPUs is from 0.01 to the machine's");
            }
        }
        let by_quota = body["CpuQuota"].is_i64() || body["CpuPeriod"].is_i64();
        if by_quota && self.field(id, "NanoCpus") != 0 {
            return Err("Conflicting options: CPU Quota cannot be updated as NanoCPUs is set");
        }
        Ok(())
    }

    /// Writes an update into the control group.
    fn write(&mut self, cgroups: &Path, id: &str, body: &Value) {
        let group = cgroups.join(self.groups.name(id));
        if self.groups != Groups::First {
            if group.exists() {
                give(self.units.get_mut(id).unwrap(), body);
                self.write_all(cgroups, id);
            }
            return;
        }
        let fields = [
            ("CpuQuota", "cpu.cfs_quota_us"),
            ("CpuPeriod", "cpu.cfs_period_us"),
            ("CpuShares", "cpu.shares"),
        ];
        // With another period, the engine applies the quota that it keeps.
        if let Some(nano) = body["NanoCpus"].as_i64() {
            fs::write(group.join("cpu.cfs_quota_us"), (nano / 10_000).to_string()).unwrap();
        }
        for (field, file) in fields {
            let kept = body["CpuPeriod"].is_i64().then(|| self.field(id, "CpuQuota"));
            let kept = kept.filter(|quota| field == "CpuQuota" && *quota != 0);
            if let Some(value) = body[field].as_i64().or(kept) {
                fs::write(group.join(file), value.to_string()).unwrap();
            }
        }
    }
}

/// Takes the fields of an update.
fn merge(kept: &mut Value, body: &Value) {
    kept.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
}

/// What the engine asks of systemd for such fields: a number of CPUs is a quota.
fn give(unit: &mut Value, body: &Value) {
    merge(unit, body);
    if let Some(nano) = body["NanoCpus"].as_i64().filter(|nano| *nano > 0) {
        (unit["CpuQuota"], unit["CpuPeriod"]) = (json!(nano / 10_000), json!(100_000));
    }
}

/// A quota of this many microseconds in 100 ms.
pub(super) fn quota(quota: Option<u64>) -> Quota {
    Quota { quota, period: 100_000 }
}

async fn answer(mut stream: UnixStream, state: &Mutex<State>, cgroups: &Path) {
    let mut request = Vec::new();
    let (head, body) = loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length = length.split("content-length: ").nth(1).and_then(|l| l.lines().next());
            if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
                break (head.to_owned(), body.to_owned());
            }
        }
        let mut piece = [0; 4096];
        let Ok(read @ 1..) = stream.read(&mut piece).await else { return };
        request.extend_from_slice(&piece[..read]);
    };
    let path = head.split(' ').nth(1).unwrap();
    let trouble = state.lock().unwrap().trouble;
    match trouble {
        Some(Trouble::Fails) => {
            let said = json!({"message": "the engine is out of order"}).to_string();
            drop(stream.write_all(with_length(500, &said).as_bytes()).await);
            return;
        }
        Some(Trouble::Silent) => return std::future::pending().await,
        Some(Trouble::SilentAbout(id)) if path.contains(&format!("/containers/{id}/")) => {
            return std::future::pending().await;
        }
        Some(Trouble::SilentAbout(_)) | None => {}
    }
    let said = if path.ends_with("/info") {
        json!({"ID": state.lock().unwrap().id}).to_string()
    } else if path.contains("/events?") {
        let state = state.lock().unwrap();
        let is_it = |id: &&String| path.contains(&format!("%22{id}%22"));
        let event = |id| json!({"Type": "container", "Action": "destroy", "Actor": {"ID": id}});
        state.removed.iter().find(is_it).map_or_else(String::new, |id| event(id).to_string())
    } else {
        let parts: Vec<&str> =
            path.split(['/', '?']).skip_while(|part| *part != "containers").skip(1).collect();
        let (status, said) = state.lock().unwrap().respond(cgroups, &parts, &body);
        let answer = with_length(status, &said.to_string());
        drop(stream.write_all(answer.as_bytes()).await);
        return;
    };
    drop(stream.write_all(with_length(200, &said).as_bytes()).await);
}

fn with_length(status: u16, said: &str) -> String {
    let length = said.len();
    format!(
        "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{said}"
    )
}

impl State {
    fn respond(&mut self, cgroups: &Path, parts: &[&str], body: &str) -> (u16, Value) {
        let host = self.hosts.get(parts[0]).filter(|_| !self.lost).cloned();
        let Some(host) = host else {
            return (404, json!({"message": "no such container"}));
        };
        if parts[1] == "json" {
            self.inspections += 1;
            let runs = cgroups.join(self.groups.name(parts[0])).exists();
            let started = host["StartedAt"].to_string();
            let running = json!({"Running": runs, "Pid": host["Pid"], "StartedAt": started});
            return (
                200,
                json!({"Id": parts[0], "Name": parts[0], "State": running, "HostConfig": host}),
            );
        }
        let body: Value = serde_json::from_str(body).unwrap();
        self.updates.push((parts[0].to_owned(), body.clone()));
        match self.behavior {
            Behavior::Honest => {
                if let Err(message) = self.update(cgroups, parts[0], &body) {
                    return (400, json!({ "message": message }));
                }
            }
            Behavior::FailsLate => {
                if self.check(parts[0], &body).is_ok() {
                    self.write(cgroups, parts[0], &body);
                }
                return (500, json!({"message": "something came in between"}));
            }
            Behavior::Idle => {}
            Behavior::Refuses => return (400, json!({"message": "not allowed"})),
        }
        (200, json!({"Warnings": []}))
    }
}
