//! The service that replaces another one on another machine. Pure.
//!
//! Docker cannot rename a service, so the replacement has a name of its own: that of the job's
//! first service, and the machine. Both service and container have a label that names the service
//! they replace.

use std::path::Path;

use bollard::models::{
    MountType, ServiceSpec, ServiceSpecMode, TaskSpecContainerSpec,
    TaskSpecRestartPolicyConditionEnum,
};
use paceline_api::labels::{CHECKPOINT, ENABLE, JOB, MOVED_FROM};
use paceline_node::migration::{Move, StepError};

use super::engine::{place, scale};

/// Label of a service that was created for a move: the name of the job's first service.
pub(super) const FIRST: &str = "paceline.service";
/// Label of a service that is being moved: the journal entry.
pub(super) const MOVE: &str = "paceline.move";

/// A service like `source` on the plan's target machine, still without a task.
pub(super) fn replacement_spec(source: ServiceSpec, plan: &Move) -> Result<ServiceSpec, StepError> {
    if let Some(why) = obstacle(&source) {
        return Err(StepError::Refused(why));
    }
    let mut labels = source.labels.unwrap_or_default();
    labels.remove(MOVE);
    let name = source.name.clone().unwrap_or_default();
    let first = labels.entry(FIRST.to_owned()).or_insert(name).clone();
    labels.insert(MOVED_FROM.to_owned(), plan.name.clone());
    let mut task = source.task_template.unwrap_or_default();
    let mut inside = task.container_spec.unwrap_or_default();
    // Docker names a task's container after its service, but the job keeps its name.
    let own = [(JOB.to_owned(), plan.job.clone()), (MOVED_FROM.to_owned(), plan.name.clone())];
    inside.labels.get_or_insert_default().extend(own);
    task.container_spec = Some(inside);
    let mut replacement = ServiceSpec {
        name: Some(format!("{first}-to-{}", plan.to)),
        labels: Some(labels),
        task_template: Some(task),
        ..source
    };
    place(&mut replacement, &plan.place);
    scale(&mut replacement, 0);
    Ok(replacement)
}

/// Why a service cannot be moved, if so.
pub(super) fn obstacle(spec: &ServiceSpec) -> Option<String> {
    let task = spec.task_template.clone().unwrap_or_default();
    let inside = task.container_spec.unwrap_or_default();
    let labels = inside.labels.clone().unwrap_or_default();
    if labels.get(ENABLE).map(String::as_str) != Some("true") {
        return Some(format!("its containers have no label {ENABLE}=true"));
    }
    if !is_single(spec.mode.as_ref()) {
        return Some("its service must have exactly one task".into());
    }
    let condition = task.restart_policy.and_then(|policy| policy.condition);
    if condition != Some(TaskSpecRestartPolicyConditionEnum::NONE) {
        let why = "Docker would restart it on its old machine; set --restart-condition none";
        return Some(why.into());
    }
    if let Some(ports) = spec.endpoint_spec.as_ref().and_then(|spec| spec.ports.as_ref())
        && !ports.is_empty()
    {
        return Some("it publishes a port, which two services cannot share during a move".into());
    }
    let Some(folder) = labels.get(CHECKPOINT) else {
        return Some(format!("it has no label {CHECKPOINT} with the folder of its checkpoints"));
    };
    (!is_shared(&inside, Path::new(folder)))
        .then(|| format!("{folder} ({CHECKPOINT}) is not on a mount that other machines share"))
}

fn is_single(mode: Option<&ServiceSpecMode>) -> bool {
    let replicated = mode.and_then(|mode| mode.replicated.as_ref());
    replicated.is_some_and(|replicated| replicated.replicas.is_none_or(|replicas| replicas == 1))
}

/// Whether a folder is on a mount that all machines share: a bind mount, or a volume whose driver
/// is not local to one machine.
fn is_shared(inside: &TaskSpecContainerSpec, folder: &Path) -> bool {
    let mounts = inside.mounts.as_deref().unwrap_or_default();
    mounts.iter().any(|mount| {
        let target = mount.target.as_deref().map(Path::new);
        let driver =
            mount.volume_options.as_ref().and_then(|options| options.driver_config.clone());
        let far = driver.is_some_and(|driver| {
            let has_options = driver.options.is_some_and(|options| !options.is_empty());
            driver.name.is_some_and(|name| name != "local") || has_options
        });
        target.is_some_and(|target| folder.starts_with(target))
            && mount.read_only != Some(true)
            && match mount.typ {
                Some(MountType::BIND) => true,
                Some(MountType::VOLUME) => far,
                _ => false,
            }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use paceline_node::migration::procedure::Procedure;
    use paceline_policy::decision::Cause;
    use paceline_runtime::HostCpu;
    use serde_json::{Value, json};

    use super::*;

    fn plan() -> Move {
        Move {
            job: "vae".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            place: "id-of-b".to_owned(),
            reason: Cause::Converged,
            source: "c0ffee".to_owned(),
            name: "id-of-service".to_owned(),
            limits: HostCpu::default(),
            saved: None,
            procedure: Procedure::default(),
        }
    }

    /// A movable job, apart from `change`.
    pub(crate) fn service(change: impl FnOnce(&mut Value)) -> ServiceSpec {
        let mut spec = json!({
            "Name": "vae",
            "Labels": {"team": "x"},
            "TaskTemplate": {
                "ContainerSpec": {
                    "Image": "paceline/vae",
                    "Labels": {"paceline.enable": "true", "paceline.checkpoint": "/ckpt/vae"},
                    "Mounts": [{"Type": "bind", "Source": "/nfs", "Target": "/ckpt"}],
                },
                "RestartPolicy": {"Condition": "none"},
                "Placement": {"Constraints": ["node.id == id-of-a", "node.labels.cpu==fast"]},
            },
            "Mode": {"Replicated": {"Replicas": 1}},
        });
        change(&mut spec);
        serde_json::from_value(spec).unwrap()
    }

    fn made(change: impl FnOnce(&mut Value)) -> Result<Value, String> {
        let replacement =
            replacement_spec(service(change), &plan()).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(replacement).unwrap())
    }

    #[test]
    fn replacement_is_the_same_service_elsewhere_without_a_task() {
        let replacement = made(|_| ()).unwrap();
        assert_eq!(replacement["Name"], "vae-to-b");
        assert_eq!(replacement["Mode"]["Replicated"]["Replicas"], 0);
        let constraints = &replacement["TaskTemplate"]["Placement"]["Constraints"];
        assert_eq!(*constraints, json!(["node.labels.cpu==fast", "node.id==id-of-b"]));
        assert_eq!(
            replacement["Labels"],
            json!({
                "team": "x",
                "paceline.moved-from": "id-of-service",
                "paceline.service": "vae",
            })
        );
        let inside = &replacement["TaskTemplate"]["ContainerSpec"];
        assert_eq!(
            (&inside["Image"], &inside["Labels"]["paceline.job"]),
            (&json!("paceline/vae"), &json!("vae"))
        );
    }

    #[test]
    fn repeated_moves_keep_the_name_short_and_drop_the_journal() {
        let replacement = made(|it| {
            it["Name"] = json!("vae-to-a");
            it["Labels"] = json!({"paceline.service": "vae", "paceline.move": "{}"});
        });
        let replacement = replacement.unwrap();
        assert_eq!(replacement["Name"], "vae-to-b");
        assert_eq!(replacement["Labels"].get("paceline.move"), None);
    }

    #[test]
    fn obstacle_to_a_move_is_named() {
        let with = |path: &'static str, value: Value| {
            move |it: &mut Value| *it.pointer_mut(path).unwrap() = value
        };
        let inside = "/TaskTemplate/ContainerSpec";
        let labels = format!("{inside}/Labels").leak();
        let mount = format!("{inside}/Mounts/0").leak();
        let nfs = json!({"Type": "volume", "Target": "/ckpt",
                         "VolumeOptions": {"DriverConfig": {"Name": "local", "Options": {"type": "nfs"}}}});
        assert!(made(with(mount, nfs)).is_ok());
        for (change, words) in [
            (with(labels, json!({})), "no label paceline.enable=true"),
            (with(labels, json!({"paceline.enable": "true"})), "no label paceline.checkpoint"),
            (
                with(mount, json!({"Type": "volume", "Target": "/ckpt"})),
                "not on a mount that other",
            ),
            (with(mount, json!({"Type": "bind", "Target": "/else"})), "not on a mount that other"),
            (
                with(mount, json!({"Type": "bind", "Target": "/ckpt", "ReadOnly": true})),
                "not on a mount that other",
            ),
            (with("/Mode/Replicated/Replicas", json!(2)), "exactly one task"),
            (with("/Mode", json!({"Global": {}})), "exactly one task"),
            (
                with("/TaskTemplate/RestartPolicy/Condition", json!("any")),
                "--restart-condition none",
            ),
        ] {
            let why = made(change).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        let port = |it: &mut Value| {
            it["EndpointSpec"] = json!({"Ports": [{"TargetPort": 80, "PublishedPort": 80}]});
        };
        assert!(made(port).unwrap_err().contains("publishes a port"));
    }
}
