//! The cluster as its policy sees it. Pure: what agents have said goes in, with the moment at which
//! it was heard, and what is decided comes out.
//!
//! Agents count by clocks of their own. What one read at its second t was read, here, at t and its
//! *lead*: the least that its answers were ever late by. So rates are over the agent's own times, and
//! an answer that takes long is no job that stands still.

mod job;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paceline_policy::{Cluster, Decision, Effect, Event, Frame, JobId, Moment, NodeSpec, Policy};
use paceline_wire::Targets;

use super::swarm::Member;
use crate::live::Snapshot;
use crate::live::snapshot::{JobView, NodeView, Standing};

/// All machines, what runs there, and the policy.
#[derive(Debug)]
pub struct World {
    engine: Cluster,
    /// By name.
    machines: BTreeMap<String, Machine>,
    decision: Option<Decision>,
    /// What jobs are called, and on which machine they are.
    names: BTreeMap<JobId, String>,
    /// Services that are to take the place of others, by their ids.
    heirs: BTreeSet<String>,
    /// Containers that were given up: their agents may not know it yet.
    given_up: BTreeSet<String>,
}

/// A machine that the engine tells of.
#[derive(Debug)]
struct Machine {
    member: Member,
    agent: Option<Agent>,
    /// Why nothing new is known of it.
    trouble: Option<String>,
}

/// What has been heard of an agent since its run began.
#[derive(Debug)]
struct Agent {
    latest: Arc<Snapshot>,
    /// Which run it is: another one counts its seconds anew.
    run: (u32, u64),
    /// In seconds.
    lead: f64,
    /// The last moment that anything was told of.
    told: Moment,
    /// By their containers.
    jobs: BTreeMap<String, Known>,
}

/// A job that the policy knows.
#[derive(Debug)]
struct Known {
    id: JobId,
    targets: Targets,
    /// Targets that it has reached: acceptable, objective.
    reached: (bool, bool),
    /// It is frozen, and on its way to another machine.
    away: bool,
}

/// What a run of the policy has come to.
#[derive(Debug)]
pub struct Decided {
    /// What it saw.
    pub frame: Frame,
    /// What it said.
    pub decision: Decision,
    /// When it is to run next.
    pub wake_at: Moment,
}

impl World {
    /// A cluster without machines.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let engine = Cluster::of_machines(policy);
        Self {
            engine,
            machines: BTreeMap::new(),
            decision: None,
            names: BTreeMap::new(),
            heirs: BTreeSet::new(),
            given_up: BTreeSet::new(),
        }
    }

    /// These are the machines now. Whether one has come or gone. On one that the engine says is in
    /// trouble nothing runs that counts, and no job goes to one that takes no tasks.
    pub fn machines(&mut self, members: &[Member]) -> bool {
        let is_gone = |name: &String, machine: &mut Machine| {
            let same = |member: &Member| member.name == *name && member.id == machine.member.id;
            !members.iter().any(same)
        };
        let gone = self.machines.extract_if(.., is_gone).map(|(name, _)| name);
        let gone: Vec<String> = gone.collect();
        for name in &gone {
            self.part_with(name);
        }
        let mut news = !gone.is_empty();
        for member in members {
            let machine = self.machines.entry(member.name.clone()).or_insert_with(|| {
                news = true;
                Machine { member: member.clone(), agent: None, trouble: None }
            });
            machine.trouble.clone_from(&member.trouble);
            machine.member.clone_from(member);
            if member.trouble.is_none() {
                let spec = NodeSpec { name: member.name.clone(), cpus: member.cpus };
                self.engine.join(&spec, member.memory);
                self.engine.takes_jobs(&member.name, member.takes_tasks);
            } else if machine.agent.take().is_some() {
                self.part_with(&member.name);
                news = true;
            }
        }
        news
    }

    fn part_with(&mut self, name: &str) {
        self.engine.part_with(name);
        self.names.retain(|_, machine| machine != name);
    }

    /// An agent does not answer, for this reason: what it said last stands.
    pub(super) fn silent(&mut self, name: &str, why: &str) {
        if let Some(machine) = self.machines.get_mut(name)
            && machine.member.trouble.is_none()
        {
            machine.trouble = Some(why.to_owned());
        }
    }

    /// An agent has said this, which was heard at `now`. Whether that is news to decide on: a job has
    /// come, gone, or reached a target.
    pub fn heard(&mut self, now: Moment, name: &str, said: &Arc<Snapshot>) -> bool {
        let (heirs, given_up) = (&self.heirs, &self.given_up);
        let counts = |view: &JobView| {
            let is_heir = view.task.as_ref().is_some_and(|task| heirs.contains(&task.service));
            view.standing.is_managed() && !is_heir && !given_up.contains(&view.container)
        };
        let Some(machine) = self.machines.get_mut(name) else { return false };
        if machine.member.trouble.is_some() {
            return false;
        }
        machine.trouble = None;
        if machine.agent.as_ref().is_some_and(|agent| Arc::ptr_eq(&agent.latest, said)) {
            return false;
        }
        let first = machine.agent.is_none();
        let agent = machine.agent.get_or_insert_with(|| Agent::new(said));
        agent.hear(now, said);
        let gone = agent.part(&mut self.engine, now, &mut self.names);
        let here = said.jobs.iter().filter(|view| counts(view));
        let come = agent.meet(&mut self.engine, (now, !first), (name, here), &mut self.names);
        agent.relay(&mut self.engine, now, machine.member.memory);
        gone || come
    }

    /// Runs the policy.
    pub fn decide(&mut self, now: Moment) -> Option<Decided> {
        let (mut decided, mut wake_at) = (None, now);
        for effect in self.engine.step(now, Event::Decide) {
            match effect {
                Effect::Decided(both) => decided = Some(*both),
                Effect::WakeAt(at) => wake_at = at,
                // Limits are the agents' own business, and so are the ends of jobs.
                Effect::Set(_) | Effect::End(_) => {}
            }
        }
        let (frame, decision) = decided?;
        self.decision = Some(decision.clone());
        Some(Decided { frame, decision, wake_at })
    }

    /// Where a job is, as its agent shows it; nowhere while it is on its way.
    pub(super) fn find(&self, id: &JobId) -> Option<(&str, &JobView)> {
        let (_, name) = self.names.get_key_value(id)?;
        let agent = self.machines.get(name)?.agent.as_ref()?;
        let at_home = |(_, known): &(&String, &Known)| known.id == *id && !known.away;
        let (container, _) = agent.jobs.iter().find(at_home)?;
        let view = agent.latest.jobs.iter().find(|view| view.container == *container)?;
        Some((name.as_str(), view))
    }

    /// Whether the policy knows a job of this name.
    pub(super) fn knows(&self, id: &JobId) -> bool {
        self.names.contains_key(id)
    }

    /// A service is to take another one's place, and is no job of its own until then.
    pub(super) fn withhold(&mut self, service: String) {
        self.heirs.insert(service);
    }

    /// A job is frozen, and on its way to another machine.
    pub(super) fn depart(&mut self, now: Moment, id: &JobId, to: &str) {
        if let Some(known) = self.known(id) {
            known.away = true;
            self.counts_on(now, id, to);
        }
    }

    fn known(&mut self, id: &JobId) -> Option<&mut Known> {
        let agent = self.machines.get_mut(self.names.get(id)?)?.agent.as_mut()?;
        agent.jobs.values_mut().find(|known| known.id == *id)
    }

    /// A job runs on its new machine, and its old container is no more.
    pub(super) fn arrived(&mut self, id: &JobId, container: String, service: Option<&str>) {
        self.forget(id);
        // Those that no agent speaks of any more need not be remembered.
        let agents = self.machines.values().filter_map(|machine| machine.agent.as_ref());
        let said: BTreeSet<&String> =
            agents.flat_map(|agent| &agent.latest.jobs).map(|view| &view.container).collect();
        self.given_up.retain(|container| said.contains(container));
        self.given_up.insert(container);
        service.map(|service| self.heirs.remove(service));
    }

    /// A job goes on where it was: it is met there anew.
    pub(super) fn stays(&mut self, now: Moment, id: &JobId, from: &str, service: Option<&str>) {
        if self.known(id).is_some_and(|known| known.away) {
            self.forget(id);
            self.counts_on(now, id, from);
        }
        service.map(|service| self.heirs.remove(service));
    }

    fn counts_on(&mut self, now: Moment, id: &JobId, node: &str) {
        let asked = self.engine.step(now, Event::Moving(id.clone(), node.to_owned()));
        debug_assert!(asked.is_empty(), "only a look and a decision have effects");
    }

    fn forget(&mut self, id: &JobId) {
        let machine = self.names.remove(id).and_then(|name| self.machines.get_mut(&name));
        if let Some(agent) = machine.and_then(|machine| machine.agent.as_mut()) {
            agent.jobs.retain(|_, known| known.id != *id);
        }
    }

    /// The machines, as they are shown.
    pub(super) fn nodes(&self) -> Vec<NodeView> {
        let node = |machine: &Machine| NodeView {
            name: machine.member.name.clone(),
            cpus: machine.member.cpus,
            memory: machine.member.memory,
            cpu: machine.agent.as_ref().and_then(|agent| agent.latest.node.cpu),
            trouble: machine.trouble.clone(),
        };
        self.machines.values().map(node).collect()
    }

    /// The jobs of all machines, as they are shown, with what keeps services from being moved.
    pub fn jobs(&self, obstacles: &BTreeMap<String, String>) -> Vec<JobView> {
        let agents = self.machines.iter().filter_map(|(name, machine)| {
            machine.agent.as_ref().map(|agent| (name, machine, agent))
        });
        let views = agents.flat_map(|(name, machine, agent)| {
            let views = agent.latest.jobs.iter();
            views
                .filter(|view| !self.is_heir(view) && !self.given_up.contains(&view.container))
                .map(move |view| self.view((name, machine, agent), view, obstacles))
        });
        let mut views: Vec<JobView> = views.collect();
        views.sort_by(|a, b| (&a.job, &a.container).cmp(&(&b.job, &b.container)));
        views
    }

    fn is_heir(&self, view: &JobView) -> bool {
        view.task.as_ref().is_some_and(|task| self.heirs.contains(&task.service))
    }

    fn view(
        &self,
        (name, machine, agent): (&str, &Machine, &Agent),
        view: &JobView,
        obstacles: &BTreeMap<String, String>,
    ) -> JobView {
        let known = agent.jobs.get(&view.container);
        let id = known.map(|known| &known.id);
        let away = known.is_some_and(|known| known.away);
        let unmovable = match &view.task {
            Some(task) => obstacles.get(&task.service).cloned(),
            None => Some("it is no task of the Swarm".to_owned()),
        };
        let said = self.decision.as_ref().zip(id).and_then(|(said, id)| said.jobs.get(id));
        JobView {
            job: id.map_or_else(|| view.job.clone(), JobId::to_string),
            node: Some(name.to_owned()),
            standing: if away { Standing::Moving } else { view.standing },
            unmovable,
            trouble: view.trouble.clone().or_else(|| machine.trouble.clone()),
            class: said.map(|said| said.class.to_owned()),
            score: said.and_then(|said| said.score),
            why: said.map(|said| said.why.to_string()),
            ..view.clone()
        }
    }
}
