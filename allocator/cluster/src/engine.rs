//! The services and tasks of a Swarm, as requests to Docker.

use std::collections::BTreeMap;

use bollard::Docker;
use bollard::errors::Error as EngineError;
use bollard::models::{Service, ServiceSpec, Task, TaskState};
use bollard::query_parameters::{
    InspectServiceOptions, ListServicesOptionsBuilder, ListTasksOptions, ListTasksOptionsBuilder,
    UpdateServiceOptionsBuilder,
};

/// Docker counts CPUs in billionths.
pub(super) const NANO: f64 = 1e9;
/// The constraint that places a task on a machine, by its id in the Swarm.
const NODE: &str = "node.id==";
/// How often a change is repeated when another client has changed the service meanwhile.
const MAX_RETRIES: u32 = 5;

/// The Docker engine of a Swarm manager.
#[derive(Clone, Debug)]
pub(super) struct SwarmEngine {
    docker: Docker,
}

impl SwarmEngine {
    pub(super) fn new(docker: Docker) -> Self {
        Self { docker }
    }

    /// Creates a service and returns its id.
    pub(super) async fn create(&self, spec: ServiceSpec) -> Result<Option<String>, EngineError> {
        Ok(self.docker.create_service(spec, None).await?.id)
    }

    /// A service by its id or name, if there is one.
    pub(super) async fn service(&self, id: &str) -> Result<Option<Service>, EngineError> {
        match self.docker.inspect_service(id, None::<InspectServiceOptions>).await {
            Ok(service) => Ok(Some(service)),
            Err(error) if is(&error, 404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The services with a label, `name` or `name=value`.
    pub(super) async fn labelled(&self, label: &str) -> Result<Vec<Service>, EngineError> {
        let filters = [("label", vec![label])].into_iter().collect();
        let options = ListServicesOptionsBuilder::default().filters(&filters).build();
        self.docker.list_services(Some(options)).await
    }

    /// The tasks of a service, ended ones included.
    pub(super) async fn tasks_of(&self, service: &str) -> Result<Vec<Task>, EngineError> {
        let filters = [("service", vec![service])].into_iter().collect();
        let options = ListTasksOptionsBuilder::default().filters(&filters).build();
        self.docker.list_tasks(Some(options)).await
    }

    /// All tasks.
    pub(super) async fn tasks(&self) -> Result<Vec<Task>, EngineError> {
        self.docker.list_tasks(None::<ListTasksOptions>).await
    }

    /// Changes the current specification of a service. Does nothing if the service does not exist.
    pub(super) async fn change(
        &self,
        id: &str,
        change: impl Fn(&mut ServiceSpec) + Sync,
    ) -> Result<(), EngineError> {
        let mut tries = 0;
        loop {
            let Some(service) = self.service(id).await? else { return Ok(()) };
            let mut spec = service.spec.unwrap_or_default();
            let before = spec.clone();
            change(&mut spec);
            if spec == before {
                return Ok(());
            }
            let version = service.version.and_then(|version| version.index).unwrap_or_default();
            let version = i32::try_from(version).unwrap_or(i32::MAX);
            let options = UpdateServiceOptionsBuilder::default().version(version).build();
            match self.docker.update_service(id, spec, options, None).await {
                Ok(_) => return Ok(()),
                Err(EngineError::DockerResponseServerError { message, .. })
                    if message.contains("out of sequence") && tries < MAX_RETRIES =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes a service, if it exists.
    pub(super) async fn remove(&self, id: &str) -> Result<(), EngineError> {
        match self.docker.delete_service(id).await {
            Err(error) if !is(&error, 404) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether Docker answered with this status.
pub(super) fn is(error: &EngineError, code: u16) -> bool {
    matches!(error, EngineError::DockerResponseServerError { status_code, .. } if *status_code == code)
}

/// Sets how many tasks a service has.
pub(super) fn scale(spec: &mut ServiceSpec, replicas: i64) {
    let mode = spec.mode.get_or_insert_default();
    mode.replicated.get_or_insert_default().replicas = Some(replicas);
}

/// Places a service's tasks on one machine, by its id. It replaces earlier placement constraints.
pub(super) fn place(spec: &mut ServiceSpec, node: &str) {
    let placement = spec.task_template.get_or_insert_default().placement.get_or_insert_default();
    let constraints = placement.constraints.get_or_insert_default();
    constraints.retain(|constraint| !is_place(constraint));
    constraints.push(format!("{NODE}{node}"));
}

/// Removes the placement on one machine; other constraints stay.
pub(super) fn unplace(spec: &mut ServiceSpec) {
    let placement = spec.task_template.as_mut().and_then(|task| task.placement.as_mut());
    if let Some(constraints) = placement.and_then(|placement| placement.constraints.as_mut()) {
        constraints.retain(|constraint| !is_place(constraint));
    }
}

/// Has Docker create new tasks for a service that is otherwise unchanged.
pub(super) fn force(spec: &mut ServiceSpec) {
    let task = spec.task_template.get_or_insert_default();
    task.force_update = Some(task.force_update.unwrap_or_default().wrapping_add(1));
}

/// The id of the machine that a service's tasks are placed on, if any.
pub(super) fn placed(spec: &ServiceSpec) -> Option<&str> {
    let placement = spec.task_template.as_ref()?.placement.as_ref()?;
    placement.constraints.as_ref()?.iter().find_map(|constraint| constraint.strip_prefix(NODE))
}

/// Whether a constraint names one machine.
fn is_place(constraint: &str) -> bool {
    let plain: String = constraint.chars().filter(|c| !c.is_whitespace()).collect();
    plain.starts_with(NODE) || plain.starts_with("node.hostname==")
}

/// Tasks by the ids of their services.
pub(super) fn by_service(tasks: &[Task]) -> BTreeMap<&str, Vec<&Task>> {
    let mut of_service: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        if let Some(service) = task.service_id.as_deref() {
            of_service.entry(service).or_default().push(task);
        }
    }
    of_service
}

/// Whether this is the state of an ended task.
pub(super) const fn is_over(state: TaskState) -> bool {
    matches!(
        state,
        TaskState::COMPLETE
            | TaskState::SHUTDOWN
            | TaskState::FAILED
            | TaskState::REJECTED
            | TaskState::REMOVE
            | TaskState::ORPHANED
    )
}
