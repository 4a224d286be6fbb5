//! Docker, the first container engine.

pub(crate) mod container;
mod containerized_run;
mod replacement_spec;
mod transport;

use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, ContainerStatsResponse, ContainerSummary,
    ContainerSummaryStateEnum, ContainerUpdateBody, HealthConfig, HostConfig,
    NetworkConnectRequest, RestartPolicy, RestartPolicyNameEnum,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, EventsOptionsBuilder, InspectContainerOptions,
    ListContainersOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    RenameContainerOptionsBuilder, StartContainerOptions, StatsOptionsBuilder,
    StopContainerOptionsBuilder,
};
use futures_util::StreamExt;
use paceline_api::labels::ENABLE;
use paceline_cgroup::Used;

use super::{
    Change, Container, ContainerEvent, CopyError, Description, Listed, Runtime, RuntimeError, Spec,
    Stage, Successor,
};
pub use containerized_run::ContainerizedRun;
use replacement_spec::ReplacementSpec;

/// The client of Docker's engine.
pub type Client = bollard::Docker;

/// One Docker engine.
#[derive(Clone, Debug)]
pub struct Docker {
    client: Client,
}

impl From<Client> for Docker {
    fn from(client: Client) -> Self {
        Self { client }
    }
}

impl From<Client> for Runtime {
    fn from(client: Client) -> Self {
        Self::Docker(client.into())
    }
}

impl From<Error> for RuntimeError {
    fn from(error: Error) -> Self {
        if has_status(&error, 404) {
            Self::Missing(error.into())
        } else {
            Self::Failed(error.into())
        }
    }
}

fn has_status(error: &Error, status: u16) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code, .. } if *status_code == status)
}

/// The error of a container's description. Docker answers it with status 400 if several ids begin with the
/// name. For any other request, that status means something else.
fn undescribed(error: Error) -> RuntimeError {
    if has_status(&error, 400) { RuntimeError::Ambiguous(error.into()) } else { error.into() }
}

/// Turns the error of a missing object into `None`.
fn found<T>(answer: Result<T, RuntimeError>) -> Result<Option<T>, RuntimeError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Docker {
    /// The engine at an address such as `unix:///var/run/docker.sock`. Does not connect yet.
    pub fn at(host: &str) -> Result<Self, RuntimeError> {
        Ok(transport::client(host)?.into())
    }

    /// Connects to the engine and negotiates the version of its API, as it may be older than this
    /// program.
    pub async fn connect(host: &str) -> Result<Self, RuntimeError> {
        let client = transport::client(host)?;
        Ok(client.negotiate_version().await?.into())
    }

    /// Whether an engine can be at this address: `unix://PATH` or `tcp://HOST:PORT`.
    pub fn is_address(host: &str) -> bool {
        transport::is_address(host)
    }

    /// The client, for functions that only Docker has.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(super) async fn describe(&self) -> Result<Description, RuntimeError> {
        let info = self.client.info().await?;
        Ok(Description {
            id: info.id,
            data: info.docker_root_dir,
            name: info.name,
            cpus: info.ncpu,
            memory: info.mem_total,
            system: info.operating_system,
            kernel: info.kernel_version,
            version: info.server_version,
            cgroup_driver: info.cgroup_driver.map(|driver| driver.to_string()),
            time: info.system_time,
        })
    }

    pub(super) async fn opted_in(&self, labels: &[String]) -> Result<Vec<String>, RuntimeError> {
        let mut wanted = vec![format!("{ENABLE}=true")];
        wanted.extend_from_slice(labels);
        let filters = std::iter::once(("label".to_owned(), wanted)).collect();
        let options = ListContainersOptionsBuilder::default().filters(&filters).build();
        let listed = self.client.list_containers(Some(options)).await?;
        Ok(listed.into_iter().filter_map(|container| container.id).collect())
    }

    pub(super) async fn list(&self, labels: &[&str]) -> Result<Vec<Listed>, RuntimeError> {
        let filters = [("label", labels.to_vec())].into_iter().collect();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = self.client.list_containers(Some(options)).await?;
        Ok(listed.into_iter().filter_map(in_list).collect())
    }

    pub(super) async fn inspect(&self, name: &str) -> Result<Option<Container>, RuntimeError> {
        Ok(self.described(name).await?.map(Container::from))
    }

    async fn described(
        &self,
        name: &str,
    ) -> Result<Option<ContainerInspectResponse>, RuntimeError> {
        // Another text would be another path of the engine's API.
        if !may_name(name) {
            return Ok(None);
        }
        let answer = self.client.inspect_container(name, None::<InspectContainerOptions>).await;
        found(answer.map_err(undescribed))
    }

    pub(super) async fn image(&self, name: &str) -> Result<Option<String>, RuntimeError> {
        let answer = self.client.inspect_image(name).await;
        Ok(found(answer.map_err(RuntimeError::from))?.and_then(|image| image.id))
    }

    /// Follows starts, ends and renames. `update` events are left out: our own writes cause them.
    pub(super) async fn follow(&self, mut on_event: impl FnMut(ContainerEvent)) {
        let filters = [
            ("type".to_owned(), vec!["container".to_owned()]),
            ("event".to_owned(), ["start", "die", "rename"].map(str::to_owned).to_vec()),
        ];
        let filters = filters.into_iter().collect();
        let options = EventsOptionsBuilder::default().filters(&filters).build();
        let mut events = std::pin::pin!(self.client.events(Some(options)));
        while let Some(Ok(event)) = events.next().await {
            let Some(actor) = event.actor else { continue };
            let Some(id) = actor.id else { continue };
            let labels = actor.attributes.unwrap_or_default().into_iter().collect();
            on_event(ContainerEvent { id, labels });
        }
    }

    pub(super) async fn was_removed(
        &self,
        id: &str,
        since: f64,
        now: f64,
    ) -> Result<bool, RuntimeError> {
        let filters = [("type", "container"), ("event", "destroy"), ("container", id)];
        let filters = filters.map(|(key, value)| (key.to_owned(), vec![value.to_owned()]));
        let filters = filters.into_iter().collect();
        let (since, until) = (format!("{:.0}", since.floor()), format!("{now:.9}"));
        let options = EventsOptionsBuilder::default().filters(&filters).since(&since).until(&until);
        let mut events = std::pin::pin!(self.client.events(Some(options.build())));
        match events.next().await {
            Some(event) => {
                let actor = event?.actor.and_then(|actor| actor.id);
                Ok(actor.as_deref() == Some(id))
            }
            None => Ok(false),
        }
    }

    pub(super) async fn follow_use(&self, id: &str, mut on_event: impl FnMut(Used)) {
        let options = StatsOptionsBuilder::default().stream(true).build();
        let mut stream = std::pin::pin!(self.client.stats(id, Some(options)));
        while let Some(Ok(stats)) = stream.next().await {
            if let Some(used) = used(&stats) {
                on_event(used);
            }
        }
    }

    pub(super) async fn update(&self, id: &str, change: Change) -> Result<(), RuntimeError> {
        let empty = ContainerUpdateBody::default();
        let body = match change {
            Change::NanoCpus(nano) => ContainerUpdateBody { nano_cpus: Some(nano), ..empty },
            Change::CpuQuota(quota) => ContainerUpdateBody { cpu_quota: Some(quota), ..empty },
            Change::CpuShares(weight) => ContainerUpdateBody { cpu_shares: Some(weight), ..empty },
            Change::Cpus(cpus) => ContainerUpdateBody { cpuset_cpus: Some(cpus), ..empty },
            Change::StaysEnded => {
                let name = Some(RestartPolicyNameEnum::NO);
                let never = RestartPolicy { name, ..RestartPolicy::default() };
                ContainerUpdateBody { restart_policy: Some(never), ..empty }
            }
        };
        Ok(self.client.update_container(id, body).await?)
    }

    pub(super) async fn create(&self, spec: Spec) -> Result<String, RuntimeError> {
        let options = CreateContainerOptionsBuilder::default().name(&spec.name).build();
        let body = ContainerCreateBody {
            image: Some(spec.image),
            cmd: (!spec.command.is_empty()).then_some(spec.command),
            env: Some(spec.env),
            labels: Some(spec.labels.into_iter().collect()),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            host_config: Some(HostConfig {
                binds: (!spec.binds.is_empty()).then_some(spec.binds),
                cpuset_cpus: spec.cpus,
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        Ok(self.client.create_container(Some(options), body).await?.id)
    }

    pub(super) async fn copy(&self, source: &str, copy: &Successor) -> Result<String, CopyError> {
        let failed = |what| move |source| CopyError { what, source };
        let described = self.described(source).await;
        let gone = || RuntimeError::Missing("it does not exist any more".into());
        let described = described.and_then(|found| found.ok_or_else(gone));
        let described = described.map_err(failed("describe the container"))?;
        let ReplacementSpec { body, networks } = replacement_spec::build(described, source, copy);
        let options = CreateContainerOptionsBuilder::default().name(&copy.name).build();
        let made = self.client.create_container(Some(options), body).await;
        let id = made.map_err(|error| failed("create a container")(error.into()))?.id;
        for (network, endpoint) in networks {
            let endpoint_config = Some(endpoint);
            let request = NetworkConnectRequest { container: id.clone(), endpoint_config };
            let joined = self.client.connect_network(&network, request).await;
            let what = "connect the container to its network";
            joined.map_err(|error| failed(what)(error.into()))?;
        }
        Ok(id)
    }

    pub(super) async fn start(&self, name: &str) -> Result<(), RuntimeError> {
        Ok(self.client.start_container(name, None::<StartContainerOptions>).await?)
    }

    pub(super) async fn stop(&self, id: &str, seconds: i32) -> Result<(), RuntimeError> {
        let options = StopContainerOptionsBuilder::default().t(seconds).build();
        Ok(self.client.stop_container(id, Some(options)).await?)
    }

    pub(super) async fn pause(&self, id: &str) -> Result<(), RuntimeError> {
        Ok(self.client.pause_container(id).await?)
    }

    pub(super) async fn resume(&self, id: &str) -> Result<(), RuntimeError> {
        Ok(self.client.unpause_container(id).await?)
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), RuntimeError> {
        let options = RenameContainerOptionsBuilder::default().name(to).build();
        Ok(self.client.rename_container(from, options).await?)
    }

    pub(super) async fn remove(&self, id: &str, volumes: bool) -> Result<(), RuntimeError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(volumes).build();
        Ok(self.client.remove_container(id, Some(options)).await?)
    }

    pub(super) async fn output<E>(
        &self,
        id: &str,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, RuntimeError> {
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).build();
        let mut log = std::pin::pin!(self.client.logs(id, Some(options)));
        while let Some(piece) = log.next().await {
            if let Err(error) = take(piece?.as_ref()) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }
}

fn in_list(container: ContainerSummary) -> Option<Listed> {
    use ContainerSummaryStateEnum::{CREATED, DEAD, EXITED, REMOVING};
    let stage = match container.state {
        Some(EXITED | DEAD | REMOVING) => Stage::Over,
        Some(CREATED) => Stage::Made,
        Some(_) | None => Stage::Runs,
    };
    Some(Listed {
        id: container.id?,
        created: container.created.unwrap_or_default(),
        stage,
        labels: container.labels.unwrap_or_default().into_iter().collect(),
    })
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact below 2^53 ns")]
fn used(stats: &ContainerStatsResponse) -> Option<Used> {
    /// Docker's default period, in seconds: the statistics do not contain the actual one.
    const PERIOD: f64 = 0.1;
    let cpu = stats.cpu_stats.as_ref()?;
    let throttled = cpu.throttling_data.as_ref().and_then(|data| data.throttled_periods);
    Some(Used {
        cpu_seconds: cpu.cpu_usage.as_ref()?.total_usage? as f64 / 1e9,
        throttled_seconds: throttled.unwrap_or(0) as f64 * PERIOD,
        memory: stats.memory_stats.as_ref().and_then(|memory| memory.usage),
    })
}

/// Whether a container can have this name or id.
fn may_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    use super::*;

    const REFUSAL: &str = "HTTP/1.1 400 -\r\nContent-Type: application/json\r\n\
                           Connection: close\r\nContent-Length: 16\r\n\r\n{\"message\":\"no\"}";

    #[tokio::test]
    async fn bad_request_is_ambiguous_only_for_a_description() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let serve = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                drop(stream.read(&mut request).await);
                drop(stream.write_all(REFUSAL.as_bytes()).await);
            }
        };
        let docker = Docker::at(&format!("unix://{}", socket.display())).unwrap();
        let ask = async {
            let described = docker.inspect("a").await;
            assert!(matches!(described, Err(RuntimeError::Ambiguous(_))), "{described:?}");
            for answer in [
                docker.start("a").await,
                docker.update("a", Change::NanoCpus(1)).await,
                docker.image("a").await.map(drop),
            ] {
                assert!(matches!(answer, Err(RuntimeError::Failed(_))), "{answer:?}");
            }
        };
        tokio::select! {
            () = ask => {}
            () = serve => unreachable!("it serves until it is dropped"),
        }
    }
}
