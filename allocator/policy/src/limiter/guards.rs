//! The guards of one job, and what they make of its share.

use super::canary::{Step, Watch};
use super::fairness::Received;
use super::leftover::Appetite;
use super::verdict::Verdict;
use super::{Counters, Enforcement, Rules, View, Why};

/// What is remembered of a job from one look to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Guards {
    /// The share that it was to have as its own.
    own: Option<f64>,
    received: Received,
    watch: Watch,
    pub(super) appetite: Appetite,
}

/// How a job stands before anything is lent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Its own share.
    pub(super) own: f64,
    /// What was taken from that since the moment before.
    pub(super) cut: f64,
    /// The most that it may be lent up to.
    pub(super) ceiling: f64,
    /// Why it has its own share.
    pub(super) why: Why,
    /// What is to be remembered.
    pub(super) guards: Guards,
}

/// When a look is taken, and at how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) t: f64,
    /// An equal share.
    pub(super) equal: f64,
}

impl Guards {
    /// How the job stands at this look; `self` is what was remembered of it before.
    pub(super) fn look(
        self,
        rules: &Rules,
        look: Look,
        view: &View,
        verdict: &Verdict,
    ) -> Standing {
        if view.silent {
            return self.hold(view, rules.settings.enforcement, verdict);
        }
        let bounds = rules.bounds(view, verdict.waits);
        let (own, why) = (verdict.share, verdict.why);
        let mut standing = Standing { own, cut: 0.0, ceiling: bounds.ceiling, why, guards: self };
        standing.keep_fair(rules, look, view);
        let before = self.own.unwrap_or(verdict.from);
        standing.undo_cut(rules, Step { t: look.t, before, wanted: standing.own }, view);
        standing.own = bounds.clamp(standing.own);
        standing.cut = self.own.map_or(0.0, |before| (before - standing.own).max(0.0));
        standing.guards.own = Some(standing.own);
        standing
    }

    /// A silent job keeps its cap as it is, or among weights its part, if it is not to have more.
    fn hold(self, view: &View, enforcement: Enforcement, verdict: &Verdict) -> Standing {
        let in_force = view.in_force.get();
        let has = match enforcement {
            Enforcement::Shares => self.own.unwrap_or(in_force),
            Enforcement::Quota | Enforcement::QuotaLeftover => in_force,
        };
        let is_raised = verdict.share > has && !matches!(verdict.why, Why::Silent);
        let (own, why) = if is_raised { (verdict.share, verdict.why) } else { (has, Why::Silent) };
        Standing { own, cut: 0.0, ceiling: own, why, guards: self }
    }

    /// Adds to `counters` what has happened since `before`.
    pub(super) fn count_since(&self, before: &Self, counters: &mut Counters) {
        counters.raised += u64::from(self.received.behind && !before.received.behind);
        counters.rolled_back += u64::from(self.watch.is_spared() && !before.watch.is_spared());
    }
}

impl Standing {
    /// Raises a job that has fallen behind an equal share to one.
    fn keep_fair(&mut self, rules: &Rules, Look { t, equal }: Look, view: &View) {
        let allowed = view.switches.max_slowdown(view.max_slowdown, rules.settings);
        let Some(max_slowdown) = allowed else { return };
        let received = self.guards.received.after(t, view, equal, max_slowdown);
        if received.behind && equal.min(self.ceiling) > self.own {
            self.own = equal.min(self.ceiling);
            self.why = Why::Fair { received: received.of_fair(), max_slowdown, equal };
        }
        self.guards.received = received;
    }

    /// Undoes a cut that the job does not stand.
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
