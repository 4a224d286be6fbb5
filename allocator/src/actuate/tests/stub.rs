//! An engine that is none: it keeps what it is told, or says so, or does it and says otherwise.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bollard::{API_DEFAULT_VERSION, Docker};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::actuate::Actuator;
use crate::actuate::originals::Originals;
use crate::observe::cgroup::Cgroup;

/// How updates go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Mood {
    #[default]
    Honest,
    /// It fails after the kernel was told.
    FailsLate,
    /// It says yes and does nothing.
    Idle,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) mood: Mood,
    /// The containers' `HostConfig`, by id.
    pub(super) hosts: BTreeMap<String, Value>,
    /// How often it was asked to describe a container.
    pub(super) looks: usize,
    /// Updates so far: id and body.
    pub(super) updates: Vec<(String, Value)>,
}

#[derive(Debug)]
pub(super) struct Stub {
    folder: tempfile::TempDir,
    pub(super) state: Arc<Mutex<State>>,
    _serving: JoinSet<()>,
}

impl Stub {
    /// An engine with these containers, on a machine of 2 CPUs whose kernel is a folder.
    pub(super) fn start(containers: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cgroups = folder.path().join("cgroup");
        let mut state = State::default();
        for (pid, id) in (100..).zip(containers) {
            let group = cgroups.join(id);
            fs::create_dir_all(&group).unwrap();
            for (file, value) in [
                ("cpu.cfs_quota_us", "-1"),
                ("cpu.cfs_period_us", "100000"),
                ("cpu.shares", "1024"),
            ] {
                fs::write(group.join(file), value).unwrap();
            }
            let process = folder.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            fs::write(process.join("cgroup"), format!("3:cpu,cpuacct:/{id}\n4:blkio:/{id}\n"))
                .unwrap();
            state.hosts.insert((*id).to_owned(), json!({"Pid": pid}));
        }
        fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        let mount = |of| format!("1 1 0:1 / {} rw - cgroup cgroup rw,{of}\n", cgroups.display());
        let mounts = mount("cpu,cpuacct") + &mount("blkio");
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
        let socket = self.folder.path().join("engine.sock");
        let docker =
            Docker::connect_with_unix(socket.to_str().unwrap(), 5, API_DEFAULT_VERSION).unwrap();
        let originals = Originals::open(&self.folder.path().join("state"), "stub", "a test");
        Actuator::new(docker, originals.unwrap(), self.folder.path().join("proc"), 2.0)
    }

    pub(super) fn cgroup(&self, id: &str) -> Cgroup {
        let pid = self.state.lock().unwrap().hosts[id]["Pid"].as_u64().unwrap();
        Cgroup::of(&self.folder.path().join("proc"), u32::try_from(pid).unwrap()).unwrap()
    }

    /// A file of a container's control group.
    pub(super) fn file(&self, id: &str, name: &str) -> PathBuf {
        self.folder.path().join("cgroup").join(id).join(name)
    }

    /// Somebody else's `docker update`.
    pub(super) fn update(&self, id: &str, body: &Value) {
        update(&mut self.state.lock().unwrap(), &self.folder.path().join("cgroup"), id, body);
    }

    /// What an engine keeps of a container.
    pub(super) fn kept(&self, id: &str, field: &str) -> i64 {
        self.state.lock().unwrap().hosts[id][field].as_i64().unwrap_or(0)
    }
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
        let read = stream.read(&mut piece).await.unwrap();
        request.extend_from_slice(&piece[..read]);
    };
    let path = head.split(' ').nth(1).unwrap();
    let parts: Vec<&str> =
        path.split(['/', '?']).skip_while(|part| *part != "containers").skip(1).collect();
    let (status, said) = respond(&mut state.lock().unwrap(), cgroups, &parts, &body);
    let said = said.to_string();
    let length = said.len();
    let answer = format!(
        "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{said}"
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
}

fn respond(state: &mut State, cgroups: &Path, parts: &[&str], body: &str) -> (u16, Value) {
    let Some(host) = state.hosts.get(parts[0]).cloned() else {
        return (404, json!({"message": "no such container"}));
    };
    if parts[1] == "json" {
        state.looks += 1;
        let running = json!({"Running": true, "Pid": host["Pid"], "StartedAt": "now"});
        return (
            200,
            json!({"Id": parts[0], "Name": parts[0], "State": running, "HostConfig": host}),
        );
    }
    let body: Value = serde_json::from_str(body).unwrap();
    state.updates.push((parts[0].to_owned(), body.clone()));
    match state.mood {
        Mood::Honest => update(state, cgroups, parts[0], &body),
        Mood::FailsLate => write(cgroups, parts[0], &body),
        Mood::Idle => {}
    }
    if state.mood == Mood::FailsLate {
        return (500, json!({"message": "something came in between"}));
    }
    (200, json!({"Warnings": []}))
}

fn update(state: &mut State, cgroups: &Path, id: &str, body: &Value) {
    let host = state.hosts.get_mut(id).unwrap().as_object_mut().unwrap();
    host.extend(body.as_object().unwrap().clone());
    write(cgroups, id, body);
}

fn write(cgroups: &Path, id: &str, body: &Value) {
    let group = cgroups.join(id);
    if let Some(nano) = body["NanoCpus"].as_i64() {
        fs::write(group.join("cpu.cfs_quota_us"), (nano / 10_000).to_string()).unwrap();
    }
    if let Some(shares) = body["CpuShares"].as_i64() {
        fs::write(group.join("cpu.shares"), shares.to_string()).unwrap();
    }
}
