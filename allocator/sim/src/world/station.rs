use std::collections::BTreeMap;

use paceline_policy::{Engine, Event, JobId, Moment};

use super::jobs::Jobs;
use crate::fluid::{Fluid, Index};
use crate::random::{Lazy, Purpose};
use crate::scenario::Node;

/// One node: its CPU, and the engine that watches over it.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) cpus: f64,
    background: f64,
    pub(super) fluid: Fluid,
    /// The jobs that run here.
    pub(super) by_id: BTreeMap<JobId, Index>,
    pub(super) engine: Engine,
    pub(super) decided: Option<f64>,
    /// Since when it does not work, and for how long it did not before.
    pub(super) down_since: Option<f64>,
    pub(super) down: f64,
    pub(super) failures: Lazy,
}

impl Station {
    pub(super) fn new(node: &Node, engine: Engine, seed: u64, index: usize) -> Self {
        Self {
            cpus: node.cpus,
            background: node.background,
            fluid: Fluid::new(node.contention).beside(node.background),
            by_id: BTreeMap::new(),
            engine,
            decided: None,
            down_since: None,
            down: 0.0,
            failures: Lazy::new(seed, Purpose::Failure, index),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.down_since.is_none()
    }

    /// For how many seconds it worked until `end`.
    pub(super) fn up_time(&self, end: f64) -> f64 {
        end - self.down - self.down_since.map_or(0.0, |since| end - since)
    }

    /// Tells the engine what there is to be read, as the live driver does before it decides.
    pub(super) fn observe(&mut self, now: f64, jobs: &mut Jobs) {
        self.fluid.advance(now);
        let used = self.fluid.used() + self.background * now;
        self.tell(now, Event::NodeUsed(used * self.cpus));
        for (index, tally) in self.fluid.tallies() {
            let Some(live) = jobs.get_mut(index) else { continue };
            let (report, reading) = live.report(now, tally, self.cpus);
            let id = live.job.id.clone();
            tell(&mut self.engine, now, Event::Reported(id.clone(), report));
            tell(&mut self.engine, now, Event::Used(id, reading));
        }
    }

    /// Takes in an event that asks for nothing.
    pub(super) fn tell(&mut self, now: f64, event: Event) {
        tell(&mut self.engine, now, event);
    }
}

fn tell(engine: &mut Engine, now: f64, event: Event) {
    let effects = engine.step(Moment::from_seconds(now), event);
    debug_assert!(effects.is_empty(), "an observation asks for nothing");
}
