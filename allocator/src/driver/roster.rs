//! The opted-in containers of the node, from one look to the next.

mod admission;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bollard::Docker;
use paceline_policy::{Event, JobId};
use tokio::sync::Notify;

use super::candidate::{Candidate, Seen, Surroundings};
use super::engine_events::Touched;
use super::heirs::Heirs;
use super::names::{self, Named};
use super::survey::{Scope, Survey, SurveyError, Surveys};
use crate::actuate::fence::Owner;
use crate::clock::Clock;
use crate::live::Refusal;
use crate::live::snapshot::Standing;
use crate::nodes::Nodes;
use crate::observe::container::Container;
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
    /// Containers that are left alone, as another's or for their labels, by id: that is said once.
    refused: BTreeMap<String, Refused>,
    /// Containers that were opted in by an order, by id.
    adopted: BTreeSet<String>,
    /// Told of what cannot wait.
    nudge: Arc<Notify>,
    surveys: Surveys,
    /// Whose containers are managed though somebody else looks after them.
    owners: Vec<Owner>,
    /// What the machine's CPUs are split into.
    nodes: Nodes,
    /// Containers that are to take the place of others.
    heirs: Heirs,
    /// Containers that run already when the first list is read began before this run.
    listed_before: bool,
}

/// A container that cannot be managed.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) name: String,
    pub(super) why: String,
    started_at: String,
}

/// What a comparison of lists has shown.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Containers that no longer run.
    pub(super) gone: Vec<Left>,
    /// Containers that were to go on with a job and are gone, each with that.
    pub(super) lost: Vec<(String, JobId)>,
    /// Containers that are watched, as the engine describes them now.
    pub(super) described: Vec<Container>,
}

/// A container that no longer runs.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) container: String,
    pub(super) job: JobId,
    pub(super) standing: Standing,
}

impl Roster {
    /// An empty roster.
    pub fn new(docker: Docker, machine: Machine, labels: Vec<String>) -> Self {
        Self {
            docker,
            machine,
            labels,
            candidates: BTreeMap::new(),
            refused: BTreeMap::new(),
            adopted: BTreeSet::new(),
            nudge: Arc::new(Notify::new()),
            surveys: Surveys::default(),
            owners: Vec::new(),
            nodes: Nodes::default(),
            heirs: Heirs::default(),
            listed_before: false,
        }
    }

    /// The same, taking containers of these owners too.
    #[must_use]
    pub fn adopting(self, owners: Vec<Owner>) -> Self {
        Self { owners, ..self }
    }

    /// The same on a machine whose CPUs are these nodes.
    #[must_use]
    pub fn on(self, nodes: Nodes) -> Self {
        Self { nodes, ..self }
    }

    pub(super) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub(super) fn docker(&self) -> &Docker {
        &self.docker
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(super) fn proc(&self) -> &Path {
        &self.machine.proc
    }

    pub(super) fn adopted(&self) -> &BTreeSet<String> {
        &self.adopted
    }

    /// Notified when a container has news that cannot wait.
    pub(super) fn nudge(&self) -> Arc<Notify> {
        Arc::clone(&self.nudge)
    }

    /// Whether it is known what there is.
    pub(super) fn was_listed(&self) -> bool {
        self.listed_before
    }

    /// The container of a managed job.
    pub(super) fn container(&self, job: &JobId) -> Option<&str> {
        let managed = |(_, candidate): &(&String, &Candidate)| candidate.managed() == Some(job);
        self.candidates.iter().find(managed).map(|(id, _)| id.as_str())
    }

    pub(super) fn candidates(&self) -> impl Iterator<Item = (&str, &Candidate)> {
        self.candidates.iter().map(|(id, candidate)| (id.as_str(), candidate))
    }

    pub(super) fn refused(&self) -> impl Iterator<Item = (&str, &Refused)> {
        self.refused.iter().map(|(id, refused)| (id.as_str(), refused))
    }

    /// One container, by its id.
    pub(super) fn get(&mut self, id: &str) -> Option<&mut Candidate> {
        self.candidates.get_mut(id)
    }

    /// The id of the container that `name` means.
    pub(super) fn find(&self, name: &str) -> Result<String, Refusal> {
        let watched = self.candidates.iter().map(|(id, candidate)| Named {
            id,
            name: &candidate.container.name,
            job: candidate.job().as_str(),
        });
        let refused =
            self.refused.iter().map(|(id, refused)| Named { id, name: &refused.name, job: "" });
        let known: Vec<Named<'_>> = watched.chain(refused).collect();
        let id = names::resolve(name, &known)?;
        match self.refused.get(id) {
            Some(refused) => Err(Refusal::Impossible(format!(
                "container {} cannot be managed: {}",
                refused.name, refused.why
            ))),
            None => Ok(id.to_owned()),
        }
    }

    /// What the engine is being asked is out of date before it is answered.
    pub(super) fn survey_no_more(&mut self) {
        self.surveys = Surveys::default();
    }

    /// Has the engine asked what there is, unless it is being asked. Known containers are looked at
    /// again where they were `touched`.
    pub(super) fn survey(&mut self, touched: Touched) -> bool {
        if self.surveys.is_under_way() {
            return false;
        }
        let known = self.candidates.keys().chain(self.refused.keys()).cloned().collect();
        let (labels, adopted) = (self.labels.clone(), self.adopted.clone());
        self.surveys.begin(self.docker.clone(), Scope { labels, adopted, known, touched });
        true
    }

    /// What the engine says that there is.
    pub(super) async fn surveyed(&mut self) -> Result<Survey, SurveyError> {
        self.surveys.ended().await
    }

    /// Compares with what there was.
    pub(super) fn compare(&mut self, survey: Survey) -> Change {
        let Survey { present, described, known, missing } = survey;
        let described: BTreeMap<String, Container> =
            described.into_iter().map(|container| (container.id.clone(), container)).collect();
        // A new start is a new life, also under the same id.
        let ended = |id: &str, started_at: &str| {
            let anew = |now: &Container| now.started_at != started_at;
            known.contains(id) && (!present.contains(id) || described.get(id).is_some_and(anew))
        };
        let mut change = Change::default();
        let gone = |id: &String, one: &mut Candidate| ended(id, &one.container.started_at);
        for (id, candidate) in self.candidates.extract_if(.., gone) {
            self.heirs.bequeath(&id, &candidate.orders());
            let (job, standing) = (candidate.job().clone(), candidate.standing);
            change.gone.push(Left { container: id, job, standing });
        }
        self.refused.retain(|id, refused| !ended(id, &refused.started_at));
        self.adopted.retain(|id| !missing.contains(id));
        for container in described.into_values() {
            self.admit(&container);
            if self.candidates.contains_key(&container.id) {
                change.described.push(container);
            }
        }
        let never = |id: &str| !present.contains(id) || self.refused.contains_key(id);
        change.lost = self.heirs.lost(never);
        self.listed_before = true;
        change
    }

    /// Watches a container again that was left alone or held.
    pub(super) fn take_back(&mut self, id: &str) {
        let around =
            Surroundings { machine: &self.machine, nodes: &self.nodes, nudge: &self.nudge };
        if let Some(candidate) = self.candidates.get_mut(id) {
            candidate.take_back(around);
        }
    }

    /// Containers that are to take the place of others.
    pub(super) fn heirs(&mut self) -> &mut Heirs {
        &mut self.heirs
    }

    /// The container `id` is to take the place of `source`, and go on with its `job`.
    pub(super) fn withhold(&mut self, id: String, source: String, job: JobId) {
        if self.adopted.contains(&source) {
            self.adopted.insert(id.clone());
        }
        self.heirs.withhold(id, source, job);
    }

    /// The engine describes a container that is watched like this now; what is to be told of it.
    pub(super) fn described(&mut self, container: &Container) -> Vec<Event> {
        let around =
            Surroundings { machine: &self.machine, nodes: &self.nodes, nudge: &self.nudge };
        let candidate = self.candidates.get_mut(&container.id);
        candidate.map(|one| one.described(container, around)).unwrap_or_default()
    }

    fn around(&self) -> Surroundings<'_> {
        Surroundings { machine: &self.machine, nodes: &self.nodes, nudge: &self.nudge }
    }

    /// Has every endpoint asked now.
    pub(super) fn ask_all(&self) {
        self.candidates.values().for_each(Candidate::ask);
    }

    /// Whether something has come of that from everyone.
    pub(super) fn has_answered(&self) -> bool {
        self.candidates.values().all(Candidate::has_answered)
    }

    /// Looks at every container.
    pub(super) fn look(&mut self, clock: &Clock, whole: bool) -> (Vec<Seen>, Vec<SampleJob>) {
        let mut seen = Vec::new();
        let mut samples = Vec::new();
        for candidate in self.candidates.values_mut() {
            let (saw, sample) = candidate.look(&self.docker, &self.machine, clock, whole);
            seen.extend(saw);
            samples.extend(sample);
        }
        (seen, samples)
    }
}
