//! The allocator's configuration file.

use std::collections::BTreeMap;

use paceline_policy::Variant;
use paceline_policy::limiter::LimiterSettings;
use serde::Deserialize;

use crate::toml_error;

/// What a file may say. The command line rules over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The policy's name.
    pub policy: Option<String>,
    /// How closely to keep to its paper.
    pub variant: Option<Variant>,
    /// The policy's parameters.
    pub params: BTreeMap<String, f64>,
    /// What stands below the policy.
    pub limiter: LimiterSettings,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML, a key that there is not, or a value of another type than is allowed.
    #[error("line {line}: {problem}")]
    Form {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A value that is not allowed.
    #[error("variant: {0}")]
    Variant(#[from] paceline_policy::policy::UnknownVariant),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    policy: Option<String>,
    variant: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, f64>,
    #[serde(default)]
    limiter: LimiterSettings,
}

impl Config {
    /// Reads the text of a TOML file.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let (line, problem) = toml_error::explain(text, &error);
            ConfigError::Form { line, problem }
        })?;
        Ok(Self {
            policy: raw.policy,
            variant: raw.variant.map(|variant| variant.parse()).transpose()?,
            params: raw.params,
            limiter: raw.limiter,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = "policy = \"tradl\"\nvariant = \"published\"\n[params]\nalpha = 0.8\nhold = 4\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.policy.as_deref(), Some("tradl"));
        assert_eq!(config.variant, Some(Variant::Published));
        assert_eq!(config.params.get("hold"), Some(&4.0));
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn an_unknown_key_is_an_error_that_suggests_the_nearest() {
        for (text, line, nearest) in [
            ("\npolcy = \"tradl\"", 2, "policy"),
            ("[limter]", 1, "limiter"),
            ("[limiter]\nenforcment = \"quota\"", 2, "enforcement"),
            ("[limiter]\n[limiter.slew]\nmax-decrease = 0.1", 3, "max_decrease"),
            ("[limiter]\ncanary = { report = 3 }", 2, "reports"),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("line {line}: unknown field")), "{error}");
            assert!(error.ends_with(&format!("; did you mean {nearest:?}?")), "{error}");
        }
        assert_eq!(
            error("speed = 1"),
            "line 1: unknown field `speed`, expected one of `policy`, `variant`, `params`, `limiter`"
        );
    }

    #[test]
    fn a_bad_value_is_named_with_its_line() {
        assert!(error("[params]\nalpha = \"much\"").starts_with("line 2: "));
        assert!(error("variant = \"exact\"").contains("resolved or published"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            drop(Config::parse(&text));
        }
    }
}
