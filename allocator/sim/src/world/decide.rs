//! Runs one node's policy or samples for its limiter, and applies the effects.

use paceline_policy::limiter::{Change, Setting};
use paceline_policy::{Decision, Effect, Event, Frame, JobId, Moment};
use serde::Serialize;

use super::World;
use super::queue::SimEvent;
use crate::fluid::Index;
use crate::outcome::Line;
use crate::scenario::Competition;

/// How often the live controller samples between decisions, in seconds; or halfway to the next one,
/// if that is sooner.
const SAMPLE_INTERVAL: f64 = 1.0;

impl World<'_> {
    pub(super) fn decide(&mut self, node: usize) {
        let now = self.now;
        let Some(state) = self.nodes.get_mut(node) else { return };
        state.decided = Some(now);
        state.observe(now, &mut self.jobs);
        let effects = state.engine.step(Moment::from_seconds(now), Event::Decide);
        self.done.outcome.events += 1;
        self.done.outcome.decisions += 1;
        self.apply(node, effects);
    }

    pub(super) fn sample(&mut self, node: usize) {
        let now = self.now;
        let Some(state) = self.nodes.get_mut(node) else { return };
        state.observe_without_losses(now, &mut self.jobs);
        let effects = state.engine.step(Moment::from_seconds(now), Event::Tick);
        self.apply(node, effects);
    }

    fn apply(&mut self, node: usize, effects: Vec<Effect>) {
        let mut next = self.now + SAMPLE_INTERVAL;
        for effect in effects {
            match effect {
                Effect::Set(changes) => self.write_limits(node, changes),
                Effect::Decided(decided) => self.record(&decided.0, &decided.1),
                Effect::End(jobs) => self.end(node, &jobs),
                Effect::WakeAt(at) => {
                    self.queue.no_later(at.seconds(), SimEvent::Decide(node));
                    next = next.min(f64::midpoint(self.now, at.seconds()));
                }
            }
        }
        if let Some(state) = self.nodes.get(node) {
            let due = state.engine.needs_ticks(Moment::from_seconds(self.now)).then_some(next);
            self.queue.set(due, SimEvent::Sample(node));
        }
    }

    /// Writes limits, which are in force immediately.
    pub(super) fn write_limits(&mut self, node: usize, changes: Vec<Change>) {
        if let Some(state) = self.nodes.get_mut(node) {
            state.count_losses(self.now, &mut self.jobs);
        }
        for Change { job, to, .. } in changes {
            let Some(index) = self.index(node, &job) else { continue };
            let (Some(state), Some(live)) = (self.nodes.get_mut(node), self.jobs.get_mut(index))
            else {
                continue;
            };
            match to {
                Setting::Cap(share) => live.cap = share,
                Setting::Weight(weight) => live.cpu_shares = weight,
            }
            live.outcome.writes += 1;
            self.done.outcome.events += 1;
            state.fluid.set(index, live.demand(state.cpus, Competition::default()));
            state.notify(self.now, Event::Applied(job, to));
        }
        self.schedule_goal(node);
    }

    /// Ends jobs that have reached their objective.
    fn end(&mut self, node: usize, jobs: &[JobId]) {
        for job in jobs {
            let Some(index) = self.index(node, job) else { continue };
            if let Some(live) = self.jobs.get_mut(index) {
                live.outcome.finished = Some(self.now);
                live.outcome.ended = true;
            }
            self.done.outcome.events += 1;
            self.stop_process(index, node);
            self.finish_job(index);
            self.node_changed(node);
        }
    }

    /// The number of a job that runs on a node; `None` if it does not.
    pub(super) fn index(&self, node: usize, id: &JobId) -> Option<Index> {
        self.nodes.get(node)?.by_id.get(id).copied()
    }

    pub(super) fn record(&mut self, frame: &Frame, decision: &Decision) {
        self.trace_sets(decision);
        if self.run.record {
            let line = Line { frame: json(frame), decision: json(decision) };
            self.effort.record(line.frame.len() + line.decision.len());
            self.done.lines.push(line);
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("frames and decisions have names for keys")
}
