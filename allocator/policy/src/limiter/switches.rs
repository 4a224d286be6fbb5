//! Guards that are switched for single jobs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::LimiterSettings;

/// A guard of the limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Bounds the size of a step.
    Slew,
    /// Keeps a job from falling far behind an equal share.
    Fairness,
    /// Undoes a cut that breaks a job's batch latency target.
    Canary,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slew => "slew",
            Self::Fairness => "fairness",
            Self::Canary => "canary",
        })
    }
}

/// The guards that commands have switched for one job. The others follow the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    slew: Option<bool>,
    fairness: Option<bool>,
    canary: Option<bool>,
}

impl Switches {
    /// Switches one guard.
    pub fn set(&mut self, guard: Guard, on: bool) {
        let switch = match guard {
            Guard::Slew => &mut self.slew,
            Guard::Fairness => &mut self.fairness,
            Guard::Canary => &mut self.canary,
        };
        *switch = Some(on);
    }

    /// The settings for this job. A guard that is switched on without settings uses its defaults.
    pub(super) fn over(self, settings: LimiterSettings) -> LimiterSettings {
        LimiterSettings {
            enforcement: settings.enforcement,
            slew: switched(settings.slew, self.slew),
            fairness: switched(settings.fairness, self.fairness),
            canary: switched(settings.canary, self.canary),
        }
    }

    /// The allowed slowdown compared with an equal share; `None` means unlimited. The owner's value
    /// overrides the settings. A guard that is switched off overrides both.
    pub(super) fn max_slowdown(self, own: Option<f64>, settings: LimiterSettings) -> Option<f64> {
        let general = self.over(settings).fairness.map(|fairness| fairness.max_slowdown);
        own.filter(|_| self.fairness != Some(false)).or(general)
    }

    /// The guards that are on for the job.
    pub(super) fn guards_on(
        self,
        max_slowdown: Option<f64>,
        settings: LimiterSettings,
    ) -> Vec<Guard> {
        let own = self.over(settings);
        let all = [
            (Guard::Slew, own.slew.is_some()),
            (Guard::Fairness, self.max_slowdown(max_slowdown, settings).is_some()),
            (Guard::Canary, own.canary.is_some()),
        ];
        all.into_iter().filter_map(|(guard, on)| on.then_some(guard)).collect()
    }
}

fn switched<T: Default>(setting: Option<T>, switch: Option<bool>) -> Option<T> {
    match switch {
        None => setting,
        Some(true) => Some(setting.unwrap_or_default()),
        Some(false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{Canary, Fairness, Slew};

    const ALL: [Guard; 3] = [Guard::Slew, Guard::Fairness, Guard::Canary];

    fn everything() -> LimiterSettings {
        LimiterSettings {
            slew: Some(Slew { max_decrease: 0.5, max_increase: None }),
            fairness: Some(Fairness { max_slowdown: 2.0 }),
            canary: Some(Canary { reports: 9, quarantine: 1.0 }),
            ..LimiterSettings::default()
        }
    }

    fn all(on: bool) -> Switches {
        let mut switches = Switches::default();
        for guard in ALL {
            switches.set(guard, on);
        }
        switches
    }

    #[test]
    fn unswitched_guard_follows_the_settings() {
        for settings in [LimiterSettings::default(), everything()] {
            assert_eq!(Switches::default().over(settings), settings);
        }
    }

    #[test]
    fn guard_switched_on_keeps_its_setting_or_uses_defaults() {
        assert_eq!(all(true).over(everything()), everything());
        let own = all(true).over(LimiterSettings::default());
        assert_eq!(own.slew, Some(Slew::default()));
        assert_eq!(own.fairness, Some(Fairness::default()));
        assert_eq!(own.canary, Some(Canary::default()));
    }

    #[test]
    fn a_guard_that_is_switched_off_is_off_over_settings_and_label() {
        let (label, none) = (Some(4.0), LimiterSettings::default());
        assert_eq!(Switches::default().guards_on(label, everything()), ALL);
        assert_eq!(Switches::default().guards_on(label, none), [Guard::Fairness]);
        assert_eq!(all(false).guards_on(label, everything()), []);
        assert_eq!(all(false).max_slowdown(label, everything()), None);
    }
}
