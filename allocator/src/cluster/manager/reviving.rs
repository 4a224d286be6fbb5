//! Jobs that ended with their machines, which the manager has the engine start again.

use std::collections::{BTreeMap, BTreeSet};

use bollard::Docker;
use bollard::errors::Error as EngineError;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::Manager;
use crate::audit::Entry;
use crate::cluster::engine::SwarmEngine;
use crate::cluster::lost::{self, Lost};
use crate::cluster::swarm::{Member, Swarm};
use crate::live::snapshot::NodeView;

/// Those of them that were dealt with.
#[derive(Debug, Default)]
pub(super) struct Reviving {
    /// `None` in a dry run: nothing is started.
    engine: Option<SwarmEngine>,
    /// The tasks that others were or are being started in place of: what the engine says of them may
    /// be of the moment before.
    replaced: BTreeSet<String>,
    /// The tasks that were told of.
    told: BTreeSet<String>,
    tried: JoinSet<Tried>,
}

/// What has come of one.
type Tried = (Lost, Result<(), EngineError>);

impl Reviving {
    /// By this engine.
    pub(super) fn by(docker: Docker) -> Self {
        Self { engine: Some(SwarmEngine::new(docker)), ..Self::default() }
    }

    /// Forgets tasks that the engine no longer says were lost.
    fn forget(&mut self, swarm: &Swarm) {
        let known: BTreeSet<&String> = swarm.lost.values().map(|lost| &lost.task).collect();
        self.told.retain(|task| known.contains(task));
        self.replaced.retain(|task| known.contains(task));
    }

    /// Begins to have a job started again, once for each task that is over.
    fn start_again(&mut self, service: &str, lost: &Lost, swarm: &Swarm) {
        if !self.replaced.insert(lost.task.clone()) {
            return;
        }
        let Some(engine) = &self.engine else {
            info!(job = %lost.job, "dry run: would have it started again");
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

    /// Tells once which machine a job waits for. On one that is well it is about to be over.
    fn tell_of(&mut self, lost: &Lost, swarm: &Swarm) {
        let Some(why) = member(lost, swarm).and_then(|member| member.trouble.as_ref()) else {
            return;
        };
        if self.told.insert(lost.task.clone()) {
            let (job, machine) = (&lost.job, machine(lost, swarm));
            warn!(%job, "it waits for {machine}, where it may still run: {why}");
        }
    }
}

impl Manager {
    /// Has those started again that the engine says nothing is left of.
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
                self.reviving.tell_of(lost, swarm);
            }
        }
    }

    fn tried(&mut self, (lost, changed): Tried) {
        let Lost { job, task, over, .. } = lost;
        match changed {
            Ok(()) => {
                let why = over.unwrap_or_default().to_owned();
                info!(%job, "it is started again: {why}");
                self.write(&Entry::Revived { job, task, why });
            }
            Err(error) => {
                warn!(%job, "it could not be started again, which is tried again: {error}");
                self.reviving.replaced.remove(&task);
            }
        }
    }
}

/// The machine of a lost job, as long as it is one of the Swarm's.
fn member<'a>(lost: &Lost, swarm: &'a Swarm) -> Option<&'a Member> {
    swarm.members.iter().find(|member| Some(&member.id) == lost.node.as_ref())
}

/// What it is called: its id, where it is not.
fn machine<'a>(lost: &'a Lost, swarm: &'a Swarm) -> &'a str {
    let id = lost.node.as_deref().unwrap_or("no machine");
    member(lost, swarm).map_or(id, |member| &member.name)
}

/// Adds to the trouble of machines which jobs wait for them, and what else could be done.
pub(super) fn tell(nodes: &mut [NodeView], swarm: &Swarm) {
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for lost in swarm.lost.values().filter(|lost| lost.over.is_none()) {
        waiting.entry(machine(lost, swarm)).or_default().push(&lost.job);
    }
    for node in nodes {
        let Some(jobs) = waiting.get(node.name.as_str()) else { continue };
        // One that is drained is in no trouble, and what it ends is over in a moment.
        if let Some(trouble) = &mut node.trouble {
            let (jobs, name) = (jobs.join(", "), &node.name);
            *trouble = format!(
                "{trouble}; {jobs} may still run there, and waits for it: if it is gone for good, \
                 docker node rm --force {name}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_in_trouble_says_which_jobs_wait_for_it() {
        let member = Member {
            name: "w1".to_owned(),
            id: "id-of-w1".to_owned(),
            address: None,
            cpus: 2.0,
            memory: 1.0,
            trouble: Some("the engine says that it is down".to_owned()),
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
        tell(&mut nodes, &swarm);
        let told = nodes.map(|node| node.trouble.unwrap_or_default());
        assert_eq!(told[1], "it is down");
        assert!(told[0].starts_with("it is down; vae may still run there"), "{told:?}");
        assert!(told[0].ends_with("docker node rm --force w1"), "{told:?}");
    }
}
