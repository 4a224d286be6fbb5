//! The guard that undoes cuts which break a job's batch latency target.

use serde::{Deserialize, Serialize};

use super::View;
use super::settings::{SettingError, require};
use crate::unit::saturate;

/// When a cut is undone, and for how long the job is not cut again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Canary {
    /// The number of batch latency measurements after a cut that must meet the job's target.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub reports: u32,
    /// How long a job is not cut again after an undone cut, in seconds.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub quarantine: f64,
}

impl Default for Canary {
    fn default() -> Self {
        Self { reports: 3, quarantine: 300.0 }
    }
}

impl Canary {
    pub(super) fn check(self) -> Result<(), SettingError> {
        let reports = f64::from(self.reports);
        require("canary.reports", reports, "at least 1", |x| x >= 1.0)?;
        require("canary.quarantine", self.quarantine, "above 0", |x| x > 0.0)
    }
}

/// The state of one job after cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Watch {
    /// No recent cut.
    #[default]
    Calm,
    /// It was cut, and the cut is being checked.
    Cut {
        /// Its share before the first cut that is still being checked.
        former: f64,
        /// The number of measurements still to come.
        left: u32,
    },
    /// A cut was undone.
    Spared(Spared),
}

/// The change of a job's own share that a tick intends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The time of the tick.
    pub(super) t: f64,
    /// The share before.
    pub(super) before: f64,
    /// The intended share.
    pub(super) wanted: f64,
}

/// A job that is not cut for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spared {
    /// The share that it keeps.
    pub(super) hold: f64,
    /// The end of this state, in seconds.
    pub(super) until: f64,
    /// The measured batch latency, in seconds.
    pub(super) latency: f64,
    /// The target batch latency, in seconds.
    pub(super) budget: f64,
}

impl Watch {
    pub(super) fn is_spared(&self) -> bool {
        matches!(self, Self::Spared(_))
    }

    /// The state after a tick.
    pub(super) fn after(self, canary: &Canary, step: Step, view: &View) -> Self {
        let Step { t, before, wanted } = step;
        let state = match self {
            Self::Spared(spared) if t < spared.until => {
                return Self::Spared(Spared { hold: spared.hold.max(wanted), ..spared });
            }
            Self::Spared(_) => Self::Calm,
            Self::Cut { former, .. } if wanted >= former => Self::Calm,
            calm_or_cut @ (Self::Calm | Self::Cut { .. }) => calm_or_cut,
        };
        if wanted < before {
            let former = if let Self::Cut { former, .. } = state { former } else { before };
            return Self::Cut { former, left: canary.reports };
        }
        state.measured(canary, t, view)
    }

    /// Checks a batch latency that was measured under the cut.
    fn measured(self, canary: &Canary, t: f64, view: &View) -> Self {
        let Self::Cut { former, left } = self else { return self };
        let (Some(latency), Some(budget)) = (view.batch_latency, view.budget) else { return self };
        if view.measured_under.get() >= former {
            return self;
        }
        if latency > budget {
            let until = saturate(t + canary.quarantine);
            return Self::Spared(Spared { hold: former, until, latency, budget });
        }
        if left > 1 { Self::Cut { former, left: left - 1 } } else { Self::Calm }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::tests::view;

    const CANARY: Canary = Canary { reports: 2, quarantine: 60.0 };

    fn measured(cap: f64, latency: f64) -> View {
        View { batch_latency: Some(latency), budget: Some(1.0), ..view("a", cap) }
    }

    fn step(t: f64, before: f64, wanted: f64) -> Step {
        Step { t, before, wanted }
    }

    /// A job that is cut from 0.8 to 0.4 at 10 s.
    fn cut() -> Watch {
        Watch::Calm.after(&CANARY, step(10.0, 0.8, 0.4), &measured(0.8, 0.5))
    }

    #[test]
    fn a_cut_that_breaks_the_budget_is_undone_and_the_job_is_spared() {
        let undone = cut().after(&CANARY, step(11.0, 0.4, 0.4), &measured(0.4, 1.5));
        let spared = Spared { hold: 0.8, until: 71.0, latency: 1.5, budget: 1.0 };
        assert_eq!(undone, Watch::Spared(spared));
        let raised = undone.after(&CANARY, step(12.0, 0.8, 0.9), &view("a", 0.8));
        let kept = raised.after(&CANARY, step(70.0, 0.9, 0.1), &view("a", 0.9));
        assert_eq!(kept, Watch::Spared(Spared { hold: 0.9, ..spared }));
        let again = kept.after(&CANARY, step(71.0, 0.9, 0.1), &view("a", 0.9));
        assert_eq!(again, Watch::Cut { former: 0.9, left: 2 }, "cut again, and watched again");
    }

    #[test]
    fn cut_that_keeps_the_target_for_enough_reports_is_final() {
        let once = cut().after(&CANARY, step(11.0, 0.4, 0.4), &measured(0.4, 0.9));
        assert_eq!(once, Watch::Cut { former: 0.8, left: 1 });
        let through = once.after(&CANARY, step(12.0, 0.4, 0.4), &measured(0.4, 0.9));
        assert_eq!(through, Watch::Calm);
        assert_eq!(through.after(&CANARY, step(13.0, 0.4, 0.4), &measured(0.4, 9.0)), Watch::Calm);
    }

    #[test]
    fn second_cut_during_a_watch_reverts_to_before_both() {
        let twice = cut().after(&CANARY, step(11.0, 0.4, 0.2), &measured(0.4, 0.9));
        assert_eq!(twice, Watch::Cut { former: 0.8, left: 2 });
    }

    #[test]
    fn a_latency_from_before_the_cut_was_in_force_does_not_count() {
        let late = cut().after(&CANARY, step(11.0, 0.4, 0.4), &measured(0.8, 1.5));
        assert_eq!(late, cut());
    }

    #[test]
    fn without_a_budget_or_a_measurement_nothing_is_undone() {
        let no_budget = View { budget: None, ..measured(0.4, 9.0) };
        assert_eq!(cut().after(&CANARY, step(11.0, 0.4, 0.4), &no_budget), cut());
        let unmeasured = View { batch_latency: None, ..measured(0.4, 9.0) };
        assert_eq!(cut().after(&CANARY, step(11.0, 0.4, 0.4), &unmeasured), cut());
    }
}
