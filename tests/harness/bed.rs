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
use paceline_allocator::observe::cgroup::{Cgroup, MemoryLimit, Quota};
use paceline_allocator::observe::container::{self, Container, HostCpu, HostMemory};

use crate::printed::printed;
use crate::wait::{PATIENCE, until_within};

/// The engine is asked for so many things at once.
const AT_ONCE: usize = 16;

/// One test's containers and files. Whatever comes of the test, [`Bed::clear`] removes them.
#[derive(Debug)]
pub struct Bed {
    docker: Docker,
    image: String,
    /// What all names of this test begin with.
    name: String,
    folder: tempfile::TempDir,
}

/// A job to be put into a bed.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Its name, without what the bed puts before it.
    pub name: &'static str,
    /// What runs instead of the toy job, before its command line.
    pub entrypoint: Vec<&'static str>,
    /// The toy job's command line.
    pub args: Vec<&'static str>,
    /// Labels beside those that opt it in.
    pub labels: Vec<(&'static str, &'static str)>,
    /// Environment, as `KEY=VALUE`.
    pub env: Vec<String>,
    /// Whether it does not opt in.
    pub stranger: bool,
    /// Limits and groups that it is made with.
    pub host: HostConfig,
}

/// What is in force for a container, and what the engine keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// What the engine keeps.
    pub host: HostCpu,
    /// The memory limit that it keeps.
    pub host_memory: HostMemory,
    /// What the kernel enforces; `None` when the container does not run.
    pub kernel: Option<Quota>,
    /// The CPU weight in the kernel's measure.
    pub weight: Option<u64>,
    /// The kernel's memory limit.
    pub memory: Option<MemoryLimit>,
}

impl Limits {
    /// Fails unless the kernel enforces what it did `before`, and the engine keeps the same or, of
    /// what was not set, its equivalent on a node with `cpus` billionths of a CPU.
    pub fn ensure_back(&self, before: &Self, cpus: i64) -> anyhow::Result<()> {
        anyhow::ensure!(
            (self.kernel, self.weight, self.memory)
                == (before.kernel, before.weight, before.memory),
            "the kernel had {before:?}, and has {self:?}"
        );
        let plain = |host: HostCpu| HostCpu {
            // Neither can be taken back: all CPUs come to no limit, and 1024 is the default.
            nano_cpus: if host.nano_cpus >= cpus || host.cpu_quota < 0 {
                0
            } else {
                host.nano_cpus
            },
            cpu_quota: host.cpu_quota.max(0),
            cpu_shares: if host.cpu_shares == 1024 { 0 } else { host.cpu_shares },
            ..host
        };
        anyhow::ensure!(
            plain(self.host) == plain(before.host) && self.host_memory == before.host_memory,
            "the engine kept {before:?}, and keeps {self:?}"
        );
        Ok(())
    }
}

impl Bed {
    /// An empty bed called after the test.
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

    /// That folder as a container has it at `/bed`, in the engine's words.
    pub fn bind(&self) -> String {
        format!("{}:/bed", self.folder().display())
    }

    /// The label that all of this bed's containers have, as `KEY=VALUE`.
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

    /// Starts as many jobs of one kind as there are `names`, all of which are made before the first
    /// begins: then they come as fast as the engine can start them.
    pub async fn start_at_once(&self, names: &[String], job: &Job) -> anyhow::Result<()> {
        let made = names.iter().map(|name| self.make(name, job.clone()));
        at_once(made).await?;
        let started = names
            .iter()
            .map(|name| self.docker.start_container(name, None::<StartContainerOptions>));
        at_once(started).await
    }

    /// Makes a container of this name.
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
        let body = ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: (!job.entrypoint.is_empty()).then(|| strings(&job.entrypoint)),
            cmd: Some(strings(&job.args)),
            env: Some(job.env),
            labels: Some(labels.into_iter().collect()),
            host_config: Some(job.host),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        self.docker.create_container(Some(options), body).await?;
        Ok(())
    }

    /// What the engine says of a container of this bed.
    pub async fn inspect(&self, name: &str) -> anyhow::Result<Container> {
        container::inspect(&self.docker, name).await?.context("the container is gone")
    }

    /// Its limits.
    pub async fn limits(&self, name: &str) -> anyhow::Result<Limits> {
        let container = self.inspect(name).await?;
        let cgroup = container.pid.map(|pid| Cgroup::of(Path::new("/proc"), pid)).transpose()?;
        Ok(Limits {
            host: container.host_config,
            host_memory: container.host_memory,
            kernel: cgroup.as_ref().map(Cgroup::quota).transpose()?,
            weight: cgroup.as_ref().map(Cgroup::weight).transpose()?,
            memory: cgroup.as_ref().map(Cgroup::memory_limit).transpose()?,
        })
    }

    /// Whether it runs.
    pub async fn runs(&self, name: &str) -> anyhow::Result<bool> {
        let described =
            self.docker.inspect_container(name, None::<InspectContainerOptions>).await?;
        Ok(described.state.and_then(|state| state.running).unwrap_or(false))
    }

    /// Waits for its end, longer than for other things: what is to be computed until then takes as
    /// long as the machine makes it. Its exit code.
    pub async fn ended(&self, name: &str) -> anyhow::Result<i64> {
        until_within(PATIENCE * 3, "the container ends", || async {
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

    /// The ids of all containers of this bed, running or not.
    pub async fn ids(&self) -> anyhow::Result<Vec<String>> {
        let filters = [("label".to_owned(), vec![self.label()])].into();
        let options = bollard::query_parameters::ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let containers = self.docker.list_containers(Some(options)).await?;
        Ok(containers.into_iter().filter_map(|container| container.id).collect())
    }

    /// Removes every container of this bed.
    pub async fn clear(&self) -> anyhow::Result<()> {
        at_once(self.ids().await?.into_iter().map(|id| async move {
            let force = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            self.docker.remove_container(&id, Some(force)).await
        }))
        .await
    }
}

/// Does all of this, some of it at a time; the first error is that of all.
async fn at_once<F, E>(works: impl Iterator<Item = F>) -> anyhow::Result<()>
where
    F: Future<Output = Result<(), E>>,
    anyhow::Error: From<E>,
{
    let done = futures_util::stream::iter(works).buffer_unordered(AT_ONCE);
    let done: Vec<Result<(), E>> = done.collect().await;
    done.into_iter().try_for_each(|one| Ok(one?))
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
