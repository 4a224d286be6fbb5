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
    /// Why.
    pub(super) why: Why,
}

impl Verdict {
    pub(super) fn new(rules: &Rules, view: &View, from: f64, chosen: f64) -> Self {
        if view.silent {
            return Self { chosen, from, share: from, why: Why::Silent };
        }
        let bounds = rules.bounds(view);
        let wanted = bounds.clamp(chosen);
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
        Self { chosen, from, share, why }
    }

    pub(super) fn is_slewed(&self) -> bool {
        matches!(self.why, Why::Slewed { .. })
    }
}
