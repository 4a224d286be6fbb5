//! The container runtimes of Kubernetes nodes, by CRI: containerd, and CRI-O by the same calls.
//!
//! The socket of the runtime is enough: it has the labels and annotations of pods, the first process
//! of each container and its limits, and it changes limits. The API server of Kubernetes is never
//! asked. A pod opts in by its label `paceline.dev/enable=true`; `choose` finds its job's container,
//! and `describe` what bounds its limit.
//!
//! What only the kubelet may do is refused: to create, start, stop, pause or remove a container. NRI,
//! containerd's other interface, is not used: its updates can block those of CRI.

mod choose;
mod describe;
mod events;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fake;
mod grpc;
mod machine;
mod proto;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use paceline_api::labels::{self, Labels, POD_ENABLE};
use paceline_api::plain;
use paceline_cgroup::Used;
use tracing::warn;

use super::{Change, Container, ContainerEvent, Description, Listed, RuntimeError, Stage};
use describe::Info;
use grpc::Channel;
use proto::{ContainerState, PodSandbox, PodSandboxStatus};
use waiting::Waiting;

/// The most pods with one name that an error names.
const MAX_NAMED: usize = 5;
/// The least characters of an id's beginning that is looked for.
const MIN_ID: usize = 6;

/// One runtime with a CRI socket.
#[derive(Clone, Debug)]
pub struct Cri {
    channel: Channel,
    /// The machine's `/proc`.
    proc: PathBuf,
    waiting: Waiting,
}

impl Cri {
    /// The runtime at an address such as `unix:///run/containerd/containerd.sock`, or at a path. Does not
    /// connect yet. The error says what is wrong with the address.
    pub fn at(address: &str, proc: &Path) -> Result<Self, InvalidAddress> {
        let path = address.strip_prefix("unix://").unwrap_or(address);
        if !path.starts_with('/') {
            return Err(InvalidAddress(address.to_owned()));
        }
        let (channel, waiting) = (Channel::new(Path::new(path)), Waiting::default());
        Ok(Self { channel, proc: proc.to_owned(), waiting })
    }

    pub(super) async fn describe(&self) -> Result<Description, RuntimeError> {
        let version: proto::VersionResponse =
            self.channel.call("Version", &proto::Empty {}).await?;
        let asked = proto::StatusRequest { verbose: true };
        let status: proto::StatusResponse = self.channel.call("Status", &asked).await?;
        let data = machine::data(status.info.get("config").map(String::as_str));
        let config = self.channel.call("RuntimeConfig", &proto::Empty {}).await;
        // Runtimes before CRI of Kubernetes 1.28 do not have this call.
        let config: Option<proto::RuntimeConfigResponse> = config.ok();
        let driver =
            config.and_then(|config| config.linux).map(|linux| match linux.cgroup_driver {
                0 => "systemd".to_owned(),
                _ => "cgroupfs".to_owned(),
            });
        let driver = driver.or_else(|| machine::driver(status.info.get("config")?));
        Ok(Description {
            id: Some(machine::id(&version.runtime_name, &data)),
            data: Some(data),
            name: machine::name(&self.proc),
            cpus: machine::cpus(&self.proc),
            memory: machine::memory(&self.proc),
            system: None,
            kernel: machine::kernel(&self.proc),
            version: Some(format!("{} {}", version.runtime_name, version.runtime_version)),
            cgroup_driver: driver,
            time: None,
        })
    }

    /// Pods that opted in, and all of their containers.
    async fn pods(&self) -> Result<Vec<(PodSandbox, Vec<proto::Container>)>, RuntimeError> {
        let mut pods = BTreeMap::new();
        for label in [POD_ENABLE, labels::ENABLE] {
            let selector = [(label.to_owned(), "true".to_owned())].into();
            let state = Some(proto::StateValue { state: 0 });
            let filter = Some(proto::PodSandboxFilter { state, label_selector: selector });
            let asked = proto::ListPodSandboxRequest { filter };
            let listed: proto::ListPodSandboxResponse =
                self.channel.call("ListPodSandbox", &asked).await?;
            pods.extend(listed.items.into_iter().map(|pod| (pod.id.clone(), (pod, Vec::new()))));
        }
        pods.retain(|_, (pod, _)| Labels::opted_in(&settings(pod)));
        if !pods.is_empty() {
            for container in self.containers(proto::ContainerFilter::default()).await? {
                if let Some((_, containers)) = pods.get_mut(&container.pod_sandbox_id) {
                    containers.push(container);
                }
            }
        }
        Ok(pods.into_values().collect())
    }

    async fn containers(
        &self,
        filter: proto::ContainerFilter,
    ) -> Result<Vec<proto::Container>, RuntimeError> {
        let asked = proto::ListContainersRequest { filter: Some(filter) };
        let listed: proto::ListContainersResponse =
            self.channel.call("ListContainers", &asked).await?;
        Ok(listed.containers)
    }

    /// The running containers of pods that opted in, except ours and those that an annotation excludes.
    /// One that is left alone for another reason is among them, so that the reason is said.
    pub(super) async fn opted_in(&self, wanted: &[String]) -> Result<Vec<String>, RuntimeError> {
        let mut ids = Vec::new();
        let pods = self.pods().await?;
        self.name_waiting(&pods);
        for (pod, containers) in pods {
            let settings = settings(&pod);
            if !wanted.iter().all(|label| matches(&settings, label)) {
                continue;
            }
            let names = choose::names(&containers);
            let runs = |one: &&proto::Container| one.state() == ContainerState::Running;
            ids.extend(containers.iter().filter(runs).filter_map(|one| {
                let name = one.metadata.as_ref().map(|it| it.name.as_str()).unwrap_or_default();
                let choice = choose::choice(name, &pod.annotations, &names);
                let is_job = !matches!(choice, choose::Choice::Ours | choose::Choice::Other(_));
                is_job.then(|| one.id.clone())
            }));
        }
        Ok(ids)
    }

    /// Names the pods that have had no container for long.
    fn name_waiting(&self, pods: &[(PodSandbox, Vec<proto::Container>)]) {
        let empty = pods.iter().filter(|(_, containers)| containers.is_empty());
        let names = empty.map(|(pod, _)| {
            let metadata = pod.metadata.clone().unwrap_or_default();
            let name = format!("{}/{}", metadata.namespace, metadata.name);
            (pod.id.as_str(), plain::name(&name))
        });
        for pod in self.waiting.for_long(&names.collect(), tokio::time::Instant::now()) {
            warn!(
                pod,
                "pod has opted in, but the kubelet makes no container of it: its image may be missing"
            );
        }
    }

    /// The containers of pods that opted in and have all of these labels.
    pub(super) async fn list(&self, wanted: &[&str]) -> Result<Vec<Listed>, RuntimeError> {
        let mut listed = Vec::new();
        for (pod, containers) in self.pods().await? {
            let settings = settings(&pod);
            for container in containers {
                let mut labels = settings.clone();
                let metadata = container.metadata.clone().unwrap_or_default();
                if choose::is_ours(&metadata.name) {
                    let pods_name = pod.metadata.clone().unwrap_or_default().name;
                    let job = labels.get(labels::JOB).cloned().unwrap_or(pods_name);
                    labels.insert(labels::SIDECAR_OF.to_owned(), job);
                }
                if !wanted.iter().all(|label| matches(&labels, label)) {
                    continue;
                }
                let stage = match container.state() {
                    ContainerState::Created => Stage::Made,
                    ContainerState::Running => Stage::Runs,
                    ContainerState::Exited | ContainerState::Unknown => Stage::Over,
                };
                let created = container.created_at / 1_000_000_000;
                listed.push(Listed { id: container.id, created, stage, labels });
            }
        }
        Ok(listed)
    }

    /// Describes a container by its id or the beginning of it, or by `POD`, `NAMESPACE/POD` or
    /// `NAMESPACE/POD/CONTAINER`. One that has ended counts as missing, because it never starts again.
    pub(super) async fn inspect(&self, name: &str) -> Result<Option<Container>, RuntimeError> {
        let is_id = name.len() >= MIN_ID && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id && let Some(found) = self.by_id(name).await? {
            return Ok(Some(found));
        }
        let is_full_id = is_id && name.len() == 64;
        if is_full_id || name.is_empty() {
            return Ok(None);
        }
        match self.named(name).await? {
            Some(id) => self.by_id(&id).await,
            None => Ok(None),
        }
    }

    async fn by_id(&self, id: &str) -> Result<Option<Container>, RuntimeError> {
        let asked = proto::ContainerStatusRequest { container_id: id.to_owned(), verbose: true };
        let answer: proto::ContainerStatusResponse =
            match self.channel.call("ContainerStatus", &asked).await {
                Ok(answer) => answer,
                Err(error) if error.code() == Some(grpc::NOT_FOUND) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        let Some(status) = answer.status else { return Ok(None) };
        if status.state() == ContainerState::Exited {
            return Ok(None);
        }
        let text = answer.info.get("info").map(String::as_str).unwrap_or_default();
        let info = Info::parse(text).map_err(|why| {
            let id = super::short(&status.id);
            failed(format!("cannot read what the runtime says of container {id}: {why}"))
        })?;
        let sandbox = match &info.sandbox {
            Some(sandbox) => sandbox.clone(),
            None => self.sandbox_of(&status.id).await?,
        };
        let asked = proto::PodSandboxStatusRequest { pod_sandbox_id: sandbox.clone() };
        let pod: proto::PodSandboxStatusResponse =
            match self.channel.call("PodSandboxStatus", &asked).await {
                Ok(pod) => pod,
                Err(error) if error.code() == Some(grpc::NOT_FOUND) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        let pod = pod.status.unwrap_or_default();
        let of_pod = proto::ContainerFilter { pod_sandbox_id: sandbox, ..Default::default() };
        let others = self.containers(of_pod).await?;
        Ok(Some(describe::container(&status, &info, &pod, &others)))
    }

    async fn sandbox_of(&self, id: &str) -> Result<String, RuntimeError> {
        let of_id = proto::ContainerFilter { id: id.to_owned(), ..Default::default() };
        let found = self.containers(of_id).await?.into_iter().next();
        let gone = || RuntimeError::Missing("its pod does not exist any more".into());
        found.map(|container| container.pod_sandbox_id).ok_or_else(gone)
    }

    /// The id of the one running container with this name.
    async fn named(&self, name: &str) -> Result<Option<String>, RuntimeError> {
        let all = proto::ListPodSandboxRequest {
            filter: Some(proto::PodSandboxFilter {
                state: Some(proto::StateValue { state: 0 }),
                ..Default::default()
            }),
        };
        let pods: proto::ListPodSandboxResponse = self.channel.call("ListPodSandbox", &all).await?;
        let pods: BTreeMap<String, PodSandbox> =
            pods.items.into_iter().map(|pod| (pod.id.clone(), pod)).collect();
        let mut of_pod: BTreeMap<String, Vec<proto::Container>> = BTreeMap::new();
        for container in self.containers(proto::ContainerFilter::default()).await? {
            of_pod.entry(container.pod_sandbox_id.clone()).or_default().push(container);
        }
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for (id, pod) in &pods {
            let metadata = pod.metadata.clone().unwrap_or_default();
            let whole = format!("{}/{}", metadata.namespace, metadata.name);
            let containers = of_pod.get(id).map(Vec::as_slice).unwrap_or_default();
            let jobs = choose::names(containers);
            for container in containers {
                let own = container.metadata.clone().unwrap_or_default().name;
                let choice = choose::choice(&own, &pod.annotations, &jobs);
                let by_pod = name == metadata.name || name == whole;
                let fits = (by_pod
                    && !matches!(choice, choose::Choice::Ours | choose::Choice::Other(_)))
                    || name == format!("{whole}/{own}");
                if fits && container.state() == ContainerState::Running {
                    ids.insert(container.id.clone());
                    names.insert(format!("{whole}/{own}"));
                }
            }
        }
        if ids.len() > 1 {
            let names: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
            let why = format!("{name:?} names several containers: {}", names.join(", "));
            return Err(RuntimeError::Ambiguous(why.into()));
        }
        Ok(ids.pop_first())
    }

    pub(super) async fn follow(&self, on_event: impl FnMut(ContainerEvent)) {
        events::follow(self, on_event).await;
    }

    /// Whether the runtime does not know the container, or knows that it has ended. No container of a pod
    /// starts twice, so this is final.
    pub(super) async fn was_removed(&self, id: &str) -> Result<bool, RuntimeError> {
        let asked = proto::ContainerStatusRequest { container_id: id.to_owned(), verbose: false };
        let answer: Result<proto::ContainerStatusResponse, _> =
            self.channel.call("ContainerStatus", &asked).await;
        match answer {
            Ok(answer) => {
                Ok(answer.status.is_none_or(|status| status.state() == ContainerState::Exited))
            }
            Err(error) if error.code() == Some(grpc::NOT_FOUND) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn follow_use(&self, id: &str, on_event: impl FnMut(Used)) {
        events::follow_use(self, id, on_event).await;
    }

    pub(super) async fn update(&self, id: &str, change: Change) -> Result<(), RuntimeError> {
        let empty = proto::LinuxContainerResources::default();
        let linux = match change {
            Change::CpuQuota(quota) => proto::LinuxContainerResources { cpu_quota: quota, ..empty },
            Change::CpuShares(weight) => {
                proto::LinuxContainerResources { cpu_shares: weight, ..empty }
            }
            Change::NanoCpus(_) => return Err(impossible("set a limit in billionths of a CPU")),
            Change::Cpus(_) => return Err(impossible("move a container to other CPUs")),
            Change::StaysEnded => return Err(impossible("end a job: its controller restarts it")),
        };
        let asked = proto::UpdateContainerResourcesRequest {
            container_id: id.to_owned(),
            linux: Some(linux),
        };
        let _: proto::Empty = self.channel.call("UpdateContainerResources", &asked).await?;
        Ok(())
    }
}

/// An address that is none of a CRI socket.
#[derive(Debug, thiserror::Error)]
#[error(
    "invalid CRI address {0:?}: expected unix://PATH, for example unix:///run/containerd/containerd.sock"
)]
pub struct InvalidAddress(String);

/// The error of what only the kubelet may do.
pub(super) fn impossible(what: &str) -> RuntimeError {
    failed(format!("cannot {what}: on a Kubernetes node, only limits are changed"))
}

fn failed(why: String) -> RuntimeError {
    RuntimeError::Failed(why.into())
}

/// The labels of a pod's containers.
fn settings(pod: &PodSandbox) -> BTreeMap<String, String> {
    labels::of_pod(pod.labels.iter(), pod.annotations.iter())
}

fn settings_of_status(pod: &PodSandboxStatus) -> BTreeMap<String, String> {
    labels::of_pod(pod.labels.iter(), pod.annotations.iter())
}

/// Whether there is such a label: `KEY` or `KEY=VALUE`.
fn matches(labels: &BTreeMap<String, String>, wanted: &str) -> bool {
    match wanted.split_once('=') {
        Some((key, value)) => labels.get(key).is_some_and(|own| own == value),
        None => labels.contains_key(wanted),
    }
}

#[cfg(test)]
mod tests;
