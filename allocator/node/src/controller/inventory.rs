//! The opted-in containers of the node, from one survey to the next.

mod admission;
mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use paceline_api::clock::Clock;
use paceline_api::live::Refusal;
use paceline_api::live::snapshot::Standing;
use paceline_api::nodes::Nodes;
use paceline_api::samples::SampleJob;
use paceline_policy::{Event, JobId, Share};
use paceline_runtime::{Container, Runtime};
use tokio::sync::Notify;

use super::engine_events::Touched;
use super::names::{self, Named};
use super::replacements::Replacements;
use super::survey::{Scope, Survey, SurveyError, Surveys};
use super::watched::{Context, Observation, WatchedContainer};
use crate::limits::Actuator;
use crate::limits::ownership::Owner;
use crate::observe::calls::CallPool;
use crate::observe::networks::Networks;
use crate::observe::node::Machine;
use kept::Kept;

/// All containers that opted in, whether they are managed yet or not.
#[derive(Debug)]
pub struct Inventory {
    runtime: Runtime,
    machine: Machine,
    /// Further labels (`KEY=VALUE`) that a container must have.
    labels: Vec<String>,
    /// By the container engine's full id.
    candidates: BTreeMap<String, WatchedContainer>,
    /// Containers that cannot be managed, because of their owner or their labels, by id. They are
    /// remembered so that the reason is logged only once.
    refused: BTreeMap<String, Refused>,
    /// The ids of described containers that did not fit what was asked. They are remembered for the same
    /// reason.
    unfit: BTreeSet<String>,
    /// Containers that were opted in by an order, by id.
    adopted: BTreeSet<String>,
    /// Knows what the owners of containers with limits of ours have set; `None` in a dry run.
    limits: Option<Arc<Actuator>>,
    /// Notified of urgent news from a job.
    wake: Arc<Notify>,
    /// Threads for calls into containers.
    calls: CallPool,
    networks: Networks,
    surveys: Surveys,
    /// Orchestrators whose containers are managed all the same.
    owners: Vec<Owner>,
    /// The nodes that the machine's CPUs are split into.
    nodes: Nodes,
    /// Containers that were created to replace others.
    replacements: Replacements,
    /// Orders about containers that may be started again.
    kept: Kept,
    /// Whether a survey was taken in. Containers of the first one began before this run.
    listed_before: bool,
}

/// A container that cannot be managed.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) name: String,
    pub(super) why: String,
    started_at: String,
    /// Whether the reason is its pod's, which may change.
    by_pod: bool,
}

/// The differences between two surveys.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Containers that no longer run.
    pub(super) gone: Vec<Departed>,
    /// Replacements that were gone before they were seen, each with the job that ends with it.
    pub(super) lost: Vec<(String, JobId)>,
    /// Watched containers with a new description.
    pub(super) described: Vec<Container>,
    /// Containers that run again, and were pinned to a share before.
    pub(super) pinned: Vec<(String, Share)>,
}

/// A container that no longer runs.
#[derive(Debug)]
pub(super) struct Departed {
    pub(super) container: String,
    pub(super) job: JobId,
    pub(super) standing: Standing,
}

impl Inventory {
    /// An empty inventory.
    pub fn new(runtime: Runtime, machine: Machine, labels: Vec<String>) -> Self {
        Self {
            runtime,
            machine,
            labels,
            candidates: BTreeMap::new(),
            refused: BTreeMap::new(),
            unfit: BTreeSet::new(),
            adopted: BTreeSet::new(),
            limits: None,
            wake: Arc::new(Notify::new()),
            calls: CallPool::default(),
            networks: Networks::default(),
            surveys: Surveys::default(),
            owners: Vec::new(),
            nodes: Nodes::default(),
            replacements: Replacements::default(),
            kept: Kept::default(),
            listed_before: false,
        }
    }

    /// The same, also admitting containers of these owners.
    #[must_use]
    pub fn adopting(self, owners: Vec<Owner>) -> Self {
        Self { owners, ..self }
    }

    /// The same, asking `limits` for what the owners of limited containers have set.
    #[must_use]
    pub(super) fn asking(self, limits: Option<Arc<Actuator>>) -> Self {
        Self { limits, ..self }
    }

    /// The same on a machine whose CPUs are split into these nodes.
    #[must_use]
    pub fn on(self, nodes: Nodes) -> Self {
        Self { nodes, ..self }
    }

    pub(super) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
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

    /// Notified when a job has urgent news.
    pub(super) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Whether a survey was taken in.
    pub(super) fn was_listed(&self) -> bool {
        self.listed_before
    }

    /// The container of a managed job.
    pub(super) fn container(&self, job: &JobId) -> Option<&str> {
        let managed =
            |(_, candidate): &(&String, &WatchedContainer)| candidate.managed() == Some(job);
        self.candidates.iter().find(managed).map(|(id, _)| id.as_str())
    }

    pub(super) fn candidates(&self) -> impl Iterator<Item = (&str, &WatchedContainer)> {
        self.candidates.iter().map(|(id, candidate)| (id.as_str(), candidate))
    }

    pub(super) fn refused(&self) -> impl Iterator<Item = (&str, &Refused)> {
        self.refused.iter().map(|(id, refused)| (id.as_str(), refused))
    }

    /// One container, by its id.
    pub(super) fn get(&mut self, id: &str) -> Option<&mut WatchedContainer> {
        self.candidates.get_mut(id)
    }

    /// The id of the container that `name` refers to.
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
                "cannot manage container {}: {}",
                refused.name, refused.why
            ))),
            None => Ok(id.to_owned()),
        }
    }

    /// Discards the survey that is under way: it would be out of date.
    pub(super) fn discard_survey(&mut self) {
        self.surveys = Surveys::default();
    }

    /// Begins a survey, unless one is under way; returns whether it did. Known containers are
    /// described again if they were `touched`. If that is any, ended ones are asked for as well: they may
    /// have been removed.
    pub(super) fn survey(&mut self, touched: Touched) -> bool {
        if self.surveys.is_under_way() {
            return false;
        }
        let known = self.candidates.keys().chain(self.refused.keys()).cloned().collect();
        let (labels, adopted) = (self.labels.clone(), self.adopted.clone());
        let ended = if touched == Touched::Any { self.kept.next_to_ask() } else { Vec::new() };
        self.surveys.begin(self.runtime.clone(), Scope { labels, adopted, known, touched, ended });
        true
    }

    /// Waits for the survey that is under way.
    pub(super) async fn surveyed(&mut self) -> Result<Survey, SurveyError> {
        self.surveys.ended().await
    }

    /// Compares a survey with the known containers and updates these.
    pub(super) fn compare(&mut self, survey: Survey) -> Change {
        let Survey { present, described, known, missing } = survey;
        let described: BTreeMap<String, Container> =
            described.into_iter().map(|container| (container.id.clone(), container)).collect();
        // A container that was started again counts as a new one under the same id.
        let ended = |id: &str, started_at: &str| {
            let restarted = |now: &Container| now.started_at != started_at;
            known.contains(id)
                && (!present.contains(id) || described.get(id).is_some_and(restarted))
        };
        // Another container came into its pod, so that it may not be the job's any more; or one went.
        let barred = |id: &str| {
            let pod = described.get(id).and_then(|now| now.pod.as_ref());
            pod.map(|pod| pod.left_alone.is_some())
        };
        let mut change = Change::default();
        let gone = |id: &String, one: &mut WatchedContainer| {
            ended(id, &one.container.started_at) || barred(id) == Some(true)
        };
        for (id, candidate) in self.candidates.extract_if(.., gone) {
            self.replacements.record_settings(&id, &candidate.orders());
            self.kept.keep(&id, &candidate);
            let (job, standing) = (candidate.job().clone(), candidate.standing);
            change.gone.push(Departed { container: id, job, standing });
        }
        self.refused.retain(|id, refused| {
            let free = refused.by_pod && barred(id) == Some(false);
            !ended(id, &refused.started_at) && !free
        });
        self.adopted.retain(|id| !missing.contains(id));
        self.kept.forget(&missing);
        for container in described.into_values() {
            if !self.fits(&container, &present) {
                continue;
            }
            self.admit(&container);
            if self.candidates.contains_key(&container.id) {
                change.described.push(container);
            }
        }
        let never = |id: &str| !present.contains(id) || self.refused.contains_key(id);
        change.lost = self.replacements.lost(never);
        change.pinned = self.kept.due();
        self.listed_before = true;
        change
    }

    /// Watches a container again that was released or pinned.
    pub(super) fn take_back(&mut self, id: &str) {
        let context = Context { machine: &self.machine, nodes: &self.nodes, wake: &self.wake };
        if let Some(candidate) = self.candidates.get_mut(id) {
            candidate.take_back(context);
        }
    }

    /// Keeps a pin for a container that may be started again. Returns whether it runs again already.
    pub(super) fn keep_pin(&mut self, id: &str, share: Share) -> bool {
        let runs = self.candidates.contains_key(id);
        if !runs {
            self.kept.pin(id, share);
        }
        runs
    }

    /// Containers that were created to replace others.
    pub(super) fn replacements(&mut self) -> &mut Replacements {
        &mut self.replacements
    }

    /// The container `id` is to replace `source` and to continue its `job`. It is not managed until then.
    pub(super) fn hold_back(&mut self, id: String, source: String, job: JobId) {
        if self.adopted.contains(&source) {
            self.adopted.insert(id.clone());
        }
        self.replacements.hold_back(id, source, job);
    }

    /// Takes in a watched container's new description; returns the events for the decision engine.
    pub(super) fn described(&mut self, container: &Container) -> Vec<Event> {
        let context = Context { machine: &self.machine, nodes: &self.nodes, wake: &self.wake };
        let candidate = self.candidates.get_mut(&container.id);
        candidate.map(|one| one.described(container, context)).unwrap_or_default()
    }

    fn context(&self) -> Context<'_> {
        Context { machine: &self.machine, nodes: &self.nodes, wake: &self.wake }
    }

    /// Requests a report from every endpoint now.
    pub(super) fn ask_all(&self) {
        self.candidates.values().for_each(WatchedContainer::ask);
    }

    /// Ends the connections to all endpoints, at the end of a run.
    pub(super) fn stop_asking(&mut self) {
        self.candidates.values_mut().for_each(WatchedContainer::stop_asking);
    }

    /// Whether every endpoint has answered that request or failed to.
    pub(super) fn has_answered(&self) -> bool {
        self.candidates.values().all(WatchedContainer::has_answered)
    }

    /// Samples every container; with `whole`, also renews the figures.
    pub(super) fn sample(
        &mut self,
        clock: &Clock,
        whole: bool,
    ) -> (Vec<Observation>, Vec<SampleJob>) {
        let mut seen = Vec::new();
        let mut samples = Vec::new();
        for candidate in self.candidates.values_mut() {
            let (saw, sample) = candidate.sample(&self.runtime, &self.machine, clock, whole);
            seen.extend(saw);
            samples.extend(sample);
        }
        (seen, samples)
    }
}
