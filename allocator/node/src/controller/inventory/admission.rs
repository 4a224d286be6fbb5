//! Admission of new containers: which may be managed, and the names of their jobs.

use std::collections::BTreeSet;

use paceline_api::labels::Labels;
use paceline_api::live::Refusal;
use paceline_api::plain;
use paceline_policy::JobId;
use paceline_runtime::{Container, short};
use tracing::warn;

use super::{Inventory, Refused};
use crate::controller::job_id;
use crate::controller::watched::{Identity, WatchedContainer};
use crate::endpoint::Reach;
use crate::limits::ownership::check_ownership;

/// The most ids of unfit descriptions that are remembered.
const MAX_UNFIT: usize = 1024;
/// Why a description without an id is of no use.
const NO_ID: &str = "the container engine describes it without its id";

impl Inventory {
    /// Opts in a container that lacks the label, for as long as it exists. Returns its job's name.
    pub(in crate::controller) fn adopt(
        &mut self,
        container: &Container,
    ) -> Result<String, Refusal> {
        let (id, name) = (container.id.clone(), container.name.clone());
        if id.is_empty() {
            let why = format!("cannot manage container {name}: {NO_ID}");
            return Err(Refusal::Impossible(why));
        }
        self.admit(container);
        match (self.refused.get(&id), self.candidates.get(&id)) {
            (None, Some(candidate)) => {
                self.adopted.insert(id);
                Ok(candidate.job().to_string())
            }
            (refused, _) => {
                let why = refused.map_or("it has ended", |refused| &refused.why);
                Err(Refusal::Impossible(format!("cannot manage container {name}: {why}")))
            }
        }
    }

    /// Takes back the opt-in of a container that was opted in by an order.
    pub(in crate::controller) fn disown(&mut self, id: &str) -> bool {
        let adopted = self.adopted.remove(id);
        if adopted {
            self.candidates.remove(id);
        }
        adopted
    }

    /// Whether a survey that found the containers `present` has asked for this description. Any other one may
    /// be of a container that did not opt in. It is logged once.
    pub(super) fn fits(&mut self, container: &Container, present: &BTreeSet<String>) -> bool {
        let id = &container.id;
        let opted_in = || {
            Labels::opted_in(&container.labels)
                || self.adopted.contains(id)
                || self.candidates.contains_key(id)
        };
        let why = if id.is_empty() {
            NO_ID
        } else if !present.contains(id) {
            "the container engine describes it in place of another one"
        } else if !opted_in() {
            "the container engine lists it as opted in, and describes it without that label"
        } else {
            return true;
        };
        if self.unfit.len() >= MAX_UNFIT {
            self.unfit.clear();
        }
        if self.unfit.insert(id.clone()) {
            let (name, short) = (plain::message(&container.name), plain::name(short(id)));
            warn!(container = %name, id = %short, "it is left alone: {why}");
        }
        false
    }

    /// Begins to watch a container, or remembers why it cannot be managed.
    pub(super) fn admit(&mut self, container: &Container) {
        if self.candidates.contains_key(&container.id) || self.refused.contains_key(&container.id) {
            return;
        }
        match self.admissible(container) {
            Ok(labels) => {
                let taken = |id: &str| self.candidates.contains_key(id);
                let Ok(handover) = self.replacements.enter(&container.id, taken) else { return };
                let named = handover.as_ref().map(|handover| handover.job.as_str());
                let known = named.or(labels.job.as_deref());
                let Some(job) = self.name(container, known) else { return };
                let context = self.context();
                let proc = &self.machine.proc;
                let reach = Reach::among(proc, container, &self.calls, &self.networks)
                    .with_sidecars(self.runtime.clone(), job.as_str());
                let (container, id) = (container.clone(), container.id.clone());
                let identity = Identity { container, labels, job, reach };
                let mut candidate = WatchedContainer::new(context, identity, self.listed_before);
                if let Some(handover) = handover {
                    candidate.inherit(handover.orders);
                }
                self.kept.give_back(&id, &mut candidate);
                self.candidates.insert(id, candidate);
            }
            Err(why) => {
                let Container { id, name, started_at, pod, .. } = container.clone();
                let by_pod = pod.is_some_and(|pod| pod.left_alone.is_some());
                let shown = plain::message(&name);
                warn!(container = %shown, "it is not managed: {why}");
                self.refused.insert(id, Refused { name, why, started_at, by_pod });
            }
        }
    }

    /// A container's labels, or why it cannot be managed.
    fn admissible(&self, container: &Container) -> Result<Labels, String> {
        let Container { labels, host_config, pod, .. } = container;
        if let Some(pod) = pod {
            return match &pod.left_alone {
                Some(why) => Err(why.clone()),
                None => Labels::parse(labels).map_err(|error| error.of_pod()),
            };
        }
        // After its restart, the engine may still keep a limit of ours, which is not its owner's.
        let limits = self.limits.as_ref();
        let original = limits.and_then(|it| it.originally(&container.id).ok().flatten());
        let owned = original.map_or(*host_config, |original| original.host_config);
        check_ownership(labels, owned, self.machine.cpus, &self.owners)
            .map_err(|error| error.to_string())?;
        Labels::parse(labels).map_err(|error| error.to_string())
    }

    /// The job's name: the `known` one, else its service's, pod's or container's. It is never one that
    /// another job has. `None` for a container without a name and an id.
    fn name(&self, container: &Container, known: Option<&str>) -> Option<JobId> {
        let taken = |name: &JobId| self.candidates.values().any(|other| other.job() == name);
        // In a Swarm, the container's own name also holds the task's number and id.
        let service = container.labels.get("com.docker.swarm.service.name");
        let pod = container.pod.as_ref().map(|pod| &pod.name);
        let own = service.or(pod).unwrap_or(&container.name);
        let wanted = known.map_or_else(|| given_name(own, &container.id), str::to_owned);
        let wanted = job_id(&wanted, &container.id)?;
        if !taken(&wanted) {
            return Some(wanted);
        }
        let other = job_id(&with_id(&container.name, &container.id), &container.id)?;
        let name = plain::message(&container.name);
        warn!(container = %name, "it becomes job {other}: job {wanted} exists already");
        Some(other)
    }
}

/// A job's name from that of its service or container, which may be longer than a job's.
fn given_name(name: &str, id: &str) -> String {
    if plain::is_plain(name, plain::MAX_NAME) { name.to_owned() } else { with_id(name, id) }
}

/// A name that no other container gives, cut to the length of a job's name.
fn with_id(name: &str, id: &str) -> String {
    let id = short(id);
    format!("{}-{id}", plain::cut(name, plain::MAX_NAME.saturating_sub(id.len() + 1)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use paceline_runtime::docker::Docker;
    use paceline_runtime::testing::described;
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::survey::Survey;
    use crate::limits::Actuator;
    use crate::limits::originals::Originals;
    use crate::observe::node::Machine;

    /// A machine of two CPUs with the state folder `folder`. No engine answers.
    fn inventory(folder: &Path) -> Inventory {
        let socket = folder.join("engine.sock");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let engine = Docker::at(&format!("unix://{}", socket.display())).unwrap();
        let (runtime, proc) = (paceline_runtime::Runtime::from(engine), folder.join("proc"));
        let originals = Originals::open(&folder.join("state"), "engine", "a test").unwrap();
        let actuator = Actuator::new(runtime.clone(), originals, proc.clone(), 2.0);
        let machine = Machine { cpus: 2.0, memory: 1e9, proc };
        Inventory::new(runtime, machine, Vec::new()).asking(Some(Arc::new(actuator)))
    }

    /// A container that the engine limits to half a CPU.
    fn container(id: &str, labels: &Value) -> Container {
        described(json!({
            "Id": id, "Name": format!("/of-{id}"), "Config": {"Labels": labels},
            "HostConfig": {"NanoCpus": 500_000_000},
        }))
    }

    /// Takes in a survey; returns the ids of the containers that are watched after it.
    fn survey(
        inventory: &mut Inventory,
        present: &[&str],
        described: Vec<Container>,
    ) -> Vec<String> {
        let present = present.iter().map(|id| (*id).to_owned()).collect();
        inventory.compare(Survey { present, described, ..Survey::default() });
        inventory.candidates().map(|(id, _)| id.to_owned()).collect()
    }

    #[tokio::test]
    async fn description_that_does_not_fit_what_was_asked_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut inventory = inventory(folder.path());
        let (yes, no) = (json!({"paceline.enable": "true"}), json!({"paceline.enable": "yes"}));
        let described = ["", "d"].iter().map(|id| container(id, &yes)).chain([container("b", &no)]);
        let described = described.chain([container("c", &yes)]).collect();
        assert_eq!(survey(&mut inventory, &["", "a", "b", "c"], described), ["c"]);
        assert_eq!(inventory.refused().count(), 0);
        // An order opts it in without the label.
        assert_eq!(inventory.adopt(&container("b", &no)).unwrap(), "of-b");
        let described = vec![container("b", &no)];
        assert_eq!(survey(&mut inventory, &["b", "c"], described), ["b", "c"]);
        let refused = inventory.adopt(&container("", &yes)).unwrap_err().to_string();
        assert!(refused.contains("without its id"), "{refused}");
    }

    #[test]
    fn name_of_a_job_is_never_made_up() {
        assert_eq!(job_id("", "0123456789abcdef").unwrap().as_str(), "0123456789ab");
        assert_eq!(job_id("", ""), None);
    }

    #[tokio::test]
    async fn our_limit_does_not_count_as_the_one_of_a_compose_file() {
        let folder = tempfile::tempdir().unwrap();
        let host = json!({"nano_cpus": 0, "cpu_quota": 0, "cpu_period": 0, "cpu_shares": 0});
        let record =
            json!({"format": 2, "id": "a", "name": "of-a", "host_config": host, "cgroup": null});
        let records = folder.path().join("state/engine");
        std::fs::create_dir_all(&records).unwrap();
        std::fs::write(records.join("a.json"), record.to_string()).unwrap();
        let mut inventory = inventory(folder.path());
        let labels = json!({"paceline.enable": "true", "com.docker.compose.project": "x"});
        // As after their restarts: the first one has our limit, and the other one its owner's.
        let described = ["a", "b"].map(|id| container(id, &labels)).into();
        assert_eq!(survey(&mut inventory, &["a", "b"], described), ["a"]);
        let (id, refused) = inventory.refused().next().unwrap();
        assert!(id == "b" && refused.why.contains("compose"), "{}", refused.why);
    }

    #[test]
    fn long_name_of_a_container_is_cut_and_stays_unique() {
        let (id, long) = ("0123456789abcdef", "x".repeat(300_000));
        assert_eq!(given_name("vae", id), "vae");
        let name = given_name(&long, id);
        assert!(name.ends_with("…-0123456789ab") && name.chars().count() == 64, "{name}");
        assert_eq!(given_name("a\nb", id), "a\\u{a}b-0123456789ab");
    }
}
