//! Admission of new containers: which may be managed, and the names of their jobs.

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

impl Inventory {
    /// Opts in a container that lacks the label, for as long as it exists. Returns its job's name.
    pub(in crate::controller) fn adopt(
        &mut self,
        container: &Container,
    ) -> Result<String, Refusal> {
        let (id, name) = (container.id.clone(), container.name.clone());
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
                let job = self.name(container, named.or(labels.job.as_deref()));
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
        check_ownership(labels, *host_config, self.machine.cpus, &self.owners)
            .map_err(|error| error.to_string())?;
        Labels::parse(labels).map_err(|error| error.to_string())
    }

    /// The job's name: the `known` one, else its service's, pod's or container's. It is never one that
    /// another job has.
    fn name(&self, container: &Container, known: Option<&str>) -> JobId {
        let taken = |name: &JobId| self.candidates.values().any(|other| other.job() == name);
        // In a Swarm, the container's own name also holds the task's number and id.
        let service = container.labels.get("com.docker.swarm.service.name");
        let pod = container.pod.as_ref().map(|pod| &pod.name);
        let own = service.or(pod).unwrap_or(&container.name);
        let wanted = known.map_or_else(|| given_name(own, &container.id), str::to_owned);
        let wanted = job_id(&wanted, &container.id);
        if !taken(&wanted) {
            return wanted;
        }
        let other = job_id(&with_id(&container.name, &container.id), &container.id);
        let name = plain::message(&container.name);
        warn!(container = %name, "it becomes job {other}: job {wanted} exists already");
        other
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
    use super::*;

    #[test]
    fn long_name_of_a_container_is_cut_and_stays_unique() {
        let (id, long) = ("0123456789abcdef", "x".repeat(300_000));
        assert_eq!(given_name("vae", id), "vae");
        let name = given_name(&long, id);
        assert!(name.ends_with("…-0123456789ab") && name.chars().count() == 64, "{name}");
        assert_eq!(given_name("a\nb", id), "a\\u{a}b-0123456789ab");
    }
}
