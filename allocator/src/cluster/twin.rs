//! The service that takes the place of another one on another machine. Pure.
//!
//! A service's name is for ever, so its successor has another: the first one's, and where it runs. Both
//! service and container say what they take the place of.

use std::path::Path;

use bollard::models::{
    MountType, ServiceSpec, ServiceSpecMode, TaskSpecContainerSpec,
    TaskSpecRestartPolicyConditionEnum,
};

use super::engine::{place, scale};
use super::hands::MOVED_FROM;
use crate::labels::{CHECKPOINT, ENABLE, JOB};
use crate::migrate::{CarryError, Move};

/// On a service that was made for a move: what the job's first one was called.
pub(super) const FIRST: &str = "paceline.service";
/// On a service that is being moved: how far that has come.
pub(super) const MOVE: &str = "paceline.move";

/// A service like `source`, without a task, for the machine that the plan leads to.
pub(super) fn of(source: ServiceSpec, plan: &Move) -> Result<ServiceSpec, CarryError> {
    if let Some(why) = obstacle(&source) {
        return Err(CarryError::Refused(why));
    }
    let mut labels = source.labels.unwrap_or_default();
    labels.remove(MOVE);
    let name = source.name.clone().unwrap_or_default();
    let first = labels.entry(FIRST.to_owned()).or_insert(name).clone();
    labels.insert(MOVED_FROM.to_owned(), plan.name.clone());
    let mut task = source.task_template.unwrap_or_default();
    let mut inside = task.container_spec.unwrap_or_default();
    // A task's container is called after its service, and the job is to keep its name.
    let own = [(JOB.to_owned(), plan.job.clone()), (MOVED_FROM.to_owned(), plan.name.clone())];
    inside.labels.get_or_insert_default().extend(own);
    task.container_spec = Some(inside);
    let mut twin = ServiceSpec {
        name: Some(format!("{first}-to-{}", plan.to)),
        labels: Some(labels),
        task_template: Some(task),
        ..source
    };
    place(&mut twin, &plan.place);
    scale(&mut twin, 0);
    Ok(twin)
}

/// Why a service cannot be moved, if it cannot.
pub(super) fn obstacle(spec: &ServiceSpec) -> Option<String> {
    let task = spec.task_template.clone().unwrap_or_default();
    let inside = task.container_spec.unwrap_or_default();
    let labels = inside.labels.clone().unwrap_or_default();
    if labels.get(ENABLE).map(String::as_str) != Some("true") {
        return Some(format!("its containers have no label {ENABLE}=true"));
    }
    if !is_single(spec.mode.as_ref()) {
        return Some("its service has not just one task: one service per task can be moved".into());
    }
    let condition = task.restart_policy.and_then(|policy| policy.condition);
    if condition != Some(TaskSpecRestartPolicyConditionEnum::NONE) {
        let why = "the engine would start it again where it was: --restart-condition none";
        return Some(why.into());
    }
    if let Some(ports) = spec.endpoint_spec.as_ref().and_then(|spec| spec.ports.as_ref())
        && !ports.is_empty()
    {
        return Some("it publishes a port, which two services cannot have at once".into());
    }
    let Some(folder) = labels.get(CHECKPOINT) else {
        return Some(format!("it has no label {CHECKPOINT} to say where its checkpoints lie"));
    };
    (!is_shared(&inside, Path::new(folder)))
        .then(|| format!("{folder} ({CHECKPOINT}) is on no mount that other machines have, too"))
}

fn is_single(mode: Option<&ServiceSpecMode>) -> bool {
    let replicated = mode.and_then(|mode| mode.replicated.as_ref());
    replicated.is_some_and(|replicated| replicated.replicas.is_none_or(|replicas| replicas == 1))
}

/// Whether a folder is on a mount that was declared for all machines: a folder of each of them, or a
/// volume of a driver that is not each machine's own.
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
    use paceline_policy::decision::Cause;
    use serde_json::{Value, json};

    use super::*;
    use crate::migrate::procedure::Procedure;
    use crate::observe::container::HostCpu;

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
            course: Procedure::default(),
        }
    }

    /// A job that can be moved, but for a change.
    pub(in crate::cluster) fn service(change: impl FnOnce(&mut Value)) -> ServiceSpec {
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
        let twin = of(service(change), &plan()).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(twin).unwrap())
    }

    #[test]
    fn a_successor_is_the_same_elsewhere_under_another_name_and_does_not_run_yet() {
        let twin = made(|_| ()).unwrap();
        assert_eq!(twin["Name"], "vae-to-b");
        assert_eq!(twin["Mode"]["Replicated"]["Replicas"], 0);
        let constraints = &twin["TaskTemplate"]["Placement"]["Constraints"];
        assert_eq!(*constraints, json!(["node.labels.cpu==fast", "node.id==id-of-b"]));
        assert_eq!(
            twin["Labels"],
            json!({
                "team": "x",
                "paceline.moved-from": "id-of-service",
                "paceline.service": "vae",
            })
        );
        let inside = &twin["TaskTemplate"]["ContainerSpec"];
        assert_eq!(
            (&inside["Image"], &inside["Labels"]["paceline.job"]),
            (&json!("paceline/vae"), &json!("vae"))
        );
    }

    #[test]
    fn names_do_not_grow_from_move_to_move_and_no_record_is_taken_along() {
        let twin = made(|it| {
            it["Name"] = json!("vae-to-a");
            it["Labels"] = json!({"paceline.service": "vae", "paceline.move": "{}"});
        });
        let twin = twin.unwrap();
        assert_eq!(twin["Name"], "vae-to-b");
        assert_eq!(twin["Labels"].get("paceline.move"), None);
    }

    #[test]
    fn what_is_in_the_way_of_a_move_is_said() {
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
            (with(mount, json!({"Type": "volume", "Target": "/ckpt"})), "no mount that other"),
            (with(mount, json!({"Type": "bind", "Target": "/else"})), "no mount that other"),
            (
                with(mount, json!({"Type": "bind", "Target": "/ckpt", "ReadOnly": true})),
                "no mount that other",
            ),
            (with("/Mode/Replicated/Replicas", json!(2)), "not just one task"),
            (with("/Mode", json!({"Global": {}})), "not just one task"),
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
