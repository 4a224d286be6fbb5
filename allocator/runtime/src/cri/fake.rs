//! A fake runtime: a gRPC server on a Unix socket with the rules of containerd, and hostile answers.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use serde_json::json;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Cri;
use super::grpc::{MAX_MESSAGE, NOT_FOUND, UNIMPLEMENTED};
use super::proto::{
    Container, ContainerEventResponse, ContainerMetadata, ContainerResources, ContainerState,
    ContainerStatus, ContainerStatusRequest, ContainerStatusResponse, Empty,
    LinuxContainerResources, ListContainersRequest, ListContainersResponse, ListPodSandboxRequest,
    ListPodSandboxResponse, Mount, PodSandbox, PodSandboxMetadata, PodSandboxStatus,
    PodSandboxStatusRequest, PodSandboxStatusResponse, StatusResponse,
    UpdateContainerResourcesRequest, VersionResponse,
};
use crate::Runtime;

type Body = BoxBody<Bytes, Infallible>;

/// How the runtime answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Behavior {
    /// As containerd does.
    #[default]
    Honest,
    /// It never answers.
    Hangs,
    /// It announces a message that is longer than any.
    TooLong,
    /// It sends bytes that are not a message.
    Garbage,
    /// It says that its answer is compressed.
    Compressed,
    /// It ends each answer without a status.
    NoStatus,
    /// Its description of a container is not JSON.
    NoJson,
}

/// A container of the fake runtime.
#[derive(Clone, Debug)]
pub struct FakeContainer {
    pod: String,
    name: String,
    pub(super) state: ContainerState,
    cpu: LinuxContainerResources,
    /// The path of its control group, which has the class of its pod.
    pub group: String,
    pub(super) runtime: String,
    /// Its first process.
    pub pid: u32,
    /// The file that shows its quota, as the kernel's does.
    pub quota_file: Option<PathBuf>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    behavior: Behavior,
    pub(super) version: String,
    pods: BTreeMap<String, PodSandbox>,
    containers: BTreeMap<String, FakeContainer>,
    updates: Vec<(String, i64, i64)>,
    pub(super) calls: BTreeMap<String, usize>,
    events: Vec<mpsc::Sender<ContainerEventResponse>>,
}

/// A fake runtime. It serves for as long as it lives.
#[derive(Debug)]
pub struct Fake {
    folder: tempfile::TempDir,
    pub(super) state: Arc<Mutex<State>>,
    serving: Option<JoinSet<()>>,
}

fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// An id from a short one, as long as a runtime's.
pub fn id(short: &str) -> String {
    format!("{short:0<64}")
}

impl Fake {
    /// Starts a runtime without pods, in a folder of its own.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = State { version: "2.1.9".to_owned(), ..State::default() };
        let mut fake = Self { folder, state: Arc::new(Mutex::new(state)), serving: None };
        fake.serve();
        fake
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("runtime.sock")
    }

    /// Ends all connections, and serves again.
    pub fn serve(&mut self) {
        self.serving = None;
        drop(std::fs::remove_file(self.socket()));
        let listener = UnixListener::bind(self.socket()).unwrap();
        let state = Arc::clone(&self.state);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                open.spawn(async move {
                    let service = service_fn(move |request| answer(request, Arc::clone(&state)));
                    let server = http2::Builder::new(TokioExecutor::new());
                    drop(server.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        self.serving = Some(serving);
    }

    fn cri(&self) -> Cri {
        let proc = self.folder.path().join("proc");
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::write(proc.join("stat"), "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n").unwrap();
        std::fs::write(proc.join("meminfo"), "MemTotal:  2048 kB\nMemFree: 1 kB\n").unwrap();
        self.cri_with(&proc)
    }

    /// A client for a machine with this `/proc`.
    pub fn cri_with(&self, proc: &Path) -> Cri {
        Cri::at(&format!("unix://{}", self.socket().display()), proc).unwrap()
    }

    /// A client for a machine with 2 CPUs.
    pub fn runtime(&self) -> Runtime {
        self.cri().into()
    }

    /// Adds a pod of the namespace `lab`.
    pub fn pod(&self, name: &str, labels: &[(&str, &str)], notes: &[(&str, &str)]) {
        let metadata = PodSandboxMetadata { name: name.to_owned(), namespace: "lab".to_owned() };
        let pod = PodSandbox {
            id: id(name),
            metadata: Some(metadata),
            labels: strings(labels),
            annotations: strings(notes),
            runtime_handler: String::new(),
        };
        self.state.lock().unwrap().pods.insert(id(name), pod);
    }

    /// Adds a running container that may use up to 1 CPU and has requested 0.2.
    pub fn container(&self, short: &str, pod: &str, name: &str) {
        let container = FakeContainer {
            pod: id(pod),
            name: name.to_owned(),
            state: ContainerState::Running,
            cpu: LinuxContainerResources {
                cpu_period: 100_000,
                cpu_quota: 100_000,
                cpu_shares: 204,
                cpuset_cpus: String::new(),
            },
            group: format!("/kubepods/burstable/pod{pod}/{}", id(short)),
            runtime: "io.containerd.runc.v2".to_owned(),
            pid: 4711,
            quota_file: None,
        };
        self.state.lock().unwrap().containers.insert(id(short), container);
    }

    /// Changes a container.
    pub fn change(&self, short: &str, change: impl FnOnce(&mut FakeContainer)) {
        change(self.state.lock().unwrap().containers.get_mut(&id(short)).unwrap());
    }

    /// Sets what a container's owner has declared.
    pub fn declare(&self, short: &str, quota: i64, weight: i64) {
        self.change(short, |one| (one.cpu.cpu_quota, one.cpu.cpu_shares) = (quota, weight));
    }

    /// What it was asked to change so far: id, and quota and weight.
    pub fn updates(&self) -> Vec<(String, i64, i64)> {
        self.state.lock().unwrap().updates.clone()
    }

    /// The quota of a container.
    pub fn quota(&self, short: &str) -> i64 {
        self.state.lock().unwrap().containers.get(&id(short)).unwrap().cpu.cpu_quota
    }

    /// Gives a pod this runtime's handler.
    pub fn handle(&self, pod: &str, handler: &str) {
        let mut state = self.state.lock().unwrap();
        handler.clone_into(&mut state.pods.get_mut(&id(pod)).unwrap().runtime_handler);
    }

    /// Deletes one pod with the container of the same id.
    pub fn delete(&self, short: &str) {
        let mut state = self.state.lock().unwrap();
        state.containers.remove(&id(short));
        state.pods.remove(&id(short));
    }

    /// Deletes all pods.
    pub fn clear(&self) {
        let mut state = self.state.lock().unwrap();
        state.containers.clear();
        state.pods.clear();
    }

    /// Answers so from now on.
    pub fn behave(&self, behavior: Behavior) {
        self.state.lock().unwrap().behavior = behavior;
    }

    /// Sends an event about a container to all who listen; returns how many do.
    pub fn event(&self, short: &str) -> usize {
        let mut state = self.state.lock().unwrap();
        let pod = state.containers.get(&id(short)).unwrap().pod.clone();
        let of_pod = state.containers.iter().filter(|(_, one)| one.pod == pod);
        let containers_statuses =
            of_pod.map(|(id, one)| status(id, one)).collect::<Vec<ContainerStatus>>();
        let event = ContainerEventResponse {
            container_id: id(short),
            pod_sandbox_status: state.pods.get(&pod).map(described),
            containers_statuses,
        };
        state.events.retain(|listener| listener.try_send(event.clone()).is_ok());
        state.events.len()
    }
}

fn described(pod: &PodSandbox) -> PodSandboxStatus {
    PodSandboxStatus {
        id: pod.id.clone(),
        metadata: pod.metadata.clone(),
        linux: None,
        labels: pod.labels.clone(),
        annotations: pod.annotations.clone(),
        runtime_handler: pod.runtime_handler.clone(),
    }
}

fn status(id: &str, one: &FakeContainer) -> ContainerStatus {
    ContainerStatus {
        id: id.to_owned(),
        metadata: Some(ContainerMetadata { name: one.name.clone() }),
        state: one.state.into(),
        started_at: 1_795_263_376_000_000_000,
        labels: strings(&[("io.kubernetes.container.name", &one.name)]),
        mounts: vec![
            Mount { container_path: "/data".to_owned(), readonly: true },
            Mount { container_path: "/checkpoints".to_owned(), readonly: false },
        ],
        resources: Some(ContainerResources { linux: Some(one.cpu.clone()) }),
    }
}

fn framed(message: &impl Message) -> Bytes {
    let encoded = message.encode_to_vec();
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(encoded.len()).unwrap());
    bytes.put_slice(&encoded);
    bytes.freeze()
}

fn ended(code: i32, message: &str) -> HeaderMap {
    let mut status = HeaderMap::new();
    status.insert("grpc-status", HeaderValue::from(code));
    status.insert("grpc-message", HeaderValue::from_str(message).unwrap());
    status
}

fn whole(bytes: Bytes, status: HeaderMap) -> Body {
    Full::new(bytes).with_trailers(async { Some(Ok(status)) }).boxed()
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Body>, Infallible> {
    let call = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let sent = request.into_body().collect().await.unwrap().to_bytes();
    let behavior = {
        let mut state = state.lock().unwrap();
        *state.calls.entry(call.clone()).or_default() += 1;
        state.behavior
    };
    let body = match behavior {
        Behavior::Hangs => std::future::pending().await,
        Behavior::TooLong => {
            let mut bytes = BytesMut::new();
            bytes.put_u8(0);
            bytes.put_u32(u32::try_from(MAX_MESSAGE + 1).unwrap());
            whole(bytes.freeze(), ended(0, ""))
        }
        Behavior::Garbage => {
            whole(Bytes::from_static(&[0, 0, 0, 0, 3, 0xff, 0xff, 0xff]), ended(0, ""))
        }
        Behavior::Compressed => whole(Bytes::from_static(&[1, 0, 0, 0, 0]), ended(0, "")),
        Behavior::NoStatus => Full::new(Bytes::from_static(&[0, 0, 0, 0, 0])).boxed(),
        Behavior::Honest | Behavior::NoJson => honest(&call, sent.get(5..).unwrap(), &state),
    };
    Ok(Response::new(body))
}

fn honest(call: &str, sent: &[u8], shared: &Arc<Mutex<State>>) -> Body {
    let mut state = shared.lock().unwrap();
    let message: Bytes = match call {
        "ContainerStatus" | "UpdateContainerResources" => {
            return match of_container(call, sent, &mut state) {
                Some(message) => whole(message, ended(0, "")),
                None => whole(Bytes::new(), ended(NOT_FOUND, "no%20such container")),
            };
        }
        "Version" => framed(&VersionResponse {
            runtime_name: "containerd".to_owned(),
            runtime_version: state.version.clone(),
        }),
        "Status" => {
            let config = json!({"rootDir": "/var/lib/containerd/cri"}).to_string();
            framed(&StatusResponse { info: strings(&[("config", &config)]) })
        }
        "ListPodSandbox" => {
            let filter = ListPodSandboxRequest::decode(sent).unwrap().filter.unwrap_or_default();
            let fits = |pod: &&PodSandbox| {
                filter.label_selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
            };
            let items = state.pods.values().filter(fits).cloned().collect();
            framed(&ListPodSandboxResponse { items })
        }
        "PodSandboxStatus" => {
            let id = PodSandboxStatusRequest::decode(sent).unwrap().pod_sandbox_id;
            match state.pods.get(&id) {
                Some(pod) => framed(&PodSandboxStatusResponse { status: Some(described(pod)) }),
                None => return whole(Bytes::new(), ended(NOT_FOUND, "no%20such pod")),
            }
        }
        "ListContainers" => {
            let filter = ListContainersRequest::decode(sent).unwrap().filter.unwrap_or_default();
            let listed = state.containers.iter().map(|(id, one)| Container {
                id: id.clone(),
                pod_sandbox_id: one.pod.clone(),
                metadata: Some(ContainerMetadata { name: one.name.clone() }),
                state: one.state.into(),
                created_at: 5_000_000_000,
            });
            let fits = |one: &Container| {
                (filter.id.is_empty() || filter.id == one.id)
                    && (filter.pod_sandbox_id.is_empty()
                        || filter.pod_sandbox_id == one.pod_sandbox_id)
            };
            framed(&ListContainersResponse { containers: listed.filter(fits).collect() })
        }
        "GetContainerEvents" => {
            let (sender, receiver) = mpsc::channel(16);
            state.events.push(sender);
            let frames = futures_util::stream::unfold(receiver, async |mut receiver| {
                let event: ContainerEventResponse = receiver.recv().await?;
                Some((Ok(Frame::data(framed(&event))), receiver))
            });
            return BodyExt::boxed(StreamBody::new(frames));
        }
        _ => return whole(Bytes::new(), ended(UNIMPLEMENTED, "unknown%20method")),
    };
    whole(message, ended(0, ""))
}

/// Answers about one container; `None` if it does not exist.
fn of_container(call: &str, sent: &[u8], state: &mut State) -> Option<Bytes> {
    if call == "ContainerStatus" {
        let asked = ContainerStatusRequest::decode(sent).unwrap().container_id;
        let (id, one) = state.containers.iter().find(|(id, _)| id.starts_with(&asked))?;
        let info = json!({
            "sandboxID": one.pod,
            "pid": one.pid,
            "runtimeType": one.runtime,
            "runtimeSpec": {"linux": {"cgroupsPath": one.group}},
        });
        let hides = state.behavior == Behavior::NoJson;
        let info = if hides { "{\"pid\": []".to_owned() } else { info.to_string() };
        let status = Some(status(id, one));
        return Some(framed(&ContainerStatusResponse {
            status,
            info: strings(&[("info", &info)]),
        }));
    }
    let asked = UpdateContainerResourcesRequest::decode(sent).unwrap();
    let cpu = asked.linux.unwrap_or_default();
    state.updates.push((asked.container_id.clone(), cpu.cpu_quota, cpu.cpu_shares));
    let one = state.containers.get_mut(&asked.container_id)?;
    // 0 means "unchanged".
    if cpu.cpu_quota != 0 {
        one.cpu.cpu_quota = cpu.cpu_quota;
        if let Some(file) = &one.quota_file {
            std::fs::write(file, cpu.cpu_quota.to_string()).unwrap();
        }
    }
    if cpu.cpu_shares != 0 {
        one.cpu.cpu_shares = cpu.cpu_shares;
    }
    Some(framed(&Empty {}))
}
