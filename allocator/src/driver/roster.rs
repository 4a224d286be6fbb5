//! The opted-in containers of the node, from one look to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bollard::Docker;
use futures_util::future::join_all;
use paceline_policy::JobId;
use tracing::warn;

use super::candidate::{Candidate, Seen};
use super::{job_id, short};
use crate::clock::Clock;
use crate::labels::Labels;
use crate::observe::container::{self, Container};
use crate::observe::node::Machine;
use crate::samples::SampleJob;

/// All containers that opted in, whether they are managed yet or not.
#[derive(Debug)]
pub struct Roster {
    docker: Docker,
    machine: Machine,
    /// Further labels (`KEY=VALUE`) that a container must have.
    labels: Vec<String>,
    /// By the engine's full id.
    candidates: BTreeMap<String, Candidate>,
    /// Containers that are left alone, by id and start: that is said once.
    refused: BTreeSet<(String, String)>,
    /// Containers that run already when the first list is read began before this run.
    listed_before: bool,
}

/// What a comparison of lists has shown.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Containers that no longer run, each with its job if it was managed.
    pub(super) gone: Vec<(String, Option<JobId>)>,
}

impl Roster {
    /// An empty roster.
    pub fn new(docker: Docker, machine: Machine, labels: Vec<String>) -> Self {
        let (candidates, refused) = (BTreeMap::new(), BTreeSet::new());
        Self { docker, machine, labels, candidates, refused, listed_before: false }
    }

    pub(super) fn docker(&self) -> &Docker {
        &self.docker
    }

    pub(super) fn cpus(&self) -> f64 {
        self.machine.cpus
    }

    pub(super) fn proc(&self) -> &Path {
        &self.machine.proc
    }

    /// The container of a managed job.
    pub(super) fn container(&self, job: &JobId) -> Option<&str> {
        let managed = |(_, candidate): &(&String, &Candidate)| candidate.managed() == Some(job);
        self.candidates.iter().find(managed).map(|(id, _)| id.as_str())
    }

    /// Compares with what the engine lists now.
    pub(super) async fn refresh(&mut self) -> Result<Change, bollard::errors::Error> {
        let listed = container::opted_in(&self.docker, &self.labels).await?;
        let asked = listed.iter().map(|id| container::inspect(&self.docker, id));
        let mut running = BTreeMap::new();
        for container in join_all(asked).await {
            if let Some(container) = container?.filter(|container| container.pid.is_some()) {
                running.insert(container.id.clone(), container);
            }
        }
        let mut change = Change::default();
        // A new start is a new life, also under the same id.
        let ended = |id: &String, candidate: &mut Candidate| {
            running.get(id).is_none_or(|now| now.started_at != candidate.started_at())
        };
        for (id, candidate) in self.candidates.extract_if(.., ended) {
            change.gone.push((id, candidate.managed().cloned()));
        }
        self.refused
            .retain(|(id, start)| running.get(id).is_some_and(|now| now.started_at == *start));
        for (id, container) in running {
            if !self.candidates.contains_key(&id) {
                self.admit(container);
            }
        }
        self.listed_before = true;
        Ok(change)
    }

    fn admit(&mut self, container: Container) {
        let key = (container.id.clone(), container.started_at.clone());
        if self.refused.contains(&key) {
            return;
        }
        match Labels::parse(&container.labels) {
            Ok(labels) => {
                let job = self.name(&container, labels.job.as_deref());
                let candidate =
                    Candidate::new(&self.machine, container, labels, job, self.listed_before);
                self.candidates.insert(key.0, candidate);
            }
            Err(error) => {
                warn!("container {} is left alone: {error}", container.name);
                self.refused.insert(key);
            }
        }
    }

    /// The job's name: its label, else the container's; never one that another job has.
    fn name(&self, container: &Container, label: Option<&str>) -> JobId {
        let taken = |name: &JobId| self.candidates.values().any(|other| other.job() == name);
        let wanted = job_id(label.unwrap_or(&container.name), &container.id);
        if !taken(&wanted) {
            return wanted;
        }
        let other = job_id(&format!("{}-{}", container.name, short(&container.id)), &container.id);
        warn!("container {} is called {other}: job {wanted} runs already", container.name);
        other
    }

    /// Looks at every container, all at once.
    pub(super) async fn look(&mut self, clock: &Clock) -> (Vec<Seen>, Vec<SampleJob>) {
        let (docker, machine) = (&self.docker, &self.machine);
        let looks = self.candidates.values_mut().map(|one| one.look(docker, machine, clock));
        let mut seen = Vec::new();
        let mut samples = Vec::new();
        for (saw, sample) in join_all(looks).await {
            seen.extend(saw);
            samples.extend(sample);
        }
        (seen, samples)
    }
}
