//! The guards of one job, and their effect on its share.

use super::canary::{Step, Watch};
use super::clamp::Clamp;
use super::fairness::Received;
use super::lending::Demand;
use super::{Counters, Enforcement, Rules, View, Why};

/// The state of a job's guards between two ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Guards {
    /// Its own share, without loans.
    own: Option<f64>,
    received: Received,
    watch: Watch,
    pub(super) demand: Demand,
}

/// The result of the guards for one job, before lending.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuardState {
    /// Its own share.
    pub(super) own: f64,
    /// The reduction of its own share since the previous moment.
    pub(super) cut: f64,
    /// The largest share that it may have with a loan.
    pub(super) ceiling: f64,
    /// Why it has its own share.
    pub(super) why: Why,
    /// The new state of the guards.
    pub(super) guards: Guards,
}

/// The time of a tick, and the equal share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) t: f64,
    /// An equal share.
    pub(super) equal: f64,
}

impl Guards {
    /// Applies the guards at this tick; `self` is their state before it.
    pub(super) fn tick(self, rules: &Rules, tick: Tick, view: &View, clamp: &Clamp) -> GuardState {
        if view.silent {
            return self.hold(view, rules.settings.enforcement, clamp);
        }
        let bounds = rules.bounds(view, clamp.waits);
        let (own, why) = (clamp.share, clamp.why);
        let mut state = GuardState { own, cut: 0.0, ceiling: bounds.ceiling, why, guards: self };
        state.raise_starving(rules, tick, view);
        let before = self.own.unwrap_or(clamp.from);
        state.undo_cut(rules, Step { t: tick.t, before, wanted: state.own }, view);
        state.own = bounds.clamp(state.own);
        state.cut = self.own.map_or(0.0, |before| (before - state.own).max(0.0));
        state.guards.own = Some(state.own);
        state
    }

    /// Keeps the cap of a silent job, or its part among weights, unless its share is raised.
    fn hold(self, view: &View, enforcement: Enforcement, clamp: &Clamp) -> GuardState {
        let in_force = view.in_force.get();
        let has = match enforcement {
            Enforcement::Shares => self.own.unwrap_or(in_force),
            Enforcement::Quota | Enforcement::QuotaLeftover => in_force,
        };
        let is_raised = clamp.share > has && !matches!(clamp.why, Why::Silent);
        let (own, why) = if is_raised { (clamp.share, clamp.why) } else { (has, Why::Silent) };
        GuardState { own, cut: 0.0, ceiling: own, why, guards: self }
    }

    /// Adds to `counters` what has happened since `before`.
    pub(super) fn count_since(&self, before: &Self, counters: &mut Counters) {
        counters.raised += u64::from(self.received.behind && !before.received.behind);
        counters.rolled_back += u64::from(self.watch.is_spared() && !before.watch.is_spared());
    }
}

impl GuardState {
    /// Raises a job that has fallen behind an equal share to one.
    fn raise_starving(&mut self, rules: &Rules, Tick { t, equal }: Tick, view: &View) {
        let allowed = view.switches.max_slowdown(view.max_slowdown, rules.settings);
        let Some(max_slowdown) = allowed else { return };
        let received = self.guards.received.after(t, view, equal, max_slowdown);
        if received.behind && equal.min(self.ceiling) > self.own {
            self.own = equal.min(self.ceiling);
            self.why = Why::Fair { received: received.fraction_of_fair(), max_slowdown, equal };
        }
        self.guards.received = received;
    }

    /// Undoes a cut that breaks the job's batch latency target.
    fn undo_cut(&mut self, rules: &Rules, step: Step, view: &View) {
        let Some(canary) = view.switches.over(rules.settings).canary else { return };
        let watch = self.guards.watch.after(&canary, step, view);
        if let Watch::Spared(spared) = watch
            && spared.hold.min(self.ceiling) > self.own
        {
            self.own = spared.hold.min(self.ceiling);
            self.why = Why::RolledBack {
                latency: spared.latency,
                budget: spared.budget,
                until: spared.until,
            };
        }
        self.guards.watch = watch;
    }
}
