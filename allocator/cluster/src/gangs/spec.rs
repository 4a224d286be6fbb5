//! The Swarm services of a distributed job: one for each task. Pure.
//!
//! A waiting task is a service without a container. A placed task has one container, on one
//! machine. Labels of the service name its job and its place in it, so that any manager can read
//! them.

use std::collections::BTreeMap;

use bollard::models::{
    EndpointSpec, EndpointSpecModeEnum, Mount as ServiceMount, MountType, NetworkAttachmentConfig,
    ResourceObject, ServiceSpec, TaskSpec, TaskSpecContainerSpec, TaskSpecResources,
    TaskSpecRestartPolicy, TaskSpecRestartPolicyConditionEnum,
};
use paceline_api::labels::{ENABLE, GANG, JOB};
use paceline_policy::cluster::Role;

use super::file::{Gang, GangError, Mount, role_name};
use crate::engine::{self, NANO, scale};

/// Label of a service: the task's role and index, such as `worker/2`.
const TASK: &str = "paceline.gang.task";
/// Label of a service: the size of the job, such as `1/2/4`: parameter servers, smallest and
/// largest number of workers.
const SIZE: &str = "paceline.gang.size";
/// Label of a service: the name of the machine that its owner chose.
const NODE: &str = "paceline.gang.node";
/// How often Docker restarts a failed task.
const ATTEMPTS: i64 = 3;
/// The delay before a restart, in nanoseconds.
const DELAY: i64 = 2_000_000_000;

/// A service's place in its job, as its labels say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskIdentity {
    /// The job.
    pub job: String,
    /// The role of the task.
    pub role: Role,
    /// The index of the task among those of its role, from 0.
    pub index: u32,
    /// How many parameter servers the job has.
    pub servers: u32,
    /// The smallest number of workers.
    pub min: u32,
    /// The largest number of workers.
    pub max: u32,
    /// The machine that its owner chose, if any.
    pub node: Option<String>,
}

/// The services of a job whose tasks share `network`.
pub fn services(gang: &Gang, network: &str) -> Result<Vec<ServiceSpec>, GangError> {
    let of = |role| (0..gang.part(role).count).map(move |index| (role, index));
    of(Role::Ps)
        .chain(of(Role::Worker))
        .map(|(role, index)| service(gang, network, role, index))
        .collect()
}

fn service(gang: &Gang, network: &str, role: Role, index: u32) -> Result<ServiceSpec, GangError> {
    let (name, part) = (gang.task(role, index), gang.part(role));
    let mut labels = gang.labels.clone();
    // A submitted job is opted in, unless its labels say otherwise.
    labels.entry(ENABLE.to_owned()).or_insert_with(|| "true".to_owned());
    labels.insert(JOB.to_owned(), name.clone());
    let inside = TaskSpecContainerSpec {
        image: Some(gang.image.clone()),
        // Arguments, not a command: the image's entry point stays.
        args: Some(gang.command(role, index)?),
        env: Some(gang.environment(role, index)?),
        labels: Some(labels.into_iter().collect()),
        mounts: Some(gang.mounts.iter().map(mount).collect()),
        ..TaskSpecContainerSpec::default()
    };
    let reserved = ResourceObject {
        nano_cpus: Some(whole(part.cpus * NANO)),
        memory_bytes: Some(whole(part.memory)),
        ..ResourceObject::default()
    };
    let restart = TaskSpecRestartPolicy {
        condition: Some(TaskSpecRestartPolicyConditionEnum::ON_FAILURE),
        delay: Some(DELAY),
        max_attempts: Some(ATTEMPTS),
        ..TaskSpecRestartPolicy::default()
    };
    let task = TaskSpec {
        container_spec: Some(inside),
        resources: Some(TaskSpecResources {
            reservations: Some(reserved),
            ..TaskSpecResources::default()
        }),
        restart_policy: Some(restart),
        networks: Some(vec![NetworkAttachmentConfig {
            target: Some(network.to_owned()),
            ..NetworkAttachmentConfig::default()
        }]),
        ..TaskSpec::default()
    };
    let identity = TaskIdentity {
        job: gang.name.clone(),
        role,
        index,
        servers: gang.ps.count,
        min: gang.min,
        max: gang.worker.count,
        node: part.nodes.get(usize::try_from(index).unwrap_or(usize::MAX)).cloned(),
    };
    let mut spec = ServiceSpec {
        name: Some(name),
        labels: Some(identity.labels().into_iter().collect()),
        task_template: Some(task),
        // The service's name resolves to the task itself, since each service has one task.
        endpoint_spec: Some(EndpointSpec {
            mode: Some(EndpointSpecModeEnum::DNSRR),
            ..EndpointSpec::default()
        }),
        ..ServiceSpec::default()
    };
    scale(&mut spec, 0);
    Ok(spec)
}

/// Places a task's service on the machine with this id.
pub fn place(spec: &mut ServiceSpec, node: &str) {
    engine::place(spec, node);
    scale(spec, 1);
}

/// Withdraws a task.
pub fn withdraw(spec: &mut ServiceSpec) {
    scale(spec, 0);
}

impl TaskIdentity {
    fn labels(&self) -> BTreeMap<String, String> {
        let Self { job, role, index, servers, min, max, node } = self;
        let mut labels = BTreeMap::from([
            (GANG.to_owned(), job.clone()),
            (TASK.to_owned(), format!("{}/{index}", role_name(*role))),
            (SIZE.to_owned(), format!("{servers}/{min}/{max}")),
        ]);
        labels.extend(node.clone().map(|node| (NODE.to_owned(), node)));
        labels
    }

    /// Reads the labels of a service; `label` looks one up by name. `None` if the service is
    /// not a task of a distributed job, or its labels are invalid.
    pub fn read<'a>(label: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let (role, index) = label(TASK)?.split_once('/')?;
        let role = [Role::Ps, Role::Worker].into_iter().find(|one| role_name(*one) == role)?;
        let mut size = label(SIZE)?.split('/').map(|count| count.parse().ok());
        Some(Self {
            job: label(GANG).filter(|job| !job.is_empty())?.to_owned(),
            role,
            index: index.parse().ok()?,
            servers: size.next()??,
            min: size.next()??,
            max: size.next()??,
            node: label(NODE).map(str::to_owned),
        })
    }
}

fn mount(mount: &Mount) -> ServiceMount {
    let is_folder = mount.source.starts_with('/');
    ServiceMount {
        typ: Some(if is_folder { MountType::BIND } else { MountType::VOLUME }),
        source: Some(mount.source.clone()),
        target: Some(mount.target.clone()),
        read_only: Some(mount.read_only),
        ..ServiceMount::default()
    }
}

/// The nearest whole number, at most `i64::MAX`.
fn whole(amount: f64) -> i64 {
    format!("{amount:.0}").parse().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::gangs::file::tests::EXAMPLE;

    #[test]
    fn each_task_becomes_a_waiting_service() {
        let gang = Gang::parse(EXAMPLE).unwrap();
        let made = services(&gang, "training").unwrap();
        let names: Vec<_> = made.iter().filter_map(|spec| spec.name.as_deref()).collect();
        let expected =
            ["mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1", "mnist-worker-2"];
        assert_eq!(names, expected);
        let worker = serde_json::to_value(made.last()).unwrap();
        assert_eq!(worker["Mode"]["Replicated"]["Replicas"], 0);
        let task = &worker["TaskTemplate"];
        assert_eq!(task["Resources"]["Reservations"]["NanoCPUs"], 1_000_000_000);
        assert_eq!(task["Networks"], json!([{"Target": "training"}]));
        let inside = &task["ContainerSpec"];
        assert_eq!(
            inside["Labels"],
            json!({
                "paceline.enable": "true",
                "paceline.job": "mnist-worker-2",
                "paceline.acceptable": "0.3",
            })
        );
        assert_eq!(
            inside["Mounts"],
            json!([
                {"Type": "bind", "Source": "/srv/mnist", "Target": "/data", "ReadOnly": true},
                {"Type": "volume", "Source": "checkpoints", "Target": "/ckpt", "ReadOnly": false},
            ])
        );
        let server = made.first().and_then(|spec| spec.task_template.clone()).unwrap();
        let reserved = server.resources.and_then(|resources| resources.reservations).unwrap();
        let asked = (reserved.nano_cpus, reserved.memory_bytes);
        assert_eq!(asked, (Some(500_000_000), Some(256_000_000)));
    }

    #[test]
    fn task_identity_is_read_back_from_labels() {
        let gang = Gang::parse(EXAMPLE).unwrap();
        let made = services(&gang, "training").unwrap();
        let labels = made.last().and_then(|spec| spec.labels.clone()).unwrap();
        let expected = TaskIdentity {
            job: "mnist".to_owned(),
            role: Role::Worker,
            index: 2,
            servers: 2,
            min: 2,
            max: 3,
            node: Some("w1".to_owned()),
        };
        let read = TaskIdentity::read(|label| labels.get(label).map(String::as_str));
        assert_eq!(read, Some(expected));
        assert_eq!(TaskIdentity::read(|_| None), None);
    }

    proptest! {
        #[test]
        fn reading_any_labels_never_panics(task in "[a-z/0-9]{0,9}", size in "[0-9/-]{0,12}") {
            let labels = BTreeMap::from([(GANG, "a".to_owned()), (TASK, task), (SIZE, size)]);
            drop(TaskIdentity::read(|label| labels.get(label).map(String::as_str)));
        }
    }
}
