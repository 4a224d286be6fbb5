use std::collections::BTreeMap;

use paceline_policy::engine::{Reading, Report};
use paceline_policy::unit::count;
use paceline_policy::{Engine, Event, JobId, Moment};

use super::jobs::Jobs;
use super::live::LiveJob;
use crate::SpeedProfile;
use crate::fluid::{Fluid, Index, Tally};
use crate::random::{LazyStream, Purpose};
use crate::scenario::{Competition, FAIR_THREADS, Node, OVERSUBSCRIBED_THREADS};

/// One node during the simulation: its CPU, and the engine that controls it.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) cpus: f64,
    background: f64,
    pub(super) fluid: Fluid,
    /// The jobs that run here.
    pub(super) by_id: BTreeMap<JobId, Index>,
    pub(super) engine: Engine,
    pub(super) decided: Option<f64>,
    /// Since when it is down, and for how many seconds it was down before.
    pub(super) down_since: Option<f64>,
    pub(super) down: f64,
    pub(super) failures: LazyStream,
}

impl NodeState {
    pub(super) fn new(
        node: &Node,
        speed_profile: &SpeedProfile,
        engine: Engine,
        (seed, index): (u64, usize),
    ) -> Self {
        Self {
            cpus: node.cpus,
            background: node.background,
            fluid: Fluid::new(node.contention)
                .with_background(node.background)
                .with_speed_profile(speed_profile.clone()),
            by_id: BTreeMap::new(),
            engine,
            decided: None,
            down_since: None,
            down: 0.0,
            failures: LazyStream::new(seed, Purpose::Failure, index),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.down_since.is_none()
    }

    /// For how many seconds it was up until `end`.
    pub(super) fn up_time(&self, end: f64) -> f64 {
        end - self.down - self.down_since.map_or(0.0, |since| end - since)
    }

    /// Passes all readings to the engine, as the live controller does before a decision.
    pub(super) fn observe(&mut self, now: f64, jobs: &mut Jobs) {
        let cpus = self.cpus;
        self.read(now, jobs, |live, tally| live.report(now, tally, cpus));
    }

    /// Passes all readings but the losses to the engine, before a sample.
    pub(super) fn observe_without_losses(&mut self, now: f64, jobs: &mut Jobs) {
        let cpus = self.cpus;
        self.read(now, jobs, |live, tally| live.report_without_losses(tally, cpus));
    }

    fn read(
        &mut self,
        now: f64,
        jobs: &mut Jobs,
        read: impl Fn(&mut LiveJob, Tally) -> (Report, Reading),
    ) {
        self.fluid.advance(now);
        let used = self.fluid.used() + self.background * now;
        let at = Moment::from_seconds(now);
        notify_engine(&mut self.engine, at, Event::NodeUsed(used * self.cpus));
        for (index, tally) in self.fluid.tallies() {
            // A job is not observed before it trains.
            let live = jobs.get_mut(index).filter(|live| live.start.is_none());
            let Some(live) = live else { continue };
            let (report, reading) = read(live, tally);
            let id = live.job.id.clone();
            notify_engine(&mut self.engine, at, Event::Used(id.clone(), reading));
            notify_engine(&mut self.engine, at, Event::Reported(id, report));
        }
    }

    /// Counts the areas under the losses of its jobs up to now, before their shares change.
    pub(super) fn count_losses(&mut self, now: f64, jobs: &mut Jobs) {
        self.fluid.advance(now);
        for (index, tally) in self.fluid.tallies() {
            if let Some(live) = jobs.get_mut(index) {
                live.count_loss(now, live.done(tally));
            }
        }
    }

    /// Updates the demand of every job to its competition. Whether a limit throttles a job is
    /// decided before these updates. An update may let one more job reach its limit, which is
    /// ignored.
    pub(super) fn update_demands(&mut self, jobs: &Jobs) {
        let oversubscription = self.oversubscription(jobs);
        let here: Vec<Index> = self.fluid.jobs().collect();
        for index in &here {
            self.update_demand(
                *index,
                jobs,
                Competition { oversubscription, ..Competition::default() },
            );
        }
        // What each takes from the others: in bursts if its limit throttles it, else in turns with
        // them.
        let takes = |index: Index| {
            let held = self.fluid.held_by(index);
            let cap = self.fluid.demand(index).map_or(0.0, |demand| demand.cap);
            (index, held, if held > 0.0 { 0.0 } else { cap })
        };
        let takes: Vec<(Index, f64, f64)> = here.into_iter().map(takes).collect();
        let wanted: f64 = takes.iter().map(|(_, _, wanted)| wanted).sum();
        // A job's largest share was measured beside the background, so limits take parts of the
        // rest.
        let (held, room) = (self.fluid.held(), 1.0 - self.background);
        for (index, its_held, its_wanted) in takes {
            let (held, wanted) = ((held - its_held) / room, wanted - its_wanted);
            self.update_demand(index, jobs, Competition { held, wanted, oversubscription });
        }
    }

    /// Updates the demand of one job to this competition.
    fn update_demand(&mut self, index: Index, jobs: &Jobs, competition: Competition) {
        let Some(live) = jobs.get(index) else { return };
        let demand = live.demand(self.cpus, competition);
        if self.fluid.demand(index) != Some(demand) {
            self.fluid.set(index, demand);
        }
    }

    /// The [oversubscription](Competition::oversubscription) of the node. A job with a limit below
    /// an equal share competes until it has used that up.
    fn oversubscription(&self, jobs: &Jobs) -> f64 {
        let number = count(self.fluid.len());
        let here = self.fluid.jobs().filter_map(|job| jobs.get(job));
        let competing =
            |live: &LiveJob| live.threads_on(self.cpus) * (live.cap.get() * number).min(1.0);
        let each = here.map(competing).sum::<f64>() / self.cpus;
        ((each - FAIR_THREADS) / (OVERSUBSCRIBED_THREADS - FAIR_THREADS)).clamp(0.0, 1.0)
    }

    /// Passes an event to the engine that causes no effects.
    pub(super) fn notify(&mut self, now: f64, event: Event) {
        notify_engine(&mut self.engine, Moment::from_seconds(now), event);
    }
}

fn notify_engine(engine: &mut Engine, now: Moment, event: Event) {
    let effects = engine.step(now, event);
    debug_assert!(effects.is_empty(), "an observation has no effects");
}
