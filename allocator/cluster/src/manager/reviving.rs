//! Restarts jobs that were lost with their machines.

use std::collections::{BTreeMap, BTreeSet};

use bollard::Docker;
use bollard::errors::Error as EngineError;
use paceline_api::audit::Entry;
use paceline_api::live::snapshot::NodeView;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::Manager;
use crate::engine::SwarmEngine;
use crate::lost::{self, Lost};
use crate::member::Member;
use crate::swarm::Swarm;

/// The lost jobs that were handled.
#[derive(Debug, Default)]
pub(super) struct Reviving {
    /// `None` in a dry run: no job is started.
    engine: Option<SwarmEngine>,
    /// Tasks whose replacement was requested. Docker's list may still show their old state.
    replaced: BTreeSet<String>,
    /// Tasks that wait for their machines, for which a warning was logged.
    warned: BTreeSet<String>,
    /// Tasks whose replacement failed, for which a warning was logged.
    failed: BTreeSet<String>,
    tried: JoinSet<Tried>,
}

/// The result of one restart.
type Tried = (Lost, Result<(), EngineError>);

impl Reviving {
    /// Restarts jobs through `docker`.
    pub(super) fn new(docker: Docker) -> Self {
        Self { engine: Some(SwarmEngine::new(docker)), ..Self::default() }
    }

    /// Forgets tasks that are not lost any more.
    fn forget(&mut self, swarm: &Swarm) {
        let known: BTreeSet<&String> = swarm.lost.values().map(|lost| &lost.task).collect();
        self.warned.retain(|task| known.contains(task));
        self.failed.retain(|task| known.contains(task));
        self.replaced.retain(|task| known.contains(task));
    }

    /// Begins to restart a job, once for each ended task.
    fn start_again(&mut self, service: &str, lost: &Lost, swarm: &Swarm) {
        if !self.replaced.insert(lost.task.clone()) {
            return;
        }
        let Some(engine) = &self.engine else {
            info!(job = %lost.job, "dry run: would restart job {}", lost.job);
            return;
        };
        let (engine, service, lost) = (engine.clone(), service.to_owned(), lost.clone());
        let members = swarm.members.clone();
        self.tried.spawn(async move {
            let again = |spec: &mut _| lost::start_again(spec, &members);
            let changed = engine.change(&service, again).await;
            (lost, changed)
        });
    }

    /// Warns once that a job waits for its machine. On a healthy machine the task ends soon.
    fn warn_once(&mut self, lost: &Lost, swarm: &Swarm) {
        let Some(why) = member(lost, swarm).and_then(|member| member.trouble.as_ref()) else {
            return;
        };
        if self.warned.insert(lost.task.clone()) {
            let (job, machine) = (&lost.job, machine(lost, swarm));
            warn!(%job, "job {job} waits for {machine}, where it may still run: {why}");
        }
    }
}

impl Manager {
    /// Restarts lost jobs whose task is over.
    pub(super) fn revive(&mut self, swarm: &Swarm) {
        while let Some(tried) = self.reviving.tried.try_join_next() {
            match tried {
                Ok(tried) => self.tried(tried),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        self.reviving.forget(swarm);
        for (service, lost) in &swarm.lost {
            if lost.over.is_some() {
                self.reviving.start_again(service, lost, swarm);
            } else {
                self.reviving.warn_once(lost, swarm);
            }
        }
    }

    fn tried(&mut self, (lost, changed): Tried) {
        let Lost { job, task, over, .. } = lost;
        match changed {
            Ok(()) => {
                let why = over.unwrap_or_default().to_owned();
                info!(%job, "restarting job {job}: {why}");
                self.write(&Entry::Revived { job, task, why });
            }
            Err(error) => {
                self.reviving.replaced.remove(&task);
                // It is tried in each round, also while Docker does not answer.
                if self.reviving.failed.insert(task) {
                    warn!(%job, "cannot restart job {job}: {error}; retrying");
                }
            }
        }
    }
}

/// The machine of a lost job, if it is still in the Swarm.
fn member<'a>(lost: &Lost, swarm: &'a Swarm) -> Option<&'a Member> {
    swarm.members.iter().find(|member| Some(&member.id) == lost.node.as_ref())
}

/// The machine's name, or its id if it has left the Swarm.
fn machine<'a>(lost: &'a Lost, swarm: &'a Swarm) -> &'a str {
    let id = lost.node.as_deref().unwrap_or("no machine");
    member(lost, swarm).map_or(id, |member| &member.name)
}

/// Adds to the trouble of machines the jobs that wait for them, and how to release these.
pub(super) fn add_waiting_jobs(nodes: &mut [NodeView], swarm: &Swarm) {
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for lost in swarm.lost.values().filter(|lost| lost.over.is_none()) {
        waiting.entry(machine(lost, swarm)).or_default().push(&lost.job);
    }
    for node in nodes {
        let Some(jobs) = waiting.get(node.name.as_str()) else { continue };
        // A drained machine has no trouble, and its tasks end soon.
        if let Some(trouble) = &mut node.trouble {
            let (jobs, name) = (jobs.join(", "), &node.name);
            *trouble = format!(
                "{trouble}; {jobs} may still run there, and waits for it; if the machine is gone \
                 for good, run docker node rm --force {name}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_in_trouble_names_the_jobs_that_wait_for_it() {
        let member = Member {
            name: "w1".to_owned(),
            id: "id-of-w1".to_owned(),
            address: None,
            cpus: 2.0,
            memory: 1.0,
            trouble: Some("Docker reports it as down".to_owned()),
            takes_tasks: true,
        };
        let lost = |job: &str, over| Lost {
            job: job.to_owned(),
            task: format!("task of {job}"),
            node: Some("id-of-w1".to_owned()),
            over,
        };
        let swarm = Swarm {
            members: vec![member],
            lost: BTreeMap::from([
                ("1".to_owned(), lost("vae", None)),
                ("2".to_owned(), lost("gru", Some("why"))),
            ]),
            ..Swarm::default()
        };
        let node = |name: &str| NodeView {
            name: name.to_owned(),
            trouble: Some("it is down".to_owned()),
            ..NodeView::default()
        };
        let mut nodes = [node("w1"), node("w2")];
        add_waiting_jobs(&mut nodes, &swarm);
        let trouble = nodes.map(|node| node.trouble.unwrap_or_default());
        assert_eq!(trouble[1], "it is down");
        assert!(trouble[0].starts_with("it is down; vae may still run there"), "{trouble:?}");
        assert!(trouble[0].ends_with("docker node rm --force w1"), "{trouble:?}");
    }
}
