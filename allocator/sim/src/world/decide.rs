//! One node's policy runs, or its limiter looks, and what they say is done.

use paceline_policy::limiter::{Change, Setting};
use paceline_policy::{Decision, Effect, Event, Frame, JobId, Moment};
use serde::Serialize;

use super::World;
use super::queue::What;
use crate::fluid::Index;
use crate::outcome::Line;
use crate::scenario::Company;

/// How often the live driver looks between decisions, in seconds; and halfway to the next one, if that is
/// sooner.
const LOOK: f64 = 1.0;

impl World<'_> {
    pub(super) fn decide(&mut self, node: usize) {
        let now = self.now;
        let Some(station) = self.stations.get_mut(node) else { return };
        station.decided = Some(now);
        station.observe(now, &mut self.jobs);
        let effects = station.engine.step(Moment::from_seconds(now), Event::Decide);
        self.done.outcome.events += 1;
        self.done.outcome.decisions += 1;
        self.obey(node, effects);
    }

    pub(super) fn look(&mut self, node: usize) {
        let now = self.now;
        let Some(station) = self.stations.get_mut(node) else { return };
        station.glance(now, &mut self.jobs);
        let effects = station.engine.step(Moment::from_seconds(now), Event::Look);
        self.obey(node, effects);
    }

    fn obey(&mut self, node: usize, effects: Vec<Effect>) {
        let mut next = self.now + LOOK;
        for effect in effects {
            match effect {
                Effect::Set(changes) => self.write(node, changes),
                Effect::Decided(decided) => self.write_down(&decided.0, &decided.1),
                Effect::End(jobs) => self.end(node, &jobs),
                Effect::WakeAt(at) => {
                    self.queue.no_later(at.seconds(), What::Decide(node));
                    next = next.min(f64::midpoint(self.now, at.seconds()));
                }
            }
        }
        if let Some(station) = self.stations.get(node) {
            let due =
                station.engine.has_use_for_looks(Moment::from_seconds(self.now)).then_some(next);
            self.queue.set(due, What::Look(node));
        }
    }

    /// Limits are written, and are in force at once.
    pub(super) fn write(&mut self, node: usize, changes: Vec<Change>) {
        if let Some(station) = self.stations.get_mut(node) {
            station.count_losses(self.now, &mut self.jobs);
        }
        for Change { job, to, .. } in changes {
            let Some(index) = self.index(node, &job) else { continue };
            let (Some(station), Some(live)) =
                (self.stations.get_mut(node), self.jobs.get_mut(index))
            else {
                continue;
            };
            match to {
                Setting::Cap(share) => live.cap = share,
                Setting::Weight(weight) => live.cpu_shares = weight,
            }
            live.outcome.writes += 1;
            self.done.outcome.events += 1;
            station.fluid.set(index, live.party(station.cpus, Company::default()));
            station.tell(self.now, Event::Applied(job, to));
        }
        self.plan(node);
    }

    /// Jobs that have reached their objective are ended.
    fn end(&mut self, node: usize, jobs: &[JobId]) {
        for job in jobs {
            let Some(index) = self.index(node, job) else { continue };
            if let Some(live) = self.jobs.get_mut(index) {
                live.outcome.finished = Some(self.now);
                live.outcome.ended = true;
            }
            self.done.outcome.events += 1;
            self.depart(index, node);
            self.over(index);
            self.changed(node);
        }
    }

    /// The number of a job that runs on a node.
    pub(super) fn index(&self, node: usize, id: &JobId) -> Option<Index> {
        self.stations.get(node)?.by_id.get(id).copied()
    }

    pub(super) fn write_down(&mut self, frame: &Frame, decision: &Decision) {
        self.note_sets(decision);
        if self.run.record {
            let line = Line { frame: json(frame), decision: json(decision) };
            self.done.lines.push(line);
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("frames and decisions have names for keys")
}
