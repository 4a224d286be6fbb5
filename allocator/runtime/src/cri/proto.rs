//! The messages of CRI, version 1, as far as they are used: names and numbers of the fields are
//! those of `api.proto` in `kubernetes/cri-api`. Fields that are not named here are skipped.

use std::collections::BTreeMap;

use prost::{Enumeration, Message};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionResponse {
    #[prost(string, tag = "2")]
    pub(super) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(super) runtime_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {
    #[prost(bool, tag = "1")]
    pub(super) verbose: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(btree_map = "string, string", tag = "2")]
    pub(super) info: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RuntimeConfigResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) linux: Option<LinuxRuntimeConfiguration>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxRuntimeConfiguration {
    /// 0 is systemd, 1 is cgroupfs.
    #[prost(int32, tag = "1")]
    pub(super) cgroup_driver: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) filter: Option<PodSandboxFilter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxFilter {
    #[prost(message, optional, tag = "2")]
    pub(super) state: Option<StateValue>,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(super) label_selector: BTreeMap<String, String>,
}

/// The state of a pod or of a container that a list is filtered by. 0 is a ready pod.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StateValue {
    #[prost(int32, tag = "1")]
    pub(super) state: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListPodSandboxResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) items: Vec<PodSandbox>,
}

/// A pod in a list.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandbox {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) metadata: Option<PodSandboxMetadata>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub(super) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub(super) annotations: BTreeMap<String, String>,
    #[prost(string, tag = "7")]
    pub(super) runtime_handler: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) namespace: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxStatusRequest {
    #[prost(string, tag = "1")]
    pub(super) pod_sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<PodSandboxStatus>,
}

/// A pod, described.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PodSandboxStatus {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) metadata: Option<PodSandboxMetadata>,
    #[prost(message, optional, tag = "6")]
    pub(super) linux: Option<LinuxPodSandboxStatus>,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(super) labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "8")]
    pub(super) annotations: BTreeMap<String, String>,
    #[prost(string, tag = "9")]
    pub(super) runtime_handler: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxPodSandboxStatus {
    #[prost(message, optional, tag = "1")]
    pub(super) namespaces: Option<Namespace>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Namespace {
    #[prost(message, optional, tag = "2")]
    pub(super) options: Option<NamespaceOption>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamespaceOption {
    /// 2 is the node's network.
    #[prost(int32, tag = "1")]
    pub(super) network: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListContainersRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) filter: Option<ContainerFilter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerFilter {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "3")]
    pub(super) pod_sandbox_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ListContainersResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) containers: Vec<Container>,
}

/// A container in a list.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Container {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) pod_sandbox_id: String,
    #[prost(message, optional, tag = "3")]
    pub(super) metadata: Option<ContainerMetadata>,
    #[prost(enumeration = "ContainerState", tag = "6")]
    pub(super) state: i32,
    /// In Unix nanoseconds.
    #[prost(int64, tag = "7")]
    pub(super) created_at: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum ContainerState {
    Created = 0,
    Running = 1,
    Exited = 2,
    Unknown = 3,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerStatusRequest {
    #[prost(string, tag = "1")]
    pub(super) container_id: String,
    #[prost(bool, tag = "2")]
    pub(super) verbose: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<ContainerStatus>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(super) info: BTreeMap<String, String>,
}

/// A container, described.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerStatus {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) metadata: Option<ContainerMetadata>,
    #[prost(enumeration = "ContainerState", tag = "3")]
    pub(super) state: i32,
    /// In Unix nanoseconds.
    #[prost(int64, tag = "5")]
    pub(super) started_at: i64,
    #[prost(btree_map = "string, string", tag = "12")]
    pub(super) labels: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "14")]
    pub(super) mounts: Vec<Mount>,
    #[prost(message, optional, tag = "16")]
    pub(super) resources: Option<ContainerResources>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mount {
    #[prost(string, tag = "1")]
    pub(super) container_path: String,
    #[prost(bool, tag = "3")]
    pub(super) readonly: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerResources {
    #[prost(message, optional, tag = "1")]
    pub(super) linux: Option<LinuxContainerResources>,
}

/// In an update, 0 and an empty text leave a value unchanged.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LinuxContainerResources {
    #[prost(int64, tag = "1")]
    pub(super) cpu_period: i64,
    #[prost(int64, tag = "2")]
    pub(super) cpu_quota: i64,
    #[prost(int64, tag = "3")]
    pub(super) cpu_shares: i64,
    #[prost(string, tag = "6")]
    pub(super) cpuset_cpus: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateContainerResourcesRequest {
    #[prost(string, tag = "1")]
    pub(super) container_id: String,
    #[prost(message, optional, tag = "2")]
    pub(super) linux: Option<LinuxContainerResources>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerStatsRequest {
    #[prost(string, tag = "1")]
    pub(super) container_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerStatsResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) stats: Option<ContainerStats>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerStats {
    #[prost(message, optional, tag = "2")]
    pub(super) cpu: Option<CpuUsage>,
    #[prost(message, optional, tag = "3")]
    pub(super) memory: Option<MemoryUsage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CpuUsage {
    #[prost(message, optional, tag = "2")]
    pub(super) usage_core_nano_seconds: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemoryUsage {
    #[prost(message, optional, tag = "2")]
    pub(super) working_set_bytes: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UInt64Value {
    #[prost(uint64, tag = "1")]
    pub(super) value: u64,
}

/// A container was created, started, stopped or deleted.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ContainerEventResponse {
    #[prost(string, tag = "1")]
    pub(super) container_id: String,
    #[prost(message, optional, tag = "4")]
    pub(super) pod_sandbox_status: Option<PodSandboxStatus>,
    #[prost(message, repeated, tag = "5")]
    pub(super) containers_statuses: Vec<ContainerStatus>,
}
