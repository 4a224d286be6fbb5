//! The containers of a bench: made, started, watched and always removed.
//!
//! Their CPU limits are the allocator's business alone: but for the calibration, which no allocator
//! acts in, nothing sets or changes one, so that what is found after a run tells whether the allocator
//! put everything back.
//!
//! A job is known by its labels, not by a container: one that is moved goes on in another, and for a
//! moment it has two. The newest counts.

mod seen;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bollard::Docker;
use bollard::models::{ContainerCreateBody, ContainerSummary, HealthConfig, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use futures_util::StreamExt;

use super::schedule::Job;
use crate::nodes::Node;
pub(crate) use seen::{End, LimitLeft, State};
use seen::{Stage, newest};

/// Tells the containers of one bench from all others.
pub(crate) const LABEL: &str = "paceline.bench";

/// Tells the containers of one job from those of others.
const JOB_LABEL: &str = "paceline.job";

/// How long a job that is stopped may take to end by itself, in seconds: it finishes its batch.
const GRACE: i32 = 10;

/// The containers that one bench makes on an engine.
#[derive(Clone, Debug)]
pub(crate) struct Containers {
    docker: Docker,
    /// Names the bench: part of each container's name and its label.
    run: String,
    /// An absolute path that every job sees as /data.
    data: Option<String>,
    nodes: Vec<Node>,
}

/// What a container is made with, beside what the schedule says of its job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// For `{steps}`.
    pub(crate) steps: u64,
    pub(crate) labels: BTreeMap<String, String>,
    /// The folder that the job finds at its `checkpoint`.
    pub(crate) checkpoints: Option<PathBuf>,
}

impl Containers {
    pub(crate) fn new(docker: Docker, run: String, data: Option<String>, nodes: Vec<Node>) -> Self {
        Self { docker, run, data, nodes }
    }

    /// The label of these containers, as `name=value`.
    pub(crate) fn label(&self) -> String {
        format!("{LABEL}={}", self.run)
    }

    fn name(&self, job: &Job) -> String {
        format!("paceline-bench-{}-{}", self.run, job.name)
    }

    /// Makes the job's container, and does not start it.
    pub(crate) async fn create(&self, job: &Job, extra: &Extra) -> anyhow::Result<()> {
        let options = CreateContainerOptionsBuilder::new().name(&self.name(job)).build();
        let made = self.docker.create_container(Some(options), self.body(job, extra)).await;
        made.map(drop).with_context(|| format!("job {}: no container can be made", job.name))
    }

    fn body(&self, job: &Job, extra: &Extra) -> ContainerCreateBody {
        let mut labels = job.labels.clone();
        labels.extend(extra.labels.clone());
        labels.insert("paceline.enable".to_owned(), "true".to_owned());
        labels.insert(JOB_LABEL.to_owned(), job.name.clone());
        labels.insert(LABEL.to_owned(), self.run.clone());
        let mut env: Vec<String> =
            job.env.iter().map(|(name, is)| format!("{name}={is}")).collect();
        let mut binds = Vec::new();
        if let Some(data) = &self.data {
            env.push("PACELINE_DATA=/data".to_owned());
            binds.push(format!("{data}:/data:ro"));
        }
        if let (Some(inside), Some(folder)) = (&job.checkpoint, &extra.checkpoints) {
            labels.insert("paceline.checkpoint".to_owned(), inside.clone());
            env.push(format!("PACELINE_CHECKPOINTS={inside}"));
            binds.push(format!("{}:{inside}", folder.display()));
        }
        let node = self.nodes.iter().find(|node| Some(&node.name) == job.node.as_ref());
        let command = job.command_for(extra.steps);
        ContainerCreateBody {
            image: Some(job.image.clone()),
            cmd: (!command.is_empty()).then_some(command),
            env: Some(env),
            labels: Some(labels.into_iter().collect()),
            // An image's own check begins a process in the job every few seconds, whose time would count as
            // the job's and the engine's. Nobody waits for its answer.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            host_config: Some(HostConfig {
                binds: (!binds.is_empty()).then_some(binds),
                cpuset_cpus: node.map(|node| node.cpus.to_string()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        }
    }

    /// Starts the job's container.
    pub(crate) async fn start(&self, job: &Job) -> anyhow::Result<()> {
        let started = self.docker.start_container(&self.name(job), None).await;
        started.with_context(|| format!("job {}: its container does not start", job.name))
    }

    /// Asks every container of the bench to end, all at once, and waits until they have.
    pub(crate) async fn stop_all(&self) -> anyhow::Result<()> {
        let found = self.found().await?;
        let running = found.values().flatten().filter(|found| found.stage() == Stage::Runs);
        let stops = running.map(|found| async move {
            let options = StopContainerOptionsBuilder::new().t(GRACE).build();
            let stopped = self.docker.stop_container(&found.id, Some(options)).await;
            stopped.with_context(|| format!("container {} does not stop", found.id))
        });
        futures_util::future::try_join_all(stops).await.map(drop)
    }

    async fn list(&self) -> anyhow::Result<Vec<ContainerSummary>> {
        let filters = [("label", vec![self.label()])].into_iter().collect();
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let found = self.docker.list_containers(Some(options)).await;
        found.with_context(|| format!("cannot list containers {}", self.label()))
    }

    /// Writes what each job has printed to a file of `folder` that is called by the job.
    pub(crate) async fn save_logs(&self, folder: &Path) -> anyhow::Result<()> {
        for (job, found) in self.found().await? {
            let Some(found) = newest(&found) else { continue };
            let path = folder.join(format!("{job}.log"));
            let options = LogsOptionsBuilder::new().stdout(true).stderr(true).build();
            let mut log = self.docker.logs(&found.id, Some(options));
            let mut file =
                File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            while let Some(piece) = log.next().await {
                let piece = piece.with_context(|| format!("job {job}: its log cannot be read"))?;
                file.write_all(piece.as_ref())?;
            }
        }
        Ok(())
    }

    /// Removes every container of the bench, also those that run. Tries each one.
    pub(crate) async fn remove_all(&self) -> anyhow::Result<()> {
        let mut left = Vec::new();
        for id in self.list().await?.into_iter().filter_map(|container| container.id) {
            let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
            if let Err(error) = self.docker.remove_container(&id, Some(options)).await {
                left.push(format!("container {id} cannot be removed: {error}"));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        bail!("containers labelled {} are left: {}", self.label(), left.join("; "))
    }
}
