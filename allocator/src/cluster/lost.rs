//! Jobs whose task the engine has ended because the machine was lost to it: stopped, cut off, drained or
//! removed. An engine that may not start a task again by itself leaves it at that. Pure.
//!
//! What goes on on a machine that does not answer, nobody knows. So a job goes on elsewhere, from its
//! checkpoint, only once the engine says that its task is over: the machine is back and has ended it, or
//! whoever looks after the Swarm has removed the machine.

use bollard::models::{Service, ServiceSpec, Task, TaskState};

use super::engine::{force, placed, unplace};
use super::gangs::spec::GANG;
use super::hands::MOVED_FROM;
use super::swarm::Member;
use super::twin::{self, FIRST, MOVE};
use crate::labels::JOB;

/// A job that can go on from its checkpoint, and whose task was ended from without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The job.
    pub job: String,
    /// The task's id.
    pub task: String,
    /// The id of its machine, if it ever had one.
    pub node: Option<String>,
    /// Whether the engine says that nothing of it runs any more, and why it ended.
    pub over: Option<&'static str>,
}

/// How the job of a service was lost, by its tasks, if it was.
pub(super) fn of(service: &Service, tasks: &[&Task]) -> Option<Lost> {
    let spec = service.spec.as_ref()?;
    let has = |label| spec.labels.as_ref().is_some_and(|labels| labels.contains_key(label));
    // Services of a move are the move's business, and tasks of distributed jobs their policy's.
    if [MOVE, MOVED_FROM, GANG].into_iter().any(has) || twin::obstacle(spec).is_some() {
        return None;
    }
    let last = tasks.iter().max_by_key(|task| task.created_at.as_deref())?;
    if last.desired_state != Some(TaskState::SHUTDOWN) {
        return None;
    }
    let over = match last.status.as_ref()?.state? {
        // It has come to its own end, or never began.
        TaskState::COMPLETE | TaskState::FAILED | TaskState::REJECTED | TaskState::REMOVE => {
            return None;
        }
        TaskState::SHUTDOWN => Some("the engine ended it when it lost its machine"),
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

/// Has the job of a service started again. A machine that a move has put it on is no longer its place,
/// if no tasks can go there.
pub(super) fn start_again(spec: &mut ServiceSpec, members: &[Member]) {
    let moved = spec.labels.as_ref().is_some_and(|labels| labels.contains_key(FIRST));
    let can = |member: &Member| member.takes_tasks && member.trouble.is_none();
    let stands = |id: &str| members.iter().any(|member| member.id == id && can(member));
    if moved && placed(spec).is_some_and(|id| !stands(id)) {
        unplace(spec);
    }
    force(spec);
}

/// What the job of a service is called.
fn job(spec: &ServiceSpec) -> String {
    let inside = spec.task_template.as_ref().and_then(|task| task.container_spec.as_ref());
    let named = inside.and_then(|inside| inside.labels.as_ref()?.get(JOB).cloned());
    named.or_else(|| spec.name.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::twin::tests::service as spec;

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

    fn stands(task: &Task) -> Option<bool> {
        of(&service(|_| ()), &[task]).map(|lost| lost.over.is_some())
    }

    #[test]
    fn a_job_is_lost_once_it_is_ended_from_without_and_over_once_the_engine_says_so() {
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
    fn the_last_task_of_a_service_counts() {
        let (ended, runs) = (task("1", "shutdown", "shutdown"), task("2", "running", "running"));
        assert_eq!(of(&service(|_| ()), &[&runs, &ended]), None);
        let again = task("3", "orphaned", "shutdown");
        let lost = of(&service(|_| ()), &[&runs, &again, &ended]).unwrap();
        assert_eq!((lost.task.as_str(), lost.job.as_str()), ("3", "vae"));
        assert_eq!(of(&service(|_| ()), &[]), None);
    }

    #[test]
    fn a_job_that_cannot_go_on_elsewhere_or_is_being_moved_is_left_alone() {
        let ended = task("1", "shutdown", "shutdown");
        let changes: [fn(&mut Value); 5] = [
            |it| it["Labels"][MOVE] = json!("{}"),
            |it| it["Labels"][MOVED_FROM] = json!("s0"),
            |it| it["Mode"]["Replicated"]["Replicas"] = json!(0),
            |it| it["TaskTemplate"]["RestartPolicy"]["Condition"] = json!("any"),
            |it| it["TaskTemplate"]["ContainerSpec"]["Labels"] = json!({}),
        ];
        for change in changes {
            assert_eq!(of(&service(change), &[&ended]), None);
        }
    }

    #[test]
    fn it_starts_again_where_its_owner_said_and_not_where_a_move_put_it_once_that_is_gone() {
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
