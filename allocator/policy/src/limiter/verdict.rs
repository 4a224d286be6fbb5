//! What a decision comes to for one job, before any guard.

use super::{Rules, View, Why};

/// The share that a decision leaves a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// What the policy chose.
    pub(super) chosen: f64,
    /// What the job had by the decision before.
    pub(super) from: f64,
    /// The choice after clamp and slew.
    pub(super) share: f64,
    /// Whether the job waits on purpose.
    pub(super) waits: bool,
    /// Why.
    pub(super) why: Why,
}

/// What a policy says of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// What the job had by the decision before.
    pub(super) from: f64,
    pub(super) chosen: f64,
    /// Whether it waits on purpose.
    pub(super) waits: bool,
}

impl Verdict {
    pub(super) fn new(rules: &Rules, view: &View, choice: Choice) -> Self {
        let Choice { from, chosen, waits } = choice;
        let bounds = rules.bounds(view, waits);
        let wanted = bounds.clamp(chosen);
        // A job that has gone silent is never cut, but it is raised: that may be what it lacks.
        if view.silent && wanted <= from {
            return Self { chosen, from, share: from, waits, why: Why::Silent };
        }
        let share = match view.switches.over(rules.settings).slew {
            Some(slew) => bounds.clamp(slew.step(from, wanted)),
            None => wanted,
        };
        let why = if (share - wanted).abs() > 0.0 {
            Why::Slewed { from, wanted }
        } else if wanted > chosen {
            Why::Least { chosen, floor: bounds.floor }
        } else if wanted < chosen {
            Why::Most { chosen, ceiling: bounds.ceiling }
        } else {
            Why::Chosen
        };
        Self { chosen, from, share, waits, why }
    }

    pub(super) fn is_slewed(&self) -> bool {
        matches!(self.why, Why::Slewed { .. })
    }
}
