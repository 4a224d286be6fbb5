//! Jobs whose task Docker ended because it lost the machine: stopped, disconnected, drained or
//! removed. With the restart condition `none` Docker does not start the task again. Pure.
//!
//! On a machine that does not answer, the task may still run. So a job continues elsewhere, from
//! its checkpoint, only once Docker reports that its task is over. That is so when the machine is
//! back and has ended the task, or when an administrator has removed the machine from the Swarm.

use bollard::models::{Service, ServiceSpec, Task, TaskState};
use paceline_api::labels::{GANG, JOB, MOVED_FROM};

use super::engine::{force, placed, unplace};
use super::member::Member;
use super::replacement::{self, FIRST, MOVE};

/// A job that can continue from its checkpoint and whose task was ended by Docker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The job.
    pub job: String,
    /// The task's id.
    pub task: String,
    /// The id of its machine, if it ever had one.
    pub node: Option<String>,
    /// Why the task is over. `None` while it may still run.
    pub over: Option<&'static str>,
}

/// Finds out whether the job of a service is lost. `exists` is whether a service with an id exists.
pub(super) fn find(
    service: &Service,
    tasks: &[&Task],
    exists: impl Fn(&str) -> bool,
) -> Option<Lost> {
    let spec = service.spec.as_ref()?;
    let label = |name| spec.labels.as_ref().and_then(|labels| labels.get(name));
    // Moves handle their own services, and policies the tasks of distributed jobs. The source of a move and
    // its journal are gone once it cannot be undone. From then on the successor is an ordinary service, whose
    // label may have stayed.
    let is_moved = label(MOVE).is_some() || label(MOVED_FROM).is_some_and(|source| exists(source));
    if is_moved || label(GANG).is_some() || replacement::obstacle(spec).is_some() {
        return None;
    }
    let last = tasks.iter().max_by_key(|task| task.created_at.as_deref())?;
    if last.desired_state != Some(TaskState::SHUTDOWN) {
        return None;
    }
    let over = match last.status.as_ref()?.state? {
        // It ended by itself, or never started.
        TaskState::COMPLETE | TaskState::FAILED | TaskState::REJECTED | TaskState::REMOVE => {
            return None;
        }
        TaskState::SHUTDOWN => Some("Docker ended it when it lost the machine"),
        TaskState::ORPHANED => Some("its machine was removed from the Swarm"),
        TaskState::NEW
        | TaskState::ALLOCATED
        | TaskState::PENDING
        | TaskState::ASSIGNED
        | TaskState::ACCEPTED
        | TaskState::PREPARING
        | TaskState::READY
        | TaskState::STARTING
        | TaskState::RUNNING => None,
    };
    Some(Lost { job: job(spec), task: last.id.clone()?, node: last.node_id.clone(), over })
}

/// Starts the job of a service again. If a move placed it on a machine that takes no tasks now,
/// this placement is removed.
pub(super) fn start_again(spec: &mut ServiceSpec, members: &[Member]) {
    let moved = spec.labels.as_ref().is_some_and(|labels| labels.contains_key(FIRST));
    let can = |member: &Member| member.takes_tasks && member.trouble.is_none();
    let can_run = |id: &str| members.iter().any(|member| member.id == id && can(member));
    if moved && placed(spec).is_some_and(|id| !can_run(id)) {
        unplace(spec);
    }
    force(spec);
}

/// The name of a service's job.
fn job(spec: &ServiceSpec) -> String {
    let inside = spec.task_template.as_ref().and_then(|task| task.container_spec.as_ref());
    let named = inside.and_then(|inside| inside.labels.as_ref()?.get(JOB).cloned());
    named.or_else(|| spec.name.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::replacement::tests::service as spec;

    fn service(change: impl FnOnce(&mut Value)) -> Service {
        Service { id: Some("s".to_owned()), spec: Some(spec(change)), ..Service::default() }
    }

    fn task(id: &str, state: &str, desired: &str) -> Task {
        let task = json!({
            "ID": id,
            "CreatedAt": format!("2026-11-23T10:00:0{id}Z"),
            "NodeID": "n",
            "Status": {"State": state},
            "DesiredState": desired,
        });
        serde_json::from_value(task).unwrap()
    }

    /// What is found in a Swarm whose only other service has the id `s0`.
    fn found(service: &Service, tasks: &[&Task]) -> Option<Lost> {
        find(service, tasks, |id| id == "s0")
    }

    fn stands(task: &Task) -> Option<bool> {
        found(&service(|_| ()), &[task]).map(|lost| lost.over.is_some())
    }

    #[test]
    fn job_is_lost_if_docker_shuts_it_down_and_over_once_ended() {
        for (state, desired, expected) in [
            ("running", "running", None),
            ("pending", "running", None),
            ("running", "shutdown", Some(false)),
            ("starting", "shutdown", Some(false)),
            ("shutdown", "shutdown", Some(true)),
            ("orphaned", "shutdown", Some(true)),
            ("complete", "shutdown", None),
            ("failed", "shutdown", None),
            ("rejected", "shutdown", None),
            ("shutdown", "remove", None),
        ] {
            assert_eq!(stands(&task("1", state, desired)), expected, "{state} {desired}");
        }
    }

    #[test]
    fn last_task_of_a_service_decides() {
        let (ended, runs) = (task("1", "shutdown", "shutdown"), task("2", "running", "running"));
        assert_eq!(found(&service(|_| ()), &[&runs, &ended]), None);
        let again = task("3", "orphaned", "shutdown");
        let lost = found(&service(|_| ()), &[&runs, &again, &ended]).unwrap();
        assert_eq!((lost.task.as_str(), lost.job.as_str()), ("3", "vae"));
        assert_eq!(found(&service(|_| ()), &[]), None);
    }

    #[test]
    fn unmovable_or_moving_job_is_left_alone() {
        let ended = task("1", "shutdown", "shutdown");
        let changes: [fn(&mut Value); 5] = [
            |it| it["Labels"][MOVE] = json!("{}"),
            |it| it["Labels"][MOVED_FROM] = json!("s0"),
            |it| it["Mode"]["Replicated"]["Replicas"] = json!(0),
            |it| it["TaskTemplate"]["RestartPolicy"]["Condition"] = json!("any"),
            |it| it["TaskTemplate"]["ContainerSpec"]["Labels"] = json!({}),
        ];
        for change in changes {
            assert_eq!(found(&service(change), &[&ended]), None);
        }
    }

    #[test]
    fn moved_job_is_lost_once_the_source_of_its_move_is_gone() {
        let ended = task("1", "orphaned", "shutdown");
        for (source, lost) in [("s0", false), ("s9", true)] {
            let moved = service(|it| it["Labels"][MOVED_FROM] = json!(source));
            assert_eq!(found(&moved, &[&ended]).is_some(), lost, "{source}");
        }
    }

    #[test]
    fn restart_keeps_the_owners_machine_and_drops_a_lost_moves() {
        let member = |id: &str, trouble: Option<&str>| Member {
            name: id.to_owned(),
            id: id.to_owned(),
            address: None,
            cpus: 1.0,
            memory: 1.0,
            trouble: trouble.map(str::to_owned),
            takes_tasks: true,
        };
        let members = [member("well", None), member("down", Some("down"))];
        for (place, moved, expected) in [
            ("well", true, Some("well")),
            ("down", true, None),
            ("gone", true, None),
            ("gone", false, Some("gone")),
        ] {
            let mut spec = spec(|it| {
                let task = &mut it["TaskTemplate"];
                let constraints = json!([format!("node.id=={place}"), "node.labels.gpu==yes"]);
                task["Placement"] = json!({"Constraints": constraints});
                if moved {
                    it["Labels"][FIRST] = json!("vae");
                }
            });
            start_again(&mut spec, &members);
            assert_eq!(placed(&spec), expected, "{place} {moved}");
            let task = spec.task_template.unwrap();
            assert_eq!(task.force_update, Some(1));
            let constraints = task.placement.unwrap().constraints.unwrap();
            assert!(constraints.contains(&"node.labels.gpu==yes".to_owned()), "{constraints:?}");
        }
    }
}
