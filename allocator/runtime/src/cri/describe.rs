//! Converts CRI's description of a container and its pod. Pure.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use paceline_api::labels;
use paceline_api::plain;
use serde::Deserialize;

use super::choose::{self, Choice};
use super::proto::{self, ContainerState, ContainerStatus, PodSandboxStatus};
use crate::{Container, DEFAULT_PERIOD, HostCpu, Pod, State};

/// A pod that uses its node's network.
const NODE_NETWORK: i32 = 2;
/// The most bytes of the JSON text about a container.
const MAX_INFO: usize = 4 * 1024 * 1024;
/// The runtime of containers whose processes are the machine's own: runc, and those that take its place.
const RUNC: &str = "io.containerd.runc.";
/// Parts of the names of runtimes whose processes are in a sandbox of their own.
const SANDBOXES: [&str; 4] = ["kata", "runsc", "gvisor", "firecracker"];

/// What the runtime says of a container beyond CRI, as JSON. Containerd and CRI-O use the same names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Info {
    #[serde(rename = "sandboxID")]
    pub(super) sandbox: Option<String>,
    pid: Option<i64>,
    #[serde(rename = "runtimeType")]
    runtime: Option<String>,
    #[serde(rename = "runtimeSpec")]
    spec: Option<Spec>,
}

/// The part of the runtime's specification that is used.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Spec {
    linux: Option<Linux>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Linux {
    #[serde(rename = "cgroupsPath")]
    cgroup: Option<String>,
    resources: Option<Resources>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Resources {
    cpu: Option<Cpu>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Cpu {
    shares: Option<i64>,
    quota: Option<i64>,
    period: Option<i64>,
    cpus: Option<String>,
}

impl Info {
    /// Reads the text; the error is a reason.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_INFO {
            return Err(format!("it is longer than {} MiB", MAX_INFO >> 20));
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn linux(&self) -> Option<&Linux> {
        self.spec.as_ref()?.linux.as_ref()
    }

    /// Its first process. For the runtime, 0 means "not running"; 1 is never a container's.
    pub(super) fn pid(&self) -> Option<u32> {
        self.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 1)
    }
}

/// How Kubernetes classes a pod, by the control group that the kubelet gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Guaranteed,
    Other,
}

/// A container from its own description, and that of its pod. `others` are all containers of the pod.
pub(super) fn container(
    status: &ContainerStatus,
    info: &Info,
    pod: &PodSandboxStatus,
    others: &[proto::Container],
) -> Container {
    let metadata = pod.metadata.clone().unwrap_or_default();
    let name = status.metadata.clone().unwrap_or_default().name;
    let settings = labels::of_pod(pod.labels.iter(), pod.annotations.iter());
    let (host_config, cpuset_cpus) = limits(status, info);
    let running = status.state() == ContainerState::Running;
    let mut own = settings;
    own.extend(status.labels.iter().map(|(key, value)| (key.clone(), value.clone())));
    if choose::is_ours(&name) {
        let job = own.get(labels::JOB).unwrap_or(&metadata.name).clone();
        own.insert(labels::SIDECAR_OF.to_owned(), job);
    }
    let choice = choose::choice(&name, &pod.annotations, &choose::names(others));
    let request = requested(host_config);
    Container {
        id: status.id.clone(),
        name: format!("{}/{}/{name}", metadata.namespace, metadata.name),
        pid: info.pid().filter(|_| running),
        started_at: started_at(status.started_at),
        labels: own,
        // The job listens on its loopback. What answers at a pod's address may be another program.
        addresses: Vec::new(),
        published: Vec::new(),
        host_config,
        mounted: status
            .mounts
            .iter()
            .filter(|mount| !mount.readonly)
            .map(|mount| PathBuf::from(&mount.container_path))
            .collect(),
        network_mode: if is_of_node(pod) { "host" } else { "pod" }.to_owned(),
        state: State { running, ..State::default() },
        pod: Some(Pod {
            namespace: metadata.namespace,
            name: metadata.name,
            request,
            watched_only: watched_only(host_config, request, info, &cpuset_cpus),
            left_alone: sandboxed(&pod.runtime_handler, info.runtime.as_deref())
                .or_else(|| left_alone(choice)),
        }),
        cpuset_cpus,
    }
}

fn is_of_node(pod: &PodSandboxStatus) -> bool {
    let namespaces = pod.linux.as_ref().and_then(|linux| linux.namespaces.as_ref());
    let options = namespaces.and_then(|namespaces| namespaces.options.as_ref());
    options.is_some_and(|options| options.network == NODE_NETWORK)
}

/// When it was started, in RFC 3339.
fn started_at(nanoseconds: i64) -> String {
    let since = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default());
    humantime::format_rfc3339_nanos(UNIX_EPOCH + since).to_string()
}

/// The limits that the runtime keeps, and its CPUs. No limit is always −1, so that a restored container
/// is the same as one that was never limited. The period is always set: CRI writes quotas alone.
fn limits(status: &ContainerStatus, info: &Info) -> (HostCpu, String) {
    let described = status.resources.as_ref().and_then(|resources| resources.linux.clone());
    // Runtimes before CRI of Kubernetes 1.26 describe them in the specification only.
    let described = described.unwrap_or_else(|| {
        let resources = info.linux().and_then(|linux| linux.resources.clone());
        let cpu = resources.and_then(|resources| resources.cpu).unwrap_or_default();
        proto::LinuxContainerResources {
            cpu_period: cpu.period.unwrap_or_default(),
            cpu_quota: cpu.quota.unwrap_or_default(),
            cpu_shares: cpu.shares.unwrap_or_default(),
            cpuset_cpus: cpu.cpus.unwrap_or_default(),
        }
    });
    let or = |value: i64, usual: i64| if value > 0 { value } else { usual };
    let host = HostCpu {
        nano_cpus: 0,
        cpu_quota: or(described.cpu_quota, -1),
        cpu_period: or(described.cpu_period, DEFAULT_PERIOD),
        cpu_shares: or(described.cpu_shares, 0),
    };
    (host, described.cpuset_cpus)
}

/// The CPUs that the weight stands for. The kubelet rounds 1024 for each CPU down, so this rounds up to a
/// thousandth; the least weight stands for no request.
fn requested(host: HostCpu) -> f64 {
    /// The weight without a request.
    const NONE: i64 = 2;
    /// The weight of one CPU.
    const CPU: i64 = 1024;
    if host.cpu_shares <= NONE {
        return 0.0;
    }
    let thousandths = host.cpu_shares.saturating_mul(1000).saturating_add(CPU - 1) / CPU;
    f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 1000.0
}

/// Why its limit must not be changed, if so.
fn watched_only(host: HostCpu, request: f64, info: &Info, cpus: &str) -> Option<String> {
    let class = info.linux().and_then(|linux| class(linux.cgroup.as_deref()?));
    let limit = limit_in_cpus(host);
    let equal = || request > 0.0 && limit.is_some_and(|limit| (limit - request).abs() < 0.001);
    let guaranteed = class.map_or_else(equal, |class| class == Class::Guaranteed);
    if !guaranteed {
        return None;
    }
    let exclusive = if cpus.is_empty() {
        String::new()
    } else {
        format!(", and it may have the CPUs {} for itself", plain::name(cpus))
    };
    Some(format!(
        "its pod is guaranteed: request and limit are equal{exclusive}; it is watched only; give it \
         a request below its limit to have it managed"
    ))
}

/// The limit in CPUs, if there is one.
fn limit_in_cpus(host: HostCpu) -> Option<f64> {
    let quota = u32::try_from(host.cpu_quota).ok().filter(|quota| *quota > 0)?;
    let period = u32::try_from(host.cpu_period).ok().filter(|period| *period > 0)?;
    Some(f64::from(quota) / f64::from(period))
}

/// The class of a pod, by its control group: `…/kubepods/burstable/podUID/ID` by cgroupfs, and
/// `kubepods-burstable-podUID.slice:…` by systemd. A guaranteed pod has no class in its path.
fn class(path: &str) -> Option<Class> {
    let has = |word: &str| path.split(['/', '-', ':', '.']).any(|part| part == word);
    if !has("kubepods") {
        return None;
    }
    Some(if has("burstable") || has("besteffort") { Class::Other } else { Class::Guaranteed })
}

/// Why a runtime's containers cannot be managed, if so.
fn sandboxed(handler: &str, runtime: Option<&str>) -> Option<String> {
    let named = |name: &str| SANDBOXES.iter().any(|word| name.contains(word));
    let foreign = |name: &str| name.starts_with("io.containerd.") && !name.starts_with(RUNC);
    let by_type = runtime.filter(|name| foreign(name) || named(name));
    let name = by_type.or(Some(handler).filter(|name| named(name)))?;
    Some(format!(
        "its runtime {} keeps it in a sandbox: its processes and limits are not seen from here",
        plain::name(name)
    ))
}

/// Why this container of its pod is left alone, if so.
fn left_alone(choice: Choice) -> Option<String> {
    match choice {
        Choice::This => None,
        Choice::Ours => Some("it is a sidecar of Paceline".to_owned()),
        Choice::Other(name) => Some(format!(
            "the annotation {} names container {}",
            labels::POD_CONTAINER,
            plain::name(&name)
        )),
        Choice::Unknown(name) => Some(format!(
            "the annotation {} names container {}, which does not run",
            labels::POD_CONTAINER,
            plain::name(&name)
        )),
        Choice::Several(names) => Some(format!(
            "its pod has several containers ({names}); name the one that trains by the annotation {}",
            labels::POD_CONTAINER
        )),
    }
}

#[cfg(test)]
mod tests;
