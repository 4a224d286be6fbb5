//! Turns an agent's reports into events for the policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline_api::live::Snapshot;
use paceline_api::live::snapshot::{CountsView, JobView};
use paceline_policy::engine::{Reading, Report, Steps};
use paceline_policy::frame::Reached;
use paceline_policy::limiter::{DEFAULT_WEIGHT, Setting};
use paceline_policy::unit::counter;
use paceline_policy::{Cluster, Effect, Event, JobId, JobSpec, Moment, Share};
use tracing::warn;

use super::{Agent, KnownJob};

impl Agent {
    /// An agent with its first snapshot.
    pub(super) fn new(snapshot: &Arc<Snapshot>) -> Self {
        Self {
            latest: Arc::clone(snapshot),
            run: run(snapshot),
            lead: f64::INFINITY,
            last_reported: Moment::default(),
            jobs: BTreeMap::new(),
        }
    }

    /// Takes in a snapshot, which arrived at `now`.
    pub(super) fn receive(&mut self, now: Moment, snapshot: &Arc<Snapshot>) {
        if run(snapshot) != self.run {
            (self.run, self.lead) = (run(snapshot), f64::INFINITY);
        }
        self.lead = self.lead.min(now.seconds() - snapshot.t);
        self.latest = Arc::clone(snapshot);
    }

    /// Removes jobs that are no longer managed, and returns whether there were any.
    pub(super) fn remove_gone(
        &mut self,
        engine: &mut Cluster,
        now: Moment,
        names: &mut BTreeMap<JobId, String>,
    ) -> bool {
        let latest = &self.latest.jobs;
        let is_gone = |container: &String, known: &mut KnownJob| {
            let same = |view: &JobView| view.standing.is_managed() && view.container == *container;
            !known.away && !latest.iter().any(same)
        };
        let gone: Vec<KnownJob> =
            self.jobs.extract_if(.., is_gone).map(|(_, known)| known).collect();
        for known in &gone {
            names.remove(&known.id);
            apply_event(engine, now, Event::Gone(known.id.clone()));
        }
        !gone.is_empty()
    }

    /// Adds and updates the jobs `here`, on the machine called `node`. Returns whether one is
    /// new or has reached a target. `fresh` jobs started after the agent's first report.
    /// `names` are the jobs of the whole cluster.
    pub(super) fn update<'a>(
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
                    apply_event(engine, now, Event::Targets(known.id.clone(), view.targets));
                }
            } else if let Some(id) = name(view, node, names) {
                news = true;
                names.insert(id.clone(), node.to_owned());
                apply_event(engine, now, Event::Appeared(spec(id.clone(), fresh, node, view)));
                let known = KnownJob { id, targets: view.targets, reached, away: false };
                self.jobs.insert(view.container.clone(), known);
            }
        }
        news
    }

    /// Reports the agent's readings of every job to the policy. `memory` is the machine's, in
    /// bytes.
    pub(super) fn relay(&mut self, engine: &mut Cluster, now: Moment, memory: f64) {
        let mut latest = self.last_reported;
        for view in &self.latest.jobs {
            let known = self.jobs.get(&view.container).filter(|known| !known.away);
            let Some(id) = known.map(|known| &known.id) else { continue };
            let Some(counts) = &view.counts else { continue };
            if let Some(share) = view.limit {
                let in_force = Setting::Cap(Share::nearest(share));
                apply_event(engine, now, Event::Applied(id.clone(), in_force));
            }
            if let Some(used) = counts.used {
                let at = Moment::from_seconds(used.at + self.lead).max(self.last_reported).min(now);
                latest = latest.max(at);
                let reading = Reading {
                    cpu_seconds: used.cpu_seconds,
                    throttled_seconds: Some(used.throttled_seconds),
                    memory: view.memory.map(|bytes| bytes / memory),
                };
                apply_event(engine, at, Event::Used(id.clone(), reading));
            }
            apply_event(engine, now, Event::Reported(id.clone(), report(view, counts)));
        }
        self.last_reported = latest;
    }
}

/// Identifies the run of an agent.
fn run(snapshot: &Snapshot) -> (u32, u64) {
    (snapshot.pid, snapshot.started_at.to_bits())
}

/// The name of a job in the whole cluster.
fn name(view: &JobView, node: &str, taken: &BTreeMap<JobId, String>) -> Option<JobId> {
    let own = JobId::new(view.job.clone()).ok()?;
    if taken.get(&own).is_none_or(|other| other == node) {
        return Some(own);
    }
    let name = format!("{own}@{node}");
    warn!("job {own} of {node} is called {name}: another machine has a job {own}");
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
        // Its machine's own allocator writes its weight, and holds its batches against the clock.
        own_weight: DEFAULT_WEIGHT,
        age: None,
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

/// Applies an event that has no effects.
fn apply_event(engine: &mut Cluster, at: Moment, event: Event) {
    let asked: Vec<Effect> = engine.step(at, event);
    debug_assert!(asked.is_empty(), "only a look and a decision have effects");
}
