//! The cluster as its policy sees it. Pure: agents' snapshots and their times of arrival go in,
//! decisions come out.
//!
//! Each agent has a clock of its own. A value that an agent read at its time t was read at t +
//! *lead* on our clock. The lead is the smallest delay of its answers so far. So rates are computed
//! over the agent's times, and a late answer does not look like a stalled job.

mod job;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paceline_api::live::Snapshot;
use paceline_api::live::snapshot::{JobView, NodeView, Standing};
use paceline_policy::{Cluster, Decision, Effect, Event, Frame, JobId, Moment, NodeSpec, Policy};
use paceline_wire::Targets;

use super::member::Member;

/// All machines, what runs there, and the policy.
#[derive(Debug)]
pub struct World {
    engine: Cluster,
    /// Machines by name.
    machines: BTreeMap<String, Machine>,
    decision: Option<Decision>,
    /// The machine of each job.
    names: BTreeMap<JobId, String>,
    /// Ids of services that are about to replace others.
    replacements: BTreeSet<String>,
    /// Containers that a move left behind. Their agents may still report them.
    given_up: BTreeSet<String>,
}

/// A machine of the Swarm.
#[derive(Debug)]
struct Machine {
    member: Member,
    agent: Option<Agent>,
    /// Whether its agent has answered, and did so last time.
    answers: bool,
    /// Why it has no new report.
    trouble: Option<String>,
}

impl Machine {
    /// Whether a job may move there: only an agent can prove that the job goes on, and undo the move.
    fn accepts_jobs(&self) -> bool {
        self.member.takes_tasks && self.answers
    }
}

/// The reports of an agent's current run.
#[derive(Debug)]
struct Agent {
    latest: Arc<Snapshot>,
    /// Identifies the agent's run. Another run starts another clock.
    run: (u32, u64),
    /// Our clock minus the agent's, in seconds.
    lead: f64,
    /// The time of the last reading that the policy has seen.
    last_reported: Moment,
    /// Jobs by their containers.
    jobs: BTreeMap<String, KnownJob>,
}

/// A job that the policy knows.
#[derive(Debug)]
struct KnownJob {
    id: JobId,
    targets: Targets,
    /// Whether it has reached its acceptable target, and its objective.
    reached: (bool, bool),
    /// Whether it is frozen and moving to another machine.
    away: bool,
}

/// The result of one run of the policy.
#[derive(Debug)]
pub struct Decided {
    /// The frame that it answered.
    pub frame: Frame,
    /// Its answer.
    pub decision: Decision,
    /// When it must run next.
    pub wake_at: Moment,
}

impl World {
    /// A cluster without machines.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let engine = Cluster::for_machines(policy);
        Self {
            engine,
            machines: BTreeMap::new(),
            decision: None,
            names: BTreeMap::new(),
            replacements: BTreeSet::new(),
            given_up: BTreeSet::new(),
        }
    }

    /// Updates the machines, and returns whether any was added or removed. A machine in trouble
    /// has no jobs, and one that takes no tasks gets no new ones.
    pub fn machines(&mut self, members: &[Member]) -> bool {
        let is_gone = |name: &String, machine: &mut Machine| {
            let same = |member: &Member| member.name == *name && member.id == machine.member.id;
            !members.iter().any(same)
        };
        let gone = self.machines.extract_if(.., is_gone).map(|(name, _)| name);
        let gone: Vec<String> = gone.collect();
        for name in &gone {
            self.forget_machine(name);
        }
        let mut news = !gone.is_empty();
        for member in members {
            let machine = self.machines.entry(member.name.clone()).or_insert_with(|| {
                news = true;
                Machine { member: member.clone(), agent: None, answers: false, trouble: None }
            });
            machine.trouble.clone_from(&member.trouble);
            machine.member.clone_from(member);
            if member.trouble.is_none() {
                let spec = NodeSpec { name: member.name.clone(), cpus: member.cpus };
                self.engine.join(&spec, member.memory);
                self.engine.set_accepts_jobs(&member.name, machine.accepts_jobs());
            } else if machine.agent.take().is_some() {
                self.forget_machine(&member.name);
                news = true;
            }
        }
        news
    }

    fn forget_machine(&mut self, name: &str) {
        self.engine.leave(name);
        self.names.retain(|_, machine| machine != name);
    }

    /// Records that an agent does not answer, for this reason. Its last report stays valid.
    pub(super) fn unreachable(&mut self, name: &str, why: &str) {
        if let Some(machine) = self.machines.get_mut(name)
            && machine.member.trouble.is_none()
        {
            machine.trouble = Some(why.to_owned());
            machine.answers = false;
            self.engine.set_accepts_jobs(name, false);
        }
    }

    /// Whether the agent of a machine has answered, and did so last time.
    pub(super) fn answers(&self, name: &str) -> bool {
        self.machines.get(name).is_some_and(|machine| machine.answers)
    }

    /// Takes in an agent's snapshot, which arrived at `now`. Returns whether the policy should
    /// decide: a job was added or removed, or reached a target.
    pub fn receive(&mut self, now: Moment, name: &str, said: &Arc<Snapshot>) -> bool {
        let (replacements, given_up) = (&self.replacements, &self.given_up);
        let counts = |view: &JobView| {
            let task = view.task.as_ref();
            let replaces = task.is_some_and(|task| replacements.contains(&task.service));
            view.standing.is_managed() && !replaces && !given_up.contains(&view.container)
        };
        let Some(machine) = self.machines.get_mut(name) else { return false };
        if machine.member.trouble.is_some() {
            return false;
        }
        machine.trouble = None;
        machine.answers = true;
        self.engine.set_accepts_jobs(name, machine.accepts_jobs());
        if machine.agent.as_ref().is_some_and(|agent| Arc::ptr_eq(&agent.latest, said)) {
            return false;
        }
        let first = machine.agent.is_none();
        let agent = machine.agent.get_or_insert_with(|| Agent::new(said));
        agent.receive(now, said);
        let gone = agent.remove_gone(&mut self.engine, now, &mut self.names);
        let here = said.jobs.iter().filter(|view| counts(view));
        let come = agent.update(&mut self.engine, (now, !first), (name, here), &mut self.names);
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
                // Agents write limits and end jobs themselves.
                Effect::Set(_) | Effect::End(_) => {}
            }
        }
        let (frame, decision) = decided?;
        self.decision = Some(decision.clone());
        Some(Decided { frame, decision, wake_at })
    }

    /// The machine and the view of a job; `None` while it is moving.
    pub(super) fn find(&self, id: &JobId) -> Option<(&str, &JobView)> {
        let (_, name) = self.names.get_key_value(id)?;
        let agent = self.machines.get(name)?.agent.as_ref()?;
        let is_here = |(_, known): &(&String, &KnownJob)| known.id == *id && !known.away;
        let (container, _) = agent.jobs.iter().find(is_here)?;
        let view = agent.latest.jobs.iter().find(|view| view.container == *container)?;
        Some((name.as_str(), view))
    }

    /// Whether the policy knows a job of this name.
    pub(super) fn knows(&self, id: &JobId) -> bool {
        self.names.contains_key(id)
    }

    /// Hides a service that is about to replace another one.
    pub(super) fn hold_back(&mut self, service: String) {
        self.replacements.insert(service);
    }

    /// Records that a job is frozen and moving to another machine.
    pub(super) fn depart(&mut self, now: Moment, id: &JobId, to: &str) {
        if let Some(known) = self.known(id) {
            known.away = true;
            self.report_move(now, id, to);
        }
    }

    fn known(&mut self, id: &JobId) -> Option<&mut KnownJob> {
        let agent = self.machines.get_mut(self.names.get(id)?)?.agent.as_mut()?;
        agent.jobs.values_mut().find(|known| known.id == *id)
    }

    /// Records that a job runs on its new machine and its old container is gone.
    pub(super) fn arrived(&mut self, id: &JobId, container: String, service: Option<&str>) {
        self.forget(id);
        // Forget containers that no agent reports any more.
        let agents = self.machines.values().filter_map(|machine| machine.agent.as_ref());
        let said: BTreeSet<&String> =
            agents.flat_map(|agent| &agent.latest.jobs).map(|view| &view.container).collect();
        self.given_up.retain(|container| said.contains(container));
        self.given_up.insert(container);
        service.map(|service| self.replacements.remove(service));
    }

    /// Records that a job continues on its old machine. Its next report adds it again.
    pub(super) fn stays(&mut self, now: Moment, id: &JobId, from: &str, service: Option<&str>) {
        if self.known(id).is_some_and(|known| known.away) {
            self.forget(id);
            self.report_move(now, id, from);
        }
        service.map(|service| self.replacements.remove(service));
    }

    fn report_move(&mut self, now: Moment, id: &JobId, node: &str) {
        let asked = self.engine.step(now, Event::Moving(id.clone(), node.to_owned()));
        debug_assert!(asked.is_empty(), "only samples and decisions have effects");
    }

    fn forget(&mut self, id: &JobId) {
        let machine = self.names.remove(id).and_then(|name| self.machines.get_mut(&name));
        if let Some(agent) = machine.and_then(|machine| machine.agent.as_mut()) {
            agent.jobs.retain(|_, known| known.id != *id);
        }
    }

    /// The machines for display.
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

    /// The jobs of all machines for display, with the obstacles to moving their services.
    pub fn jobs(&self, obstacles: &BTreeMap<String, String>) -> Vec<JobView> {
        let agents = self.machines.iter().filter_map(|(name, machine)| {
            machine.agent.as_ref().map(|agent| (name, machine, agent))
        });
        let views = agents.flat_map(|(name, machine, agent)| {
            let views = agent.latest.jobs.iter();
            views
                .filter(|view| {
                    !self.is_replacement(view) && !self.given_up.contains(&view.container)
                })
                .map(move |view| self.view((name, machine, agent), view, obstacles))
        });
        let mut views: Vec<JobView> = views.collect();
        views.sort_by(|a, b| (&a.job, &a.container).cmp(&(&b.job, &b.container)));
        views
    }

    fn is_replacement(&self, view: &JobView) -> bool {
        view.task.as_ref().is_some_and(|task| self.replacements.contains(&task.service))
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
            None => Some("it is not a Swarm task".to_owned()),
        };
        let said = self.decision.as_ref().zip(id).and_then(|(said, id)| said.jobs.get(id));
        JobView {
            job: id.map_or_else(|| view.job.clone(), JobId::to_string),
            node: Some(name.to_owned()),
            standing: if away { Standing::Moving } else { view.standing },
            unmovable,
            trouble: view.trouble.clone().or_else(|| machine.trouble.clone()),
            // It is an address of the other machine, which a browser here may not reach.
            page: None,
            class: said.map(|said| said.class.to_owned()),
            score: said.and_then(|said| said.score),
            why: said.map(|said| said.why.to_string()),
            ..view.clone()
        }
    }
}
