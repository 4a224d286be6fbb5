//! How far one decision may move a limit.

use serde::{Deserialize, Serialize};

use super::settings::{SettingError, require};

/// Bounds of one decision's change, relative to the share after the previous decision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Slew {
    /// The largest decrease, as a fraction of the share before.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0, "maximum" = 1)))]
    pub max_decrease: f64,
    /// The largest increase, as a fraction of the share before; `None` means unlimited.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub max_increase: Option<f64>,
}

impl Default for Slew {
    /// Up at once, down slowly: an early cut hurts more than an early increase.
    fn default() -> Self {
        Self { max_decrease: 0.1, max_increase: None }
    }
}

impl Slew {
    pub(super) fn check(self) -> Result<(), SettingError> {
        let decrease = self.max_decrease;
        require("slew.max_decrease", decrease, "above 0 and at most 1", |x| x > 0.0 && x <= 1.0)?;
        match self.max_increase {
            Some(increase) => require("slew.max_increase", increase, "above 0", |x| x > 0.0),
            None => Ok(()),
        }
    }

    /// The share nearest to `wanted` within one step from `from`.
    pub(super) fn step(self, from: f64, wanted: f64) -> f64 {
        let most = self.max_increase.map_or(1.0, |increase| (from * (1.0 + increase)).min(1.0));
        wanted.min(most).max(from * (1.0 - self.max_decrease))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_decision_moves_a_share_by_one_step() {
        let slew = Slew { max_decrease: 0.1, max_increase: Some(0.5) };
        for (from, wanted, expected) in
            [(1.0, 0.25, 0.9), (0.2, 1.0, 0.3), (0.5, 0.46, 0.46), (0.5, 0.74, 0.74)]
        {
            assert!((slew.step(from, wanted) - expected).abs() < 1e-12, "{from} {wanted}");
        }
        assert!((Slew::default().step(0.1, 1.0) - 1.0).abs() < 1e-12, "up is free");
    }

    proptest! {
        #[test]
        fn steps_reach_what_is_wanted(from in 0.05..=1.0, wanted in 0.05..=1.0) {
            let slew = Slew { max_decrease: 0.1, max_increase: Some(0.1) };
            let reached = (0..40).fold(from, |from, _| slew.step(from, wanted));
            prop_assert!((reached - wanted).abs() < 1e-12);
        }
    }
}
