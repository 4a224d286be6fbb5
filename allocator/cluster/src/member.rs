//! The machines of a Swarm, as Docker lists them.

use std::collections::BTreeMap;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{Node, NodeSpecAvailabilityEnum, NodeState};
use bollard::query_parameters::ListNodesOptions;
use paceline_policy::unit::counter;

use super::engine::NANO;

/// One machine of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its host name, followed by the start of its id if several machines share the name.
    pub name: String,
    /// Its id in the Swarm.
    pub id: String,
    /// Its address, if Docker knows it.
    pub address: Option<String>,
    /// Its CPUs.
    pub cpus: f64,
    /// Its memory, in bytes.
    pub memory: f64,
    /// Why it cannot run tasks, as Docker reports it.
    pub trouble: Option<String>,
    /// Whether its administrator allows new tasks: it is neither paused nor drained.
    pub takes_tasks: bool,
}

/// The machines of the Swarm.
pub(super) async fn members(docker: &Docker) -> Result<Vec<Member>, EngineError> {
    Ok(named(docker.list_nodes(None::<ListNodesOptions>).await?))
}

/// Gives each machine a name of its own.
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
    // A manager that listens on all addresses does not know its own.
    let known = status.addr.filter(|address| !address.is_empty() && address != "0.0.0.0");
    let trouble = (status.state != Some(NodeState::READY)).then(|| {
        let state = status.state.map_or_else(|| "unknown".to_owned(), |state| state.to_string());
        match status.message.filter(|message| !message.is_empty()) {
            Some(message) => format!("Docker reports it as {state}: {message}"),
            None => format!("Docker reports it as {state}"),
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
    fn machine_has_its_host_name_and_dockers_figures() {
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
    fn machines_of_one_name_get_their_ids_appended() {
        let two = vec![node("b2345678901234", |_| ()), node("a2345678901234", |_| ())];
        let names: Vec<String> = named(two).into_iter().map(|member| member.name).collect();
        assert_eq!(names, ["w1-a23456789012", "w1-b23456789012"]);
    }

    #[test]
    fn manager_on_all_addresses_has_its_manager_address() {
        let manager = one(|it| {
            it["Status"]["Addr"] = json!("0.0.0.0");
            it["ManagerStatus"] = json!({"Addr": "10.0.0.1:2377"});
        });
        assert_eq!(manager.address.as_deref(), Some("10.0.0.1"));
        assert_eq!(one(|it| it["Status"]["Addr"] = json!("")).address, None);
    }

    #[test]
    fn paused_or_drained_machine_takes_no_tasks() {
        for (availability, takes) in [("active", true), ("pause", false), ("drain", false)] {
            let machine = one(|it| it["Spec"] = json!({"Availability": availability}));
            assert_eq!(machine.takes_tasks, takes, "{availability}");
        }
    }

    #[test]
    fn machine_that_is_not_ready_gives_the_reason() {
        let down = one(|it| {
            it["Status"] = json!({"State": "down", "Message": "heartbeat failure", "Addr": "::1"});
        });
        let why = "Docker reports it as down: heartbeat failure";
        assert_eq!(down.trouble.as_deref(), Some(why));
    }
}
