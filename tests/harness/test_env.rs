use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};
use futures_util::StreamExt;
use paceline_cgroup::{Cgroup, Quota};
use paceline_runtime::{Container, HostCpu, Runtime};

use crate::printed::printed;
use crate::wait::{WAIT_TIMEOUT, until_within};

/// Concurrent requests to the engine.
const CONCURRENCY: usize = 16;

/// One test's containers and files. [`TestEnv::clear`] removes them, also after a failure.
#[derive(Debug)]
pub struct TestEnv {
    docker: Docker,
    image: String,
    /// The prefix of all names of this test.
    name: String,
    folder: tempfile::TempDir,
}

/// A job to run in a test environment.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Its name, without the test's prefix.
    pub name: &'static str,
    /// The entry point that replaces the toy job's.
    pub entrypoint: Vec<&'static str>,
    /// The toy job's command line.
    pub args: Vec<&'static str>,
    /// Labels besides those that opt it in.
    pub labels: Vec<(&'static str, &'static str)>,
    /// Environment, as `KEY=VALUE`.
    pub env: Vec<String>,
    /// Whether it has not opted in.
    pub stranger: bool,
    /// Limits and groups that it is created with.
    pub host: HostConfig,
}

/// The limits in force for a container, and those that the engine keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The engine's settings.
    pub host: HostCpu,
    /// The quota in the kernel; `None` when the container does not run.
    pub kernel: Option<Quota>,
    /// The CPU weight in the kernel's unit.
    pub weight: Option<u64>,
}

impl Limits {
    /// Fails unless the kernel enforces the same as `before`, and the engine keeps the same or, for
    /// values that were not set, an equivalent on a node with `cpus` billionths of a CPU.
    pub fn ensure_back(&self, before: &Self, cpus: i64) -> anyhow::Result<()> {
        anyhow::ensure!(
            (self.kernel, self.weight) == (before.kernel, before.weight),
            "the kernel had {before:?}, and has {self:?}"
        );
        let plain = |host: HostCpu| HostCpu {
            // The engine cannot unset these two: all CPUs is the same as no limit, and 1024 is the
            // default weight, or 2598 where the engine makes 39 of 100 of that under cgroup v2.
            nano_cpus: if host.nano_cpus >= cpus || host.cpu_quota < 0 {
                0
            } else {
                host.nano_cpus
            },
            cpu_quota: host.cpu_quota.max(0),
            cpu_shares: if matches!(host.cpu_shares, 1024 | 2598) { 0 } else { host.cpu_shares },
            ..host
        };
        anyhow::ensure!(
            plain(self.host) == plain(before.host),
            "the engine kept {before:?}, and keeps {self:?}"
        );
        Ok(())
    }
}

impl TestEnv {
    /// An empty environment named after the test.
    pub fn new(docker: Docker, image: &str, test: &str) -> anyhow::Result<Self> {
        let name = format!("paceline-test-{}-{test}", std::process::id());
        Ok(Self { docker, image: image.to_owned(), name, folder: tempfile::tempdir()? })
    }

    /// The engine.
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// The image of the toy job.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// A folder for the test's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in that folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The bind mount of that folder at `/files` in a container.
    pub fn bind(&self) -> String {
        format!("{}:/files", self.folder().display())
    }

    /// The label of all of this test's containers, as `KEY=VALUE`.
    pub fn label(&self) -> String {
        format!("paceline.test={}", self.name)
    }

    /// A container's full name.
    pub fn name(&self, job: &str) -> String {
        format!("{}-{job}", self.name)
    }

    /// Starts a job. Returns its container's full name.
    pub async fn start(&self, job: Job) -> anyhow::Result<String> {
        let name = self.name(job.name);
        Box::pin(self.make(&name, job)).await?;
        self.docker.start_container(&name, None::<StartContainerOptions>).await?;
        Ok(name)
    }

    /// Starts a job of one kind for each of `names`. All are created before the first is started, so
    /// that they start as fast as the engine can.
    pub async fn start_at_once(&self, names: &[String], job: &Job) -> anyhow::Result<()> {
        let made = names.iter().map(|name| self.make(name, job.clone()));
        at_once(made).await?;
        let started = names
            .iter()
            .map(|name| self.docker.start_container(name, None::<StartContainerOptions>));
        at_once(started).await
    }

    /// Creates a container of this name.
    async fn make(&self, name: &str, job: Job) -> anyhow::Result<()> {
        let mut labels: BTreeMap<String, String> = job
            .labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect();
        labels.insert("paceline.test".to_owned(), self.name.clone());
        if !job.stranger {
            labels.insert("paceline.enable".to_owned(), "true".to_owned());
            labels.entry("paceline.job".to_owned()).or_insert_with(|| job.name.to_owned());
        }
        let mut env = job.env;
        // Tests compare the logs of jobs line by line.
        env.push("PACELINE_HIDE_ADDRESS=1".to_owned());
        let body = ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: (!job.entrypoint.is_empty()).then(|| strings(&job.entrypoint)),
            cmd: Some(strings(&job.args)),
            env: Some(env),
            labels: Some(labels.into_iter().collect()),
            host_config: Some(job.host),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        self.docker.create_container(Some(options), body).await?;
        Ok(())
    }

    /// The engine's description of one of this test's containers.
    pub async fn inspect(&self, name: &str) -> anyhow::Result<Container> {
        let runtime = Runtime::from(self.docker.clone());
        runtime.inspect(name).await?.context("the container is gone")
    }

    /// Its limits.
    pub async fn limits(&self, name: &str) -> anyhow::Result<Limits> {
        let container = self.inspect(name).await?;
        let cgroup =
            container.pid.map(|pid| Cgroup::for_process(Path::new("/proc"), pid)).transpose()?;
        Ok(Limits {
            host: container.host_config,
            kernel: cgroup.as_ref().map(Cgroup::quota).transpose()?,
            weight: cgroup.as_ref().map(Cgroup::weight).transpose()?,
        })
    }

    /// Whether it runs.
    pub async fn runs(&self, name: &str) -> anyhow::Result<bool> {
        let described =
            self.docker.inspect_container(name, None::<InspectContainerOptions>).await?;
        Ok(described.state.and_then(|state| state.running).unwrap_or(false))
    }

    /// Waits for its end; returns its exit code. It waits longer than for other things, since the job
    /// has to compute until then.
    pub async fn ended(&self, name: &str) -> anyhow::Result<i64> {
        until_within(WAIT_TIMEOUT * 3, "the container ends", || async {
            let described =
                self.docker.inspect_container(name, None::<InspectContainerOptions>).await?;
            let state = described.state.unwrap_or_default();
            Ok(state.exit_code.filter(|_| state.running == Some(false)))
        })
        .await
    }

    /// Everything that it has printed.
    pub async fn log(&self, name: &str) -> anyhow::Result<String> {
        printed(&self.docker, name).await
    }

    /// The ids of all of this test's containers, running or not.
    pub async fn ids(&self) -> anyhow::Result<Vec<String>> {
        let filters = [("label".to_owned(), vec![self.label()])].into();
        let options = bollard::query_parameters::ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let containers = self.docker.list_containers(Some(options)).await?;
        Ok(containers.into_iter().filter_map(|container| container.id).collect())
    }

    /// Removes one of this test's containers.
    pub async fn remove(&self, name: &str) -> anyhow::Result<()> {
        let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        Ok(self.docker.remove_container(name, Some(force)).await?)
    }

    /// Removes all of this test's containers.
    pub async fn clear(&self) -> anyhow::Result<()> {
        at_once(self.ids().await?.into_iter().map(|id| async move {
            let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            self.docker.remove_container(&id, Some(force)).await
        }))
        .await
    }
}

/// Runs all of these, some concurrently; returns the first error.
async fn at_once<F, E>(works: impl Iterator<Item = F>) -> anyhow::Result<()>
where
    F: Future<Output = Result<(), E>>,
    anyhow::Error: From<E>,
{
    let done = futures_util::stream::iter(works).buffer_unordered(CONCURRENCY);
    let done: Vec<Result<(), E>> = done.collect().await;
    done.into_iter().try_for_each(|one| Ok(one?))
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
