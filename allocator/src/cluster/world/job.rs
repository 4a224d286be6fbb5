//! What the policy is told of the jobs of one machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline_policy::engine::{Reading, Report, Steps};
use paceline_policy::frame::Reached;
use paceline_policy::limiter::Setting;
use paceline_policy::unit::counter;
use paceline_policy::{Cluster, Effect, Event, JobId, JobSpec, Moment, Share};
use tracing::warn;

use super::{Agent, Known};
use crate::live::Snapshot;
use crate::live::snapshot::{CountsView, JobView};

impl Agent {
    /// An agent that has said this first.
    pub(super) fn new(said: &Arc<Snapshot>) -> Self {
        Self {
            latest: Arc::clone(said),
            run: run(said),
            lead: f64::INFINITY,
            told: Moment::default(),
            jobs: BTreeMap::new(),
        }
    }

    /// It has said this, which was heard at `now`.
    pub(super) fn hear(&mut self, now: Moment, said: &Arc<Snapshot>) {
        if run(said) != self.run {
            (self.run, self.lead) = (run(said), f64::INFINITY);
        }
        self.lead = self.lead.min(now.seconds() - said.t);
        self.latest = Arc::clone(said);
    }

    /// Parts with jobs that are managed no more; whether there are any.
    pub(super) fn part(
        &mut self,
        engine: &mut Cluster,
        now: Moment,
        names: &mut BTreeMap<JobId, String>,
    ) -> bool {
        let latest = &self.latest.jobs;
        let is_gone = |container: &String, known: &mut Known| {
            let same = |view: &JobView| view.standing.is_managed() && view.container == *container;
            !known.away && !latest.iter().any(same)
        };
        let gone: Vec<Known> = self.jobs.extract_if(.., is_gone).map(|(_, known)| known).collect();
        for known in &gone {
            names.remove(&known.id);
            tell(engine, now, Event::Gone(known.id.clone()));
        }
        !gone.is_empty()
    }

    /// Meets the jobs that are `here`, on the machine called `node`; whether there is news of one.
    /// Those are `fresh` that began since the agent was first heard; `names` are those that jobs
    /// have.
    pub(super) fn meet<'a>(
        &mut self,
        engine: &mut Cluster,
        (now, fresh): (Moment, bool),
        (node, here): (&str, impl Iterator<Item = &'a JobView>),
        names: &mut BTreeMap<JobId, String>,
    ) -> bool {
        let mut news = false;
        for view in here {
            let reached = (view.acceptable_at.is_some(), view.objective_at.is_some());
            if let Some(known) = self.jobs.get_mut(&view.container) {
                news |= std::mem::replace(&mut known.reached, reached) != reached;
                if known.targets != view.targets {
                    known.targets = view.targets;
                    tell(engine, now, Event::Targets(known.id.clone(), view.targets));
                }
            } else if let Some(id) = name(view, node, names) {
                news = true;
                names.insert(id.clone(), node.to_owned());
                tell(engine, now, Event::Appeared(spec(id.clone(), fresh, node, view)));
                let known = Known { id, targets: view.targets, reached, away: false };
                self.jobs.insert(view.container.clone(), known);
            }
        }
        news
    }

    /// Tells what the agent has read of every job, on a machine with so much memory.
    pub(super) fn relay(&mut self, engine: &mut Cluster, now: Moment, memory: f64) {
        let mut latest = self.told;
        for view in &self.latest.jobs {
            let known = self.jobs.get(&view.container).filter(|known| !known.away);
            let Some(id) = known.map(|known| &known.id) else { continue };
            let Some(counts) = &view.counts else { continue };
            if let Some(share) = view.limit {
                let in_force = Setting::Cap(Share::nearest(share));
                tell(engine, now, Event::Applied(id.clone(), in_force));
            }
            if let Some(used) = counts.used {
                let at = Moment::from_seconds(used.at + self.lead).max(self.told).min(now);
                latest = latest.max(at);
                let reading = Reading {
                    cpu_seconds: used.cpu_seconds,
                    throttled_seconds: Some(used.throttled_seconds),
                    memory: view.memory.map(|bytes| bytes / memory),
                };
                tell(engine, at, Event::Used(id.clone(), reading));
            }
            tell(engine, now, Event::Reported(id.clone(), report(view, counts)));
        }
        self.told = latest;
    }
}

/// Which run of an agent it is that speaks.
fn run(said: &Snapshot) -> (u32, u64) {
    (said.pid, said.started_at.to_bits())
}

/// What a job is called in the whole cluster.
fn name(view: &JobView, node: &str, taken: &BTreeMap<JobId, String>) -> Option<JobId> {
    let own = JobId::new(view.job.clone()).ok()?;
    if taken.get(&own).is_none_or(|other| other == node) {
        return Some(own);
    }
    let name = format!("{own}@{node}");
    warn!("a job of {node} is called {name}: another machine has a job {own}");
    JobId::new(name).ok()
}

fn spec(id: JobId, fresh: bool, node: &str, view: &JobView) -> JobSpec {
    JobSpec {
        id,
        node: Some(node.to_owned()),
        fresh,
        in_force: view.limit.map_or(Share::ALL, Share::nearest),
        min: view.min.map(Share::nearest),
        max: view.max.map(Share::nearest),
        weight: view.weight,
        max_slowdown: view.max_slowdown,
        may_terminate: view.may_terminate,
        work: view.work,
        direction: Some(view.direction),
        targets: view.targets,
    }
}

fn report(view: &JobView, counts: &CountsView) -> Report {
    let total = view.total_steps.filter(|total| *total > 0);
    let done = |total: u64| counter(view.step.unwrap_or(0).min(total)) / counter(total);
    Report {
        instance: counts.instance.as_str().into(),
        direction: view.direction,
        losses: (counts.losses, counts.loss_sum),
        largest: counts.loss_max_abs,
        batches: (counts.batches, counts.batch_seconds),
        done: total.map(done),
        steps: Steps { taken: view.step, total: view.total_steps, ..Steps::default() },
        age: 0.0,
        targets: view.targets,
        reached: Reached {
            acceptable: view.acceptable_at.is_some(),
            objective: view.objective_at.is_some(),
        },
    }
}

/// Tells what asks for nothing.
fn tell(engine: &mut Cluster, at: Moment, event: Event) {
    let asked: Vec<Effect> = engine.step(at, event);
    debug_assert!(asked.is_empty(), "only a look and a decision have effects");
}
