//! Containers that come: which may be managed, and what their jobs are called.

use paceline_policy::JobId;
use tracing::warn;

use super::{Refused, Roster};
use crate::actuate::fence::fence;
use crate::driver::candidate::Candidate;
use crate::driver::{job_id, short};
use crate::labels::Labels;
use crate::live::Refusal;
use crate::observe::container::Container;

impl Roster {
    /// Opts a container in that lacks the label, for as long as it exists. Returns its job's name.
    pub(in crate::driver) fn adopt(&mut self, container: &Container) -> Result<String, Refusal> {
        let (id, name) = (container.id.clone(), container.name.clone());
        self.admit(container);
        match (self.refused.get(&id), self.candidates.get(&id)) {
            (None, Some(candidate)) => {
                self.adopted.insert(id);
                Ok(candidate.job().to_string())
            }
            (refused, _) => {
                let why = refused.map_or("it has ended", |refused| &refused.why);
                Err(Refusal::Impossible(format!("container {name} cannot be managed: {why}")))
            }
        }
    }

    /// A container that was opted in by an order is a stranger again.
    pub(in crate::driver) fn disown(&mut self, id: &str) -> bool {
        let adopted = self.adopted.remove(id);
        if adopted {
            self.candidates.remove(id);
        }
        adopted
    }

    pub(super) fn admit(&mut self, container: &Container) {
        if self.candidates.contains_key(&container.id) || self.refused.contains_key(&container.id) {
            return;
        }
        match self.admissible(container) {
            Ok(labels) => {
                let taken = |id: &str| self.candidates.contains_key(id);
                let Ok(legacy) = self.heirs.enter(&container.id, taken) else { return };
                let named = legacy.as_ref().map(|legacy| legacy.job.as_str());
                let job = self.name(container, named.or(labels.job.as_deref()));
                let around = self.around();
                let (container, id) = (container.clone(), container.id.clone());
                let mut candidate =
                    Candidate::new(around, container, labels, job, self.listed_before);
                if let Some(legacy) = legacy {
                    candidate.inherit(legacy.orders);
                }
                self.candidates.insert(id, candidate);
            }
            Err(why) => {
                let Container { id, name, started_at, .. } = container.clone();
                warn!("container {name} is left alone: {why}");
                self.refused.insert(id, Refused { name, why, started_at });
            }
        }
    }

    /// What a container's labels ask for, if it may be managed at all.
    fn admissible(&self, container: &Container) -> Result<Labels, String> {
        let Container { labels, host_config, .. } = container;
        fence(labels, *host_config, self.machine.cpus, &self.owners)
            .map_err(|error| error.to_string())?;
        Labels::parse(labels).map_err(|error| error.to_string())
    }

    /// The job's name: the one that it is known by, else its service's or container's; never one that another
    /// job has.
    fn name(&self, container: &Container, known: Option<&str>) -> JobId {
        let taken = |name: &JobId| self.candidates.values().any(|other| other.job() == name);
        // A Swarm calls a container after its service, the task's number and its id.
        let service = container.labels.get("com.docker.swarm.service.name");
        let own = service.unwrap_or(&container.name);
        let wanted = job_id(known.unwrap_or(own), &container.id);
        if !taken(&wanted) {
            return wanted;
        }
        let other = job_id(&format!("{}-{}", container.name, short(&container.id)), &container.id);
        warn!("container {} is called {other}: job {wanted} runs already", container.name);
        other
    }
}
