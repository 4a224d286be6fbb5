//! A fake Docker engine: the part of its API that the allocator uses, with answers as long as a
//! real engine's.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_cgroup::{Cgroup, Quota};
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::http::{Client, Request};

/// A real engine's answers about a container: its description, and its entry in a list.
const EXAMPLE: &str = include_str!("container.json");
/// The fields that set a limit.
const LIMITS: [&str; 4] = ["NanoCpus", "CpuQuota", "CpuPeriod", "CpuShares"];

/// One container: the engine's answers about it, and its control group.
#[derive(Debug)]
pub(super) struct Container {
    described: Mutex<Value>,
    listed: Value,
    cgroup: Cgroup,
}

/// Containers by their ids.
pub(super) type Containers = Arc<BTreeMap<String, Container>>;

impl Container {
    pub(super) fn new(id: &str, process: u32, cgroup: Cgroup, labels: &Value) -> io::Result<Self> {
        let mut example: Value = serde_json::from_str(EXAMPLE)?;
        let name = format!("/job-{process}");
        let mut put = |at: &str, value: Value| {
            example.pointer_mut(at).map(|place| *place = value).ok_or_else(|| io::Error::other(at))
        };
        put("/described/Id", json!(id))?;
        put("/described/Name", json!(name))?;
        put("/described/State/Pid", json!(process))?;
        put("/described/Config/Labels", labels.clone())?;
        put("/listed/Id", json!(id))?;
        put("/listed/Names", json!([name]))?;
        put("/listed/Labels", labels.clone())?;
        let mut take = |key: &str| example.get_mut(key).map(Value::take).unwrap_or_default();
        Ok(Self { described: Mutex::new(take("described")), listed: take("listed"), cgroup })
    }

    fn describe(&self) -> Value {
        self.described.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps new limits and writes them to the control group.
    fn update(&self, asked: &Value) -> io::Result<()> {
        let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(host) = described.get_mut("HostConfig").and_then(Value::as_object_mut) else {
            return Ok(());
        };
        for key in LIMITS {
            let set = asked.get(key).filter(|value| value.as_i64().is_some_and(|value| value != 0));
            if let Some(value) = set {
                host.insert(key.to_owned(), value.clone());
            }
        }
        let of = |key: &str| host.get(key).and_then(Value::as_i64).unwrap_or(0);
        let [nano_cpus, quota, period, shares] = LIMITS.map(of);
        let period = u64::try_from(period).ok().filter(|period| *period > 0).unwrap_or(100_000);
        let quota = if nano_cpus > 0 { nano_cpus / 10_000 } else { quota };
        let quota = u64::try_from(quota).ok().filter(|quota| *quota > 0);
        self.cgroup.set_quota(Quota { quota, period })?;
        match u64::try_from(shares) {
            Ok(shares) if shares > 0 => self.cgroup.set_weight(self.cgroup.weight_of(shares)),
            _ => Ok(()),
        }
    }
}

/// Serves the API of an engine with these containers.
pub(super) async fn serve(listener: UnixListener, containers: Containers) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                clients.spawn(talk(stream, Arc::clone(&containers)));
            }
            Some(_) = clients.join_next() => {}
        }
    }
}

async fn talk(stream: UnixStream, containers: Containers) -> io::Result<()> {
    let mut client = Client::new(stream);
    while let Some(request) = client.request().await? {
        if request.path.ends_with("/events") {
            client.begin("application/json").await?;
            // It sends no events, and waits until the client leaves.
            client.request().await?;
            return Ok(());
        }
        let (status, body) = respond(&request, &containers)?;
        client.answer(status, &body.to_string()).await?;
    }
    Ok(())
}

fn respond(request: &Request, containers: &Containers) -> io::Result<(u16, Value)> {
    // The first word is the version of the API.
    let words: Vec<&str> = request.path.split('/').filter(|word| !word.is_empty()).collect();
    let words = match words.as_slice() {
        [version, words @ ..] if version.starts_with("v1.") => words,
        words => words,
    };
    let missing = || (404, json!({"message": "no such container"}));
    Ok(match words {
        ["_ping"] => (200, json!("OK")),
        ["version"] => (200, json!({"ApiVersion": "1.41", "MinAPIVersion": "1.12"})),
        ["info"] => (200, about(containers.len())),
        ["containers", "json"] => {
            (200, containers.values().map(|container| container.listed.clone()).collect())
        }
        ["containers", id, "json"] => {
            containers.get(*id).map_or_else(missing, |container| (200, container.describe()))
        }
        ["containers", id, "update"] => match containers.get(*id) {
            Some(container) => match container.update(&serde_json::from_slice(&request.body)?) {
                Ok(()) => (200, json!({"Warnings": null})),
                Err(error) => (500, json!({"message": error.to_string()})),
            },
            None => missing(),
        },
        _ => (404, json!({"message": "page not found"})),
    })
}

/// A machine on which each job has a CPU of its own.
fn about(cpus: usize) -> Value {
    json!({"ID": "stand-in", "Name": "stand-in", "NCPU": cpus, "MemTotal": 1_u64 << 40})
}
