//! The containers of a bench: created, started, watched and always removed.
//!
//! Only the allocator changes their CPU limits. So the limits found after a run show whether the
//! allocator restored all of them.
//!
//! A job is identified by its labels, not by a container. A moved job continues in another container,
//! and has two for a moment. The newest counts.

mod state;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use paceline_api::nodes::Node;
use paceline_runtime::{Listed, Runtime, Spec, Stage};

use super::schedule::Job;
use state::newest;
pub(crate) use state::{End, LimitLeft, State};

/// The label that identifies the containers of one bench.
pub(crate) const LABEL: &str = "paceline.bench";

/// The label that identifies the containers of one job.
const JOB_LABEL: &str = "paceline.job";

/// Seconds that a stopped job may take to end by itself: it finishes its batch.
const STOP_GRACE: i32 = 10;

/// The containers that one bench creates on a container engine.
#[derive(Clone, Debug)]
pub(crate) struct Containers {
    runtime: Runtime,
    /// Names the bench: part of each container's name and its label.
    run: String,
    /// An absolute path that every job sees as /data.
    data: Option<String>,
    nodes: Vec<Node>,
}

/// What a container gets in addition to the schedule's job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The value of `{steps}`.
    pub(crate) steps: u64,
    pub(crate) labels: BTreeMap<String, String>,
    /// The folder that is mounted at the job's `checkpoint`.
    pub(crate) checkpoints: Option<PathBuf>,
}

impl Containers {
    pub(crate) fn new(
        runtime: Runtime,
        run: String,
        data: Option<String>,
        nodes: Vec<Node>,
    ) -> Self {
        Self { runtime, run, data, nodes }
    }

    /// The label of these containers, as `name=value`.
    pub(crate) fn label(&self) -> String {
        format!("{LABEL}={}", self.run)
    }

    fn name(&self, job: &Job) -> String {
        format!("paceline-bench-{}-{}", self.run, job.name)
    }

    /// Creates the job's container without starting it.
    pub(crate) async fn create(&self, job: &Job, extra: &Extra) -> anyhow::Result<()> {
        let created = self.runtime.create(self.spec(job, extra)).await;
        created
            .map(drop)
            .with_context(|| format!("cannot create the container of job {}", job.name))
    }

    fn spec(&self, job: &Job, extra: &Extra) -> Spec {
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
        Spec {
            name: self.name(job),
            image: job.image.clone(),
            command: job.command_for(extra.steps),
            env,
            labels,
            binds,
            cpus: node.map(|node| node.cpus.to_string()),
        }
    }

    /// Starts the job's container.
    pub(crate) async fn start(&self, job: &Job) -> anyhow::Result<()> {
        let started = self.runtime.start(&self.name(job)).await;
        started.with_context(|| format!("cannot start the container of job {}", job.name))
    }

    /// Stops every container of the bench, all at once, and waits until they have ended.
    pub(crate) async fn stop_all(&self) -> anyhow::Result<()> {
        let found = self.by_job().await?;
        let running = found.values().flatten().filter(|found| found.stage == Stage::Runs);
        let stops = running.map(|found| async move {
            let stopped = self.runtime.stop(&found.id, STOP_GRACE).await;
            stopped.with_context(|| format!("cannot stop container {}", found.id))
        });
        futures_util::future::try_join_all(stops).await.map(drop)
    }

    async fn list(&self) -> anyhow::Result<Vec<Listed>> {
        let found = self.runtime.list(&[self.label().as_str()]).await;
        found.with_context(|| format!("cannot list the containers labelled {}", self.label()))
    }

    /// Writes each job's output to the file `JOB.log` in `folder`.
    pub(crate) async fn save_logs(&self, folder: &Path) -> anyhow::Result<()> {
        for (job, found) in self.by_job().await? {
            let Some(found) = newest(&found) else { continue };
            let path = folder.join(format!("{job}.log"));
            let mut file =
                File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            let read = self.runtime.output(&found.id, |piece| file.write_all(piece)).await;
            read.with_context(|| format!("cannot read the log of job {job}"))??;
        }
        Ok(())
    }

    /// Removes every container of the bench, even running ones. A failure does not stop the others.
    pub(crate) async fn remove_all(&self) -> anyhow::Result<()> {
        let mut left = Vec::new();
        for Listed { id, .. } in self.list().await? {
            if let Err(error) = self.runtime.remove(&id, true).await {
                left.push(format!("cannot remove container {id}: {error}"));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        bail!("some containers labelled {} remain: {}", self.label(), left.join("; "))
    }
}
