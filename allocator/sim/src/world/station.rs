use std::collections::BTreeMap;

use paceline_policy::engine::{Reading, Report};
use paceline_policy::unit::count;
use paceline_policy::{Engine, Event, JobId, Moment};

use super::jobs::Jobs;
use super::live::Live;
use crate::Tempo;
use crate::fluid::{Fluid, Index, Tally};
use crate::random::{Lazy, Purpose};
use crate::scenario::{CROWD, Company, IN_TURNS, Node};

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
    pub(super) fn new(
        node: &Node,
        tempo: &Tempo,
        engine: Engine,
        (seed, index): (u64, usize),
    ) -> Self {
        Self {
            cpus: node.cpus,
            background: node.background,
            fluid: Fluid::new(node.contention).beside(node.background).going_by(tempo.clone()),
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
        let cpus = self.cpus;
        self.read(now, jobs, |live, tally| live.report(now, tally, cpus));
    }

    /// Tells the engine what there is to be read but for losses, before it looks.
    pub(super) fn glance(&mut self, now: f64, jobs: &mut Jobs) {
        let cpus = self.cpus;
        self.read(now, jobs, |live, tally| live.glance(tally, cpus));
    }

    fn read(
        &mut self,
        now: f64,
        jobs: &mut Jobs,
        read: impl Fn(&mut Live, Tally) -> (Report, Reading),
    ) {
        self.fluid.advance(now);
        let used = self.fluid.used() + self.background * now;
        let at = Moment::from_seconds(now);
        tell(&mut self.engine, at, Event::NodeUsed(used * self.cpus));
        for (index, tally) in self.fluid.tallies() {
            // Nobody sees a job before it trains.
            let live = jobs.get_mut(index).filter(|live| live.start.is_none());
            let Some(live) = live else { continue };
            let (report, reading) = read(live, tally);
            let id = live.job.id.clone();
            tell(&mut self.engine, at, Event::Used(id.clone(), reading));
            tell(&mut self.engine, at, Event::Reported(id, report));
        }
    }

    /// Counts the areas under the losses of its jobs up to now: their shares are about to change.
    pub(super) fn count_losses(&mut self, now: f64, jobs: &mut Jobs) {
        self.fluid.advance(now);
        for (index, tally) in self.fluid.tallies() {
            if let Some(live) = jobs.get_mut(index) {
                live.count_loss(now, live.done(tally));
            }
        }
    }

    /// Gives every job what it asks for in its company. Who is held back by a limit is told by how all
    /// stand if nobody minds that: what follows from it may let one more reach its limit, which is left
    /// out of account.
    pub(super) fn fit_in(&mut self, jobs: &Jobs) {
        let crowd = self.crowd(jobs);
        let here: Vec<Index> = self.fluid.jobs().collect();
        for index in &here {
            self.ask(*index, jobs, Company { crowd, ..Company::default() });
        }
        // What each takes from the others: by bursts, or in turns with them.
        let takes = |index: Index| {
            let held = self.fluid.held_by(index);
            let cap = self.fluid.party(index).map_or(0.0, |party| party.cap);
            (index, held, if held > 0.0 { 0.0 } else { cap })
        };
        let takes: Vec<(Index, f64, f64)> = here.into_iter().map(takes).collect();
        let wanted: f64 = takes.iter().map(|(_, _, wanted)| wanted).sum();
        // What a job can use was seen beside what others use of the node: limits take parts of the rest.
        let (held, room) = (self.fluid.held(), 1.0 - self.background);
        for (index, its_held, its_wanted) in takes {
            let (held, wanted) = ((held - its_held) / room, wanted - its_wanted);
            self.ask(index, jobs, Company { held, wanted, crowd });
        }
    }

    /// Has a job ask for what it can use in this company.
    fn ask(&mut self, index: Index, jobs: &Jobs, company: Company) {
        let Some(live) = jobs.get(index) else { return };
        let party = live.party(self.cpus, company);
        if self.fluid.party(index) != Some(party) {
            self.fluid.set(index, party);
        }
    }

    /// How far the threads that compete at a time are a [crowd](Company::crowd). A job whose limit is less
    /// than an equal share competes until it has used that up.
    fn crowd(&self, jobs: &Jobs) -> f64 {
        let number = count(self.fluid.len());
        let here = self.fluid.jobs().filter_map(|job| jobs.get(job));
        let competing =
            |live: &Live| live.threads_on(self.cpus) * (live.cap.get() * number).min(1.0);
        let each = here.map(competing).sum::<f64>() / self.cpus;
        ((each - IN_TURNS) / (CROWD - IN_TURNS)).clamp(0.0, 1.0)
    }

    /// Takes in an event that asks for nothing.
    pub(super) fn tell(&mut self, now: f64, event: Event) {
        tell(&mut self.engine, Moment::from_seconds(now), event);
    }
}

fn tell(engine: &mut Engine, now: Moment, event: Event) {
    let effects = engine.step(now, event);
    debug_assert!(effects.is_empty(), "an observation asks for nothing");
}
