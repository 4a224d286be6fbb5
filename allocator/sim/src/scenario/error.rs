use std::fmt::Display;

use paceline_policy::limiter::SettingError;
use paceline_policy::names::did_you_mean;
use paceline_policy::params::ParamError;

/// A scenario that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, a key that there is not, or a value of another type than is allowed.
    #[error("line {line}: {problem}")]
    Form {
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A value that is not allowed.
    #[error("{field} is {value}: {rule}")]
    Value {
        /// What it is the value of.
        field: String,
        /// The value.
        value: String,
        /// What is allowed.
        rule: String,
    },
    /// A policy or a parameter that there is not.
    #[error(transparent)]
    Policy(#[from] ParamError),
    /// A setting of the limiter that cannot be.
    #[error(transparent)]
    Limiter(#[from] SettingError),
    /// A policy that has nothing to decide about jobs of one process.
    #[error("{0} decides about distributed jobs: the scenario needs [[gang]] for it, not [[job]]")]
    NotOfJobs(String),
    /// A policy that has nothing to decide about distributed jobs.
    #[error(
        "{0} decides about jobs of one process: the scenario needs [[job]] for it, not [[gang]]"
    )]
    NotOfGangs(String),
}

impl ScenarioError {
    pub(crate) fn value(
        field: impl Into<String>,
        value: &dyn Display,
        rule: impl Into<String>,
    ) -> Self {
        Self::Value { field: field.into(), value: value.to_string(), rule: rule.into() }
    }

    /// What `toml` has to say of `text`, in one line.
    pub(super) fn form(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().unwrap_or_default().start;
        let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let hint = message.strip_prefix("unknown field ").map(|rest| {
            let mut words = rest.split('`').skip(1).step_by(2);
            words.next().map(|key| did_you_mean(key, words)).unwrap_or_default()
        });
        Self::Form { line, problem: message + &hint.unwrap_or_default() }
    }
}
