use paceline_policy::{Engine, Event, Moment};

use super::live::Live;
use super::queue::Due;
use crate::fluid::{Fluid, Index};
use crate::scenario::Node;

/// One node: its CPU, and the engine that watches over it.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) cpus: f64,
    pub(super) fluid: Fluid,
    pub(super) engine: Engine,
    pub(super) goal: Due,
    pub(super) look: Due,
    pub(super) decide: Due,
    pub(super) decided: Option<f64>,
}

impl Station {
    pub(super) fn new(node: &Node, engine: Engine) -> Self {
        Self {
            cpus: node.cpus,
            fluid: Fluid::new(node.contention),
            engine,
            goal: Due::default(),
            look: Due::default(),
            decide: Due::default(),
            decided: None,
        }
    }

    /// Tells the engine what there is to be read, as the live driver does before it decides.
    pub(super) fn observe(&mut self, now: f64, jobs: &mut [Live]) {
        self.fluid.advance(now);
        self.tell(now, Event::NodeUsed(self.fluid.used() * self.cpus));
        let here: Vec<Index> = self.fluid.jobs().collect();
        for index in here {
            let (Some(tally), Some(live)) = (self.fluid.tally(index), jobs.get_mut(index)) else {
                continue;
            };
            let (progress, reading) = live.report(now, tally, self.cpus);
            let id = live.job.id.clone();
            self.tell(now, Event::Reported(id.clone(), Box::new(progress)));
            self.tell(now, Event::Used(id, reading));
        }
    }

    /// Takes in an event that asks for nothing.
    pub(super) fn tell(&mut self, now: f64, event: Event) {
        let effects = self.engine.step(Moment::from_seconds(now), event);
        debug_assert!(effects.is_empty(), "an observation asks for nothing");
    }
}
