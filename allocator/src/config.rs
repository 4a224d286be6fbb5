//! The allocator's configuration file.

use std::collections::BTreeMap;

use paceline_policy::Variant;
use paceline_policy::limiter::LimiterSettings;
use serde::Deserialize;

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
    /// Not TOML, or a value of another type than is allowed.
    #[error("{0}")]
    Toml(String),
    /// A key that there is not.
    #[error("line {line}: {key:?} is not known{hint}")]
    Unknown {
        /// Where it stands, from 1.
        line: usize,
        /// The key.
        key: String,
        /// What was probably meant.
        hint: String,
    },
    /// A value that is not allowed.
    #[error("variant: {0}")]
    Variant(#[from] paceline_policy::policy::UnknownVariant),
}

const KEYS: [&str; 4] = ["policy", "variant", "params", "limiter"];

#[derive(Debug, Deserialize)]
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
        let table: toml::Table = text.parse().map_err(|error| ConfigError::toml(text, &error))?;
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let line = text.lines().position(|line| {
                line.trim_start().trim_start_matches('[').starts_with(key.as_str())
            });
            return Err(ConfigError::Unknown {
                line: line.map_or(1, |at| at + 1),
                key: key.clone(),
                hint: hint(key, &KEYS),
            });
        }
        let raw: Raw = toml::from_str(text).map_err(|error| ConfigError::toml(text, &error))?;
        Ok(Self {
            policy: raw.policy,
            variant: raw.variant.map(|variant| variant.parse()).transpose()?,
            params: raw.params,
            limiter: raw.limiter,
        })
    }
}

impl ConfigError {
    /// One line, with the place that TOML's own message draws a picture of.
    fn toml(text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        Self::Toml(format!("line {line}: {}", error.message().replace('\n', " ")))
    }
}

/// The known name that is nearest to `name`, as a question; nothing when none is near.
fn hint(name: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (strsim::jaro_winkler(name, known), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((likeness, known)) if likeness > 0.7 => format!(": did you mean {known:?}?"),
        _ => format!(": there are {}", known.join(", ")),
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
        assert_eq!(
            error("\npolcy = \"tradl\""),
            "line 2: \"polcy\" is not known: did you mean \"policy\"?"
        );
        assert_eq!(
            error("speed = 1"),
            "line 1: \"speed\" is not known: there are policy, variant, params, limiter"
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
