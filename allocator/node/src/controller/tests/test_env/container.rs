//! A fake container: its process, its control group, and what an engine knows of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use paceline_runtime::testing::Fake;
use serde_json::{Value, json};

/// By their ids.
pub(super) type Containers = Arc<Mutex<BTreeMap<String, Container>>>;

#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) pid: usize,
    pub(super) labels: Value,
    nano_cpus: f64,
    cpu_shares: i64,
    pub(super) group: PathBuf,
    pub(super) started_at: String,
    /// How often the engine was asked to describe it.
    pub(super) described: usize,
    pub(super) answers: EngineAnswers,
    /// How often the engine has refused to change or end it.
    pub(super) refusals: usize,
    /// Whether the engine has it.
    pub(super) exists: bool,
    /// Whether the engine starts it again when it ends.
    pub(super) restarts: bool,
}

/// How the engine answers requests about one container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::controller::tests) enum EngineAnswers {
    /// It does what it is asked to.
    Done,
    /// It describes the container, and refuses to change or end it.
    Refused,
    /// It describes and changes the container, and cannot end it.
    KeepsRunning,
    /// It ends the container after a while.
    EndsLate,
    /// It never answers.
    Never,
}

/// Creates the files of the container of a job of this name.
pub(super) fn create(proc: &Path, groups: &Path, name: &str, pid: usize) -> (String, Container) {
    let id = format!("{name}{}", "0".repeat(64 - name.len()));
    let process = proc.join(pid.to_string());
    fs::create_dir_all(process.join("ns")).unwrap();
    fs::create_dir_all(process.join("root")).unwrap();
    symlink("net:[2]", process.join("ns/net")).unwrap();
    fs::write(process.join("cgroup"), format!("3:cpu,cpuacct:/{id}\n")).unwrap();
    let group = groups.join(&id);
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
    if !name.starts_with("stranger") {
        labels["paceline.enable"] = json!("true");
    }
    let started_at = "once".to_owned();
    let mut container = Container {
        pid,
        labels,
        nano_cpus: 0.0,
        cpu_shares: 0,
        group,
        started_at,
        described: 0,
        answers: EngineAnswers::Done,
        refusals: 0,
        exists: true,
        restarts: true,
    };
    container.owned_like(name);
    (id, container)
}

impl Container {
    /// Sets the limits and labels of its owner, by its name.
    fn owned_like(&mut self, name: &str) {
        if name.starts_with("capped") || name.starts_with("raised") {
            self.update(&json!({"NanoCpus": 500_000_000}));
        }
        if name.contains("scoped") {
            fs::write(self.group.join("cpu.cfs_quota_us"), "60000").unwrap();
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
        if name.starts_with("mute") {
            self.answers = EngineAnswers::Never;
        }
        if name.starts_with("heavy") {
            self.update(&json!({"CpuShares": 2048}));
        }
    }

    pub(super) fn update(&mut self, body: &Value) {
        if let Some(nano) = body["NanoCpus"].as_f64().filter(|nano| *nano > 0.0) {
            self.nano_cpus = nano;
            let quota = (nano / 10_000.0).floor().to_string();
            fs::write(self.group.join("cpu.cfs_quota_us"), quota).unwrap();
        }
        if let Some(weight) = body["CpuShares"].as_i64().filter(|weight| *weight > 0) {
            self.cpu_shares = weight;
            fs::write(self.group.join("cpu.shares"), weight.to_string()).unwrap();
        }
        self.restarts &= body["RestartPolicy"]["Name"] != "no";
    }

    pub(super) fn nano_cpus(&self) -> i64 {
        self.nano_cpus.to_string().parse().unwrap()
    }

    pub(super) fn describe(&self, id: &str) -> Value {
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

/// Makes a container the one of a pod, with the resources that its name stands for.
pub(super) fn add_pod(fake: &Fake, id: &str, container: &Container) {
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
