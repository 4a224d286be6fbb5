//! A policy's choice for one job after clamp and slew, before any guard.

use super::{Rules, View, Why};

/// The result for one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clamp {
    /// The policy's choice.
    pub(super) chosen: f64,
    /// The share after the previous decision.
    pub(super) from: f64,
    /// The choice after clamp and slew.
    pub(super) share: f64,
    /// Whether the job waits on purpose.
    pub(super) waits: bool,
    /// The reason.
    pub(super) why: Why,
}

/// A policy's choice for one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// The share after the previous decision.
    pub(super) from: f64,
    pub(super) chosen: f64,
    /// Whether it waits on purpose.
    pub(super) waits: bool,
}

impl Clamp {
    pub(super) fn new(rules: &Rules, view: &View, choice: Choice) -> Self {
        let Choice { from, chosen, waits } = choice;
        let bounds = rules.bounds(view, waits);
        let wanted = bounds.clamp(chosen);
        // A silent job is never cut, but may be raised: it may be silent for lack of CPU.
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
