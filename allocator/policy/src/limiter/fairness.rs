//! The guard against starvation: how far a job may fall behind an equal share.

use serde::{Deserialize, Serialize};

use super::View;
use super::settings::{SettingError, require};
use crate::unit::saturate;

/// A raised job is released only at this factor above the threshold, so that it does not alternate
/// between ticks.
const RELEASE: f64 = 1.1;

/// How far a job may fall behind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Fairness {
    /// ρ: a job receives at least 1/ρ of the CPU time that an equal share would have given it. A job's own
    /// value overrides this one, and turns the guard on for that job.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_slowdown: f64,
}

impl Default for Fairness {
    fn default() -> Self {
        Self { max_slowdown: 3.0 }
    }
}

impl Fairness {
    pub(super) fn check(self) -> Result<(), SettingError> {
        require("fairness.max_slowdown", self.max_slowdown, "at least 1", |x| x >= 1.0)
    }
}

/// The CPU time of one job since it was first seen, in seconds of the whole node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Received {
    at: Option<f64>,
    cpu: f64,
    /// The CPU time that an equal share would have given. A job that does not press on its cap gets all
    /// that it wants, so an equal share would not have given more.
    fair: f64,
    /// Whether the guard raises the job.
    pub(super) behind: bool,
}

impl Received {
    /// Adds the job's usage until `t`, with an equal share of `equal`.
    pub(super) fn after(self, t: f64, view: &View, equal: f64, max_slowdown: f64) -> Self {
        let Some(usage) = view.usage else { return Self { at: self.at.or(Some(t)), ..self } };
        let seconds = self.at.map_or(0.0, |at| saturate(t - at).max(0.0));
        let fair = if view.pressed { equal } else { equal.min(usage) };
        let cpu = saturate(self.cpu + usage * seconds);
        let fair = saturate(self.fair + fair * seconds);
        let line = fair / max_slowdown;
        let behind = cpu < if self.behind { RELEASE * line } else { line };
        Self { at: Some(t), cpu, fair, behind }
    }

    /// The CPU time received, as a fraction of what an equal share would have given.
    pub(super) fn fraction_of_fair(&self) -> f64 {
        if self.fair > 0.0 { saturate(self.cpu / self.fair) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::tests::{using, view};

    /// One of four jobs that uses `usage` under a cap of `cap`, a second at a time.
    fn after(mut received: Received, from: u32, to: u32, usage: f64, cap: f64) -> Received {
        for second in from..to {
            received = received.after(f64::from(second), &using("a", cap, usage), 0.25, 3.0);
        }
        received
    }

    #[test]
    fn a_job_that_is_kept_below_its_line_falls_behind() {
        assert!(!after(Received::default(), 0, 10, 0.1, 0.1).behind, "0.1 >= 0.25 / 3");
        assert!(after(Received::default(), 0, 10, 0.08, 0.08).behind, "0.08 < 0.25 / 3");
    }

    #[test]
    fn a_job_that_does_not_want_more_is_not_behind() {
        assert!(!after(Received::default(), 0, 10, 0.01, 1.0).behind);
    }

    #[test]
    fn the_guard_lets_go_only_above_the_line() {
        let behind = after(Received::default(), 0, 11, 0.05, 0.05);
        assert!(behind.behind && (behind.fraction_of_fair() - 0.2).abs() < 1e-9);
        // On the line at 0.5 + 0.25 s = (10 + s)/12, which is s = 2; above it by a tenth at 2.6.
        assert!(after(behind, 11, 13, 0.25, 0.25).behind);
        assert!(!after(behind, 11, 14, 0.25, 0.25).behind);
    }

    #[test]
    fn unmeasured_time_counts_at_the_next_measurement() {
        let start = Received::default().after(0.0, &view("a", 0.1), 0.25, 3.0);
        let later = start.after(5.0, &view("a", 0.1), 0.25, 3.0);
        let measured = later.after(10.0, &using("a", 0.1, 0.1), 0.25, 3.0);
        assert!(
            (measured.fraction_of_fair() - 0.4).abs() < 1e-9 && (measured.cpu - 1.0).abs() < 1e-9
        );
    }
}
