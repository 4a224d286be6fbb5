//! The limiter's settings: read from a configuration and checked once.

use serde::{Deserialize, Serialize};

use super::{Canary, Enforcement, Fairness, Guard, Slew, Switches};

/// The settings of a node's limiter. A guard without a setting is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimiterSettings {
    /// What a share means to the kernel.
    pub enforcement: Enforcement,
    /// How far one decision may move a limit.
    pub slew: Option<Slew>,
    /// How far a job may fall behind an equal share.
    pub fairness: Option<Fairness>,
    /// When a cut that breaks a job's batch latency target is undone.
    pub canary: Option<Canary>,
}

/// The limiter's settings in a configuration. Without an enforcement, each policy's own default
/// applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LimiterOptions {
    /// What a share means to the kernel.
    pub enforcement: Option<Enforcement>,
    /// How far one decision may move a limit.
    pub slew: Option<Slew>,
    /// How far a job may fall behind an equal share.
    pub fairness: Option<Fairness>,
    /// When a cut that breaks a job's batch latency target is undone.
    pub canary: Option<Canary>,
}

impl LimiterOptions {
    /// The settings for a policy whose own enforcement is `own`.
    pub fn below(self, own: Enforcement) -> LimiterSettings {
        let Self { enforcement, slew, fairness, canary } = self;
        LimiterSettings { enforcement: enforcement.unwrap_or(own), slew, fairness, canary }
    }
}

/// A setting that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// The name of the enforcement is unknown.
    #[error("invalid enforcement {0:?}: expected quota, shares or quota+leftover")]
    Enforcement(String),
    /// The value is out of range.
    #[error("invalid limiter setting {name} \"{value}\": expected a number {allowed}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// The value that was given.
        value: f64,
        /// The allowed range, in words.
        allowed: &'static str,
    },
}

impl LimiterSettings {
    /// The guards that are on for every job without switches of its own.
    pub fn guards(self) -> Vec<Guard> {
        Switches::default().guards_on(None, self)
    }

    /// Checks every value.
    pub fn check(self) -> Result<(), SettingError> {
        self.slew.map_or(Ok(()), Slew::check)?;
        self.fairness.map_or(Ok(()), Fairness::check)?;
        self.canary.map_or(Ok(()), Canary::check)
    }
}

/// Refuses a value that is not finite or for which `holds` is false.
pub(super) fn require(
    name: &'static str,
    value: f64,
    allowed: &'static str,
    holds: impl Fn(f64) -> bool,
) -> Result<(), SettingError> {
    if value.is_finite() && holds(value) {
        return Ok(());
    }
    Err(SettingError::OutOfRange { name, value, allowed })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(json: &str) -> Result<LimiterSettings, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn every_guard_is_off_unless_it_is_named() {
        let settings = parse("{}").unwrap();
        assert_eq!(settings, LimiterSettings::default());
        assert_eq!(settings.enforcement, Enforcement::QuotaLeftover);
        assert_eq!((settings.slew, settings.fairness, settings.canary), (None, None, None));
    }

    #[test]
    fn enforcement_that_is_unset_is_the_policys_own() {
        let options = |json| serde_json::from_str::<LimiterOptions>(json).unwrap();
        let slewed = options(r#"{"slew": {}}"#).below(Enforcement::Quota);
        assert_eq!(slewed, parse(r#"{"enforcement": "quota", "slew": {}}"#).unwrap());
        let set = options(r#"{"enforcement": "shares"}"#).below(Enforcement::Quota);
        assert_eq!(set.enforcement, Enforcement::Shares);
        assert!(serde_json::from_str::<LimiterOptions>(r#"{"slow": 1}"#).is_err());
    }

    #[test]
    fn a_guard_that_is_named_has_the_documented_defaults() {
        let settings =
            parse(r#"{"enforcement": "quota", "slew": {}, "fairness": {}, "canary": {}}"#).unwrap();
        assert_eq!(settings.enforcement, Enforcement::Quota);
        assert_eq!(settings.slew, Some(Slew { max_decrease: 0.1, max_increase: None }));
        assert_eq!(settings.fairness, Some(Fairness { max_slowdown: 3.0 }));
        assert_eq!(settings.canary, Some(Canary { reports: 3, quarantine: 300.0 }));
        assert_eq!(settings.check(), Ok(()));
    }

    #[test]
    fn a_setting_that_is_not_known_is_refused() {
        for json in [r#"{"slow": 1}"#, r#"{"slew": {"decrease": 1}}"#, r#"{"enforcement": "cap"}"#]
        {
            assert!(parse(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_value_outside_its_range_is_named() {
        for (json, expected) in [
            (
                r#"{"slew": {"max_decrease": 0}}"#,
                "invalid limiter setting slew.max_decrease \"0\": expected a number above 0 and at most 1",
            ),
            (
                r#"{"slew": {"max_increase": -1}}"#,
                "invalid limiter setting slew.max_increase \"-1\": expected a number above 0",
            ),
            (
                r#"{"fairness": {"max_slowdown": 0.5}}"#,
                "invalid limiter setting fairness.max_slowdown \"0.5\": expected a number at least 1",
            ),
            (
                r#"{"canary": {"reports": 0}}"#,
                "invalid limiter setting canary.reports \"0\": expected a number at least 1",
            ),
            (
                r#"{"canary": {"quarantine": 0}}"#,
                "invalid limiter setting canary.quarantine \"0\": expected a number above 0",
            ),
        ] {
            assert_eq!(parse(json).unwrap().check().unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".*", word in "[a-z_+]*") {
            drop(parse(&text));
            drop(parse(&format!(r#"{{"{word}": {{"{word}": 1}}}}"#)));
        }
    }
}
