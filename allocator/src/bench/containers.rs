//! The containers of a bench: made, started, watched and always removed.
//!
//! Their CPU limits are the allocator's business alone: nothing here sets or changes one, so that
//! what is found after a run tells whether the allocator put everything back.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use bollard::Docker;
use bollard::models::{ContainerCreateBody, ContainerInspectResponse, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::schedule::Job;
use super::stamp;

/// Tells the containers of one bench from all others.
pub(crate) const LABEL: &str = "paceline.bench";

/// The containers that one bench makes on an engine.
#[derive(Clone, Debug)]
pub(crate) struct Containers {
    docker: Docker,
    /// Names the bench: part of each container's name and its label.
    run: String,
    /// An absolute path that every job sees as /data.
    data: Option<String>,
}

/// How far a container is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    /// Not started yet.
    Waiting,
    /// Started and not ended.
    Running,
    /// Ended.
    Ended(End),
}

/// A container's end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    /// When, in Unix seconds.
    pub(crate) at: f64,
    /// 0 is success.
    pub(crate) exit_code: i64,
    /// Whether it was ended for want of memory.
    pub(crate) out_of_memory: bool,
}

/// A container that an allocator left with a CPU limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LimitLeft {
    /// The job.
    pub(crate) job: String,
    /// The engine's NanoCpus; 0 is none.
    pub(crate) nano_cpus: i64,
    /// The engine's CpuQuota in microseconds; 0 and -1 are none.
    pub(crate) cpu_quota: i64,
}

impl Containers {
    pub(crate) fn new(docker: Docker, run: String, data: Option<String>) -> Self {
        Self { docker, run, data }
    }

    /// The label of these containers, as `name=value`.
    pub(crate) fn label(&self) -> String {
        format!("{LABEL}={}", self.run)
    }

    fn name(&self, job: &Job) -> String {
        format!("paceline-bench-{}-{}", self.run, job.name)
    }

    /// Fails, with what to do, unless the engine has the job's image.
    pub(crate) async fn check_image(&self, job: &Job) -> anyhow::Result<()> {
        self.docker.inspect_image(&job.image).await.map(drop).with_context(|| {
            format!("job {}: build or pull the image {} first", job.name, job.image)
        })
    }

    /// Makes the job's container with `steps` steps, and does not start it.
    pub(crate) async fn create(&self, job: &Job, steps: u64) -> anyhow::Result<()> {
        let mut labels = job.labels.clone();
        labels.insert("paceline.enable".to_owned(), "true".to_owned());
        labels.insert("paceline.job".to_owned(), job.name.clone());
        labels.insert(LABEL.to_owned(), self.run.clone());
        let mut env: Vec<String> =
            job.env.iter().map(|(name, is)| format!("{name}={is}")).collect();
        env.extend(self.data.as_ref().map(|_| "PACELINE_DATA=/data".to_owned()));
        let command = job.command_for(steps);
        let body = ContainerCreateBody {
            image: Some(job.image.clone()),
            cmd: (!command.is_empty()).then_some(command),
            env: Some(env),
            labels: Some(labels.into_iter().collect()),
            host_config: Some(HostConfig {
                binds: self.data.as_ref().map(|data| vec![format!("{data}:/data:ro")]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::new().name(&self.name(job)).build();
        let made = self.docker.create_container(Some(options), body).await;
        made.map(drop).with_context(|| format!("job {}: no container can be made", job.name))
    }

    /// Starts the job's container.
    pub(crate) async fn start(&self, job: &Job) -> anyhow::Result<()> {
        let started = self.docker.start_container(&self.name(job), None).await;
        started.with_context(|| format!("job {}: its container does not start", job.name))
    }

    /// Stops and removes the job's container.
    pub(crate) async fn end(&self, job: &Job) -> anyhow::Result<()> {
        let name = self.name(job);
        let soon = StopContainerOptionsBuilder::new().t(2).build();
        let stopped = self.docker.stop_container(&name, Some(soon)).await;
        stopped.with_context(|| format!("job {}: its container does not stop", job.name))?;
        self.remove(&name).await
    }

    /// How far the job's container is.
    pub(crate) async fn state(&self, job: &Job) -> anyhow::Result<State> {
        let state = self.inspect(job).await?.state.unwrap_or_default();
        let known = |time: Option<String>| time.as_deref().and_then(stamp::parse);
        if state.running == Some(true) {
            return Ok(State::Running);
        }
        let (Some(_), Some(at)) = (known(state.started_at), known(state.finished_at)) else {
            return Ok(State::Waiting);
        };
        let exit_code = state.exit_code.context("the engine does not tell an exit code")?;
        Ok(State::Ended(End { at, exit_code, out_of_memory: state.oom_killed == Some(true) }))
    }

    /// The limit that the job's container was left with, if it was, on a machine of `cpus` CPUs.
    pub(crate) async fn limit_left(
        &self,
        job: &Job,
        cpus: i64,
    ) -> anyhow::Result<Option<LimitLeft>> {
        let host = self.inspect(job).await?.host_config.unwrap_or_default();
        Ok(limit_left(&job.name, cpus, host.nano_cpus.unwrap_or(0), host.cpu_quota.unwrap_or(0)))
    }

    async fn inspect(&self, job: &Job) -> anyhow::Result<ContainerInspectResponse> {
        let found = self.docker.inspect_container(&self.name(job), None).await;
        found.with_context(|| format!("job {}: its container cannot be inspected", job.name))
    }

    /// Writes what the job has printed to `path`.
    pub(crate) async fn save_log(&self, job: &Job, path: &Path) -> anyhow::Result<()> {
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).build();
        let mut log = self.docker.logs(&self.name(job), Some(options));
        let mut file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        while let Some(piece) = log.next().await {
            let piece =
                piece.with_context(|| format!("job {}: its log cannot be read", job.name))?;
            file.write_all(piece.as_ref())?;
        }
        Ok(())
    }

    /// Removes every container of the bench, also those that run. Tries each one.
    pub(crate) async fn remove_all(&self) -> anyhow::Result<()> {
        let filters = [("label", vec![self.label()])].into_iter().collect();
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let found = self.docker.list_containers(Some(options)).await;
        let mut left = Vec::new();
        for container in
            found.with_context(|| format!("cannot list containers {}", self.label()))?
        {
            let Some(id) = container.id else { continue };
            if let Err(error) = self.remove(&id).await {
                left.push(format!("{error:#}"));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        bail!("containers labelled {} are left: {}", self.label(), left.join("; "))
    }

    async fn remove(&self, name: &str) -> anyhow::Result<()> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let removed = self.docker.remove_container(name, Some(options)).await;
        removed.with_context(|| format!("container {name} cannot be removed"))
    }
}

/// NanoCpus cannot be taken from a container again, so all CPUs of the machine are no limit.
fn limit_left(job: &str, cpus: i64, nano_cpus: i64, cpu_quota: i64) -> Option<LimitLeft> {
    let back = matches!(cpu_quota, 0 | -1)
        && (nano_cpus == 0 || nano_cpus == cpus.saturating_mul(1_000_000_000));
    (!back).then(|| LimitLeft { job: job.to_owned(), nano_cpus, cpu_quota })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_and_no_quota_are_no_limit() {
        assert_eq!(limit_left("vae", 2, 0, 0), None);
        assert_eq!(limit_left("vae", 2, 2_000_000_000, -1), None);
        assert!(limit_left("vae", 4, 2_000_000_000, 0).is_some());
        assert!(limit_left("vae", 2, 0, 50_000).is_some());
    }
}
