//! The Swarm, with the workloads' image on every machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bollard::models::{ContainerCreateBody, HostConfig, ServiceSpec, TaskState};
use bollard::query_parameters::{
    CreateContainerOptions, ImportImageOptions, ListServicesOptions, ListTasksOptions,
    RemoveContainerOptionsBuilder, StartContainerOptions,
};
use bollard::{Docker, body_full};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};
use paceline_system_tests::{AgentFleet, PrivateSwarm, SwarmEngine};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::table::say;

/// Workers of the Swarm.
const WORKERS: usize = 3;

/// What every machine gets: the image and the data.
#[derive(Debug)]
pub(crate) struct Ware {
    /// The image's name.
    pub(crate) image: String,
    /// The folder of training images.
    pub(crate) data: PathBuf,
    archive: Bytes,
}

/// A running Swarm.
#[derive(Debug)]
pub(crate) struct Site {
    swarm: Arc<PrivateSwarm>,
    folder: TempDir,
}

impl Ware {
    /// Takes the image from this machine's engine.
    pub(crate) async fn fetch(image: &str, data: PathBuf) -> anyhow::Result<Self> {
        let docker = Docker::connect_with_defaults()?.negotiate_version().await?;
        let mut archive = BytesMut::new();
        let mut parts = std::pin::pin!(docker.export_image(image));
        while let Some(part) = parts.next().await {
            archive.extend(part.with_context(|| format!("{image}: first `make images`"))?);
        }
        Ok(Self { image: image.to_owned(), data, archive: archive.freeze() })
    }
}

impl Site {
    /// Starts a Swarm whose machines have the image, runs `act` on it, and ends it. With `cpus`, each
    /// machine limits its jobs to this many CPUs.
    pub(crate) async fn with<T>(
        ware: &Ware,
        cpus: Option<f64>,
        act: impl AsyncFnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let site = Self::open(ware, cpus).await?;
        let outcome = act(&site).await;
        site.close().await?;
        outcome
    }

    async fn open(ware: &Ware, cpus: Option<f64>) -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        // The containers run as another user.
        open_to_all(folder.path())?;
        let swarm =
            Arc::new(PrivateSwarm::held(&folder.path().join("swarm"), WORKERS, cpus).await?);
        let site = Self { swarm, folder };
        for engine in site.swarm.engines() {
            let body = body_full(ware.archive.clone());
            let options = ImportImageOptions::default();
            let loaded = engine.docker().import_image(options, body, None);
            if let Err(error) = loaded.try_collect::<Vec<_>>().await {
                site.close().await?;
                return Err(error).context("the image does not load");
            }
        }
        Ok(site)
    }

    /// Its engines, the manager first.
    pub(crate) fn engines(&self) -> &[SwarmEngine] {
        self.swarm.engines()
    }

    /// A folder that all machines share, empty at first.
    pub(crate) fn shared(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(&path)?;
        open_to_all(&path)?;
        Ok(path)
    }

    /// Agents on all machines, which limit nothing.
    pub(crate) fn fleet(&self) -> anyhow::Result<AgentFleet> {
        self.fleet_under(&["none"])
    }

    /// The same, with this policy on each machine; further words are options of the agent.
    pub(crate) fn fleet_under(&self, policy: &[&str]) -> anyhow::Result<AgentFleet> {
        AgentFleet::open_under(policy, self.folder.path().to_owned(), Arc::clone(&self.swarm))
    }

    /// Prints the CPU that two busy loops get on each machine while all machines are busy.
    pub(crate) async fn show_shares(&self, image: &str) -> anyhow::Result<()> {
        let mut busy = Vec::new();
        for engine in self.engines() {
            busy.push(spin(engine.docker(), image).await?);
        }
        sleep(Duration::from_secs(1)).await;
        let used = || self.engines().iter().map(SwarmEngine::used).collect::<Result<Vec<_>, _>>();
        let (before, began) = (used()?, Instant::now());
        sleep(Duration::from_secs(4)).await;
        let (after, seconds) = (used()?, began.elapsed().as_secs_f64());
        for ((engine, before), after) in self.engines().iter().zip(before).zip(after) {
            let cpus = (after - before) / seconds;
            say(&format!("two busy loops on {} get {cpus:.2} CPUs", engine.host))?;
        }
        for (engine, id) in self.engines().iter().zip(busy) {
            let force = RemoveContainerOptionsBuilder::default().force(true).build();
            engine.docker().remove_container(&id, Some(force)).await?;
        }
        Ok(())
    }

    async fn close(self) -> anyhow::Result<()> {
        let swarm = Arc::into_inner(self.swarm).context("the Swarm is still in use")?;
        swarm.clear().await
    }
}

/// Two busy loops in a container.
async fn spin(docker: &Docker, image: &str) -> anyhow::Result<String> {
    let script = "while :; do :; done & while :; do :; done";
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(["sh", "-c", script].map(str::to_owned).to_vec()),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let made = docker.create_container(None::<CreateContainerOptions>, body).await?;
    docker.start_container(&made.id, None::<StartContainerOptions>).await?;
    Ok(made.id)
}

/// Lets every user write to a folder.
fn open_to_all(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))?)
}

/// A task as its engine describes it.
#[derive(Debug)]
pub(crate) struct TaskSeen {
    /// Its service's specification.
    pub(crate) spec: ServiceSpec,
    /// Its state.
    pub(crate) state: TaskState,
    /// What went wrong, if anything did.
    pub(crate) error: String,
}

/// All tasks of all services.
pub(crate) async fn tasks(fleet: &AgentFleet) -> anyhow::Result<Vec<TaskSeen>> {
    let docker = fleet.swarm().manager()?.docker();
    let services = docker.list_services(None::<ListServicesOptions>).await?;
    let tasks = docker.list_tasks(None::<ListTasksOptions>).await?;
    let seen = tasks.into_iter().filter_map(|task| {
        let service = services.iter().find(|service| service.id == task.service_id)?;
        let status = task.status.unwrap_or_default();
        Some(TaskSeen {
            spec: service.spec.clone()?,
            state: status.state?,
            error: status.err.unwrap_or_default(),
        })
    });
    Ok(seen.collect())
}
