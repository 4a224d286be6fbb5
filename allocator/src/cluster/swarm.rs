//! The machines and services of a Swarm, as its engine tells of them.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{Node, NodeSpecAvailabilityEnum, NodeState};
use bollard::query_parameters::{ListNodesOptions, ListServicesOptions, ListTasksOptions};
use paceline_policy::unit::counter;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::engine::{NANO, by_service};
use super::lost::{self, Lost};
use super::twin;

/// How often the engine is asked.
const PACE: Duration = Duration::from_secs(2);
/// It answers within this time, or not at all.
const PATIENCE: Duration = Duration::from_secs(10);

/// One machine of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// What it is called: its host's name, and the beginning of its id where several have that.
    pub name: String,
    /// Its id in the Swarm.
    pub id: String,
    /// Its address, where the engine knows it.
    pub address: Option<String>,
    /// Its CPUs.
    pub cpus: f64,
    /// Its memory, in bytes.
    pub memory: f64,
    /// Why nothing can run there, in the engine's words.
    pub trouble: Option<String>,
    /// Whether new tasks may go there, by the word of whoever looks after it.
    pub takes_tasks: bool,
}

/// What an engine says of its Swarm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Swarm {
    /// Its machines.
    pub members: Vec<Member>,
    /// Why jobs cannot be moved, by the ids of their services, as far as they cannot.
    pub obstacles: BTreeMap<String, String>,
    /// Jobs that ended with their machines, by the ids of their services.
    pub lost: BTreeMap<String, Lost>,
}

/// Asks once. An engine that is no manager of a Swarm says so.
pub async fn look(docker: &Docker) -> Result<Swarm, EngineError> {
    let members = members(docker).await?;
    // In this order: what a service was changed to shows in tasks that are asked for later.
    let services = docker.list_services(None::<ListServicesOptions>).await?;
    let tasks = docker.list_tasks(None::<ListTasksOptions>).await?;
    let of_service = by_service(&tasks);
    let mut swarm = Swarm { members, ..Swarm::default() };
    for service in &services {
        let (Some(id), Some(spec)) = (&service.id, &service.spec) else { continue };
        if let Some(why) = twin::obstacle(spec) {
            swarm.obstacles.insert(id.clone(), why);
        }
        let tasks = of_service.get(id.as_str()).map(Vec::as_slice).unwrap_or_default();
        if let Some(lost) = lost::of(service, tasks) {
            swarm.lost.insert(id.clone(), lost);
        }
    }
    Ok(swarm)
}

/// Its machines.
pub(super) async fn members(docker: &Docker) -> Result<Vec<Member>, EngineError> {
    Ok(named(docker.list_nodes(None::<ListNodesOptions>).await?))
}

/// A Swarm, from now on.
#[derive(Debug)]
pub(super) struct Watch {
    latest: watch::Receiver<Swarm>,
    _task: AbortOnDropHandle<()>,
}

impl Watch {
    /// Follows the engine, beginning with what it has said. One that does not answer has changed
    /// nothing.
    #[expect(clippy::disallowed_methods, reason = "the handle ends the task when it is dropped")]
    pub(super) fn follow(docker: Docker, first: Swarm) -> Self {
        let (told, latest) = watch::channel(first);
        let task = tokio::spawn(async move {
            let mut silent = false;
            loop {
                sleep(PACE).await;
                let asked = timeout(PATIENCE, look(&docker)).await;
                match asked.map_err(|_| "no answer".to_owned()) {
                    Ok(Ok(swarm)) => {
                        if std::mem::take(&mut silent) {
                            info!("the engine tells of its Swarm again");
                        }
                        told.send_if_modified(|before| {
                            let news = *before != swarm;
                            *before = swarm;
                            news
                        });
                    }
                    Ok(Err(error)) => lament(&mut silent, &error.to_string()),
                    Err(error) => lament(&mut silent, &error),
                }
            }
        });
        Self { latest, _task: AbortOnDropHandle::new(task) }
    }

    /// As of now.
    pub(super) fn now(&self) -> Swarm {
        self.latest.borrow().clone()
    }

    /// As of now whenever it is asked.
    pub(super) fn latest(&self) -> watch::Receiver<Swarm> {
        self.latest.clone()
    }
}

fn lament(silent: &mut bool, why: &str) {
    if !std::mem::replace(silent, true) {
        warn!("the engine does not tell of its Swarm, which is taken to be as it was: {why}");
    }
}

/// Machines by names of their own.
fn named(nodes: Vec<Node>) -> Vec<Member> {
    let mut members: Vec<Member> = nodes.into_iter().filter_map(member).collect();
    members.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for member in &members {
        *times.entry(member.name.clone()).or_default() += 1;
    }
    for member in &mut members {
        if times.get(&member.name).is_some_and(|times| *times > 1) {
            let short = member.id.get(..12).unwrap_or(&member.id);
            member.name = format!("{}-{short}", member.name);
        }
    }
    members
}

fn member(node: Node) -> Option<Member> {
    let id = node.id?;
    let availability = node.spec.as_ref().and_then(|spec| spec.availability);
    let described = node.description.unwrap_or_default();
    let resources = described.resources.unwrap_or_default();
    let amount = |of: Option<i64>| counter(of.and_then(|of| u64::try_from(of).ok()).unwrap_or(0));
    let status = node.status.unwrap_or_default();
    let manager = node.manager_status.and_then(|status| status.addr);
    let of_manager = manager.as_deref().and_then(|address| address.rsplit_once(':'));
    // A manager knows itself by no address, where it listens on all of them.
    let known = status.addr.filter(|address| !address.is_empty() && address != "0.0.0.0");
    let trouble = (status.state != Some(NodeState::READY)).then(|| {
        let state = status.state.map_or_else(|| "unknown".to_owned(), |state| state.to_string());
        match status.message.filter(|message| !message.is_empty()) {
            Some(message) => format!("the engine says that it is {state}: {message}"),
            None => format!("the engine says that it is {state}"),
        }
    });
    Some(Member {
        name: described.hostname.filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone()),
        address: known.or_else(|| of_manager.map(|(host, _)| host.to_owned())),
        cpus: amount(resources.nano_cpus) / NANO,
        memory: amount(resources.memory_bytes),
        takes_tasks: !matches!(
            availability,
            Some(NodeSpecAvailabilityEnum::PAUSE | NodeSpecAvailabilityEnum::DRAIN)
        ),
        trouble,
        id,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(id: &str, change: impl FnOnce(&mut Value)) -> Node {
        let mut described = json!({
            "ID": id,
            "Description": {
                "Hostname": "w1",
                "Resources": {"NanoCPUs": 2_000_000_000_i64, "MemoryBytes": 1024},
            },
            "Status": {"State": "ready", "Addr": "10.0.0.2"},
        });
        change(&mut described);
        serde_json::from_value(described).unwrap()
    }

    fn one(change: impl FnOnce(&mut Value)) -> Member {
        named(vec![node("abc", change)]).pop().unwrap()
    }

    #[test]
    fn a_machine_is_known_by_its_hosts_name_and_has_what_the_engine_says() {
        let expected = Member {
            name: "w1".to_owned(),
            id: "abc".to_owned(),
            address: Some("10.0.0.2".to_owned()),
            cpus: 2.0,
            memory: 1024.0,
            trouble: None,
            takes_tasks: true,
        };
        assert_eq!(one(|_| ()), expected);
        assert_eq!(one(|it| it["Description"]["Hostname"] = json!("")).name, "abc");
    }

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_ids() {
        let two = vec![node("b2345678901234", |_| ()), node("a2345678901234", |_| ())];
        let names: Vec<String> = named(two).into_iter().map(|member| member.name).collect();
        assert_eq!(names, ["w1-a23456789012", "w1-b23456789012"]);
    }

    #[test]
    fn a_manager_that_listens_everywhere_is_reached_where_other_managers_reach_it() {
        let manager = one(|it| {
            it["Status"]["Addr"] = json!("0.0.0.0");
            it["ManagerStatus"] = json!({"Addr": "10.0.0.1:2377"});
        });
        assert_eq!(manager.address.as_deref(), Some("10.0.0.1"));
        assert_eq!(one(|it| it["Status"]["Addr"] = json!("")).address, None);
    }

    #[test]
    fn a_machine_that_is_drained_takes_no_tasks() {
        for (availability, takes) in [("active", true), ("pause", false), ("drain", false)] {
            let machine = one(|it| it["Spec"] = json!({"Availability": availability}));
            assert_eq!(machine.takes_tasks, takes, "{availability}");
        }
    }

    #[test]
    fn a_machine_that_is_not_ready_says_why() {
        let down = one(|it| {
            it["Status"] = json!({"State": "down", "Message": "heartbeat failure", "Addr": "::1"});
        });
        let why = "the engine says that it is down: heartbeat failure";
        assert_eq!(down.trouble.as_deref(), Some(why));
    }
}
