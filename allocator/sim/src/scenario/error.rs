use std::fmt::Display;

use paceline_policy::limiter::SettingError;
use paceline_policy::names::in_plain_words;
use paceline_policy::params::ParamError;

/// Why a scenario is invalid.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// Invalid TOML, an unknown key, or a value of the wrong type.
    #[error("line {line}: {problem}")]
    Form {
        /// The line, from 1.
        line: usize,
        /// The problem there.
        problem: String,
    },
    /// A value that is not allowed.
    #[error("{field} is {value}: {rule}")]
    Value {
        /// The field, with its job, gang or node.
        field: String,
        /// The value.
        value: String,
        /// What is allowed.
        rule: String,
    },
    /// An option of the command line that is not allowed.
    #[error("invalid --{option} {value:?}: expected {expected}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// An unknown policy or parameter, or an invalid value of one.
    #[error(transparent)]
    Policy(#[from] ParamError),
    /// An invalid setting of the limiter.
    #[error(transparent)]
    Limiter(#[from] SettingError),
    /// A run that would take too long.
    #[error(
        "cannot simulate {run}: it has come to second {second:.0} and needs more than {most} \
         looks at a job; give it less work, fewer jobs, a longer interval or an earlier `until`"
    )]
    TooLong {
        /// The policy, with the seed.
        run: String,
        /// How far it has come, in seconds.
        second: f64,
        /// The most looks at a job.
        most: u64,
    },
    /// Too many results for the memory.
    #[error(
        "cannot compare {arms} policies over {seeds} seeds of {jobs} jobs: expected at most \
         {most} jobs in all; give fewer seeds, policies or jobs"
    )]
    TooMany {
        /// The number of policies.
        arms: usize,
        /// The number of seeds.
        seeds: u32,
        /// The number of jobs of one run.
        jobs: usize,
        /// The most jobs of all runs.
        most: usize,
    },
    /// A policy of gangs in a scenario of jobs.
    #[error(
        "cannot run {0} on [[job]]: it decides about distributed jobs; use a scenario with [[gang]]"
    )]
    NotOfJobs(String),
    /// A policy of jobs in a scenario of gangs.
    #[error(
        "cannot run {0} on [[gang]]: it decides about jobs of one process; use a scenario with [[job]]"
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

    pub(crate) fn option(
        option: &'static str,
        value: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Option { option, value: value.into(), expected: expected.into() }
    }

    /// The error that `toml` reports for `text`, in one line.
    pub(super) fn form(text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().unwrap_or_default().start;
        let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
        Self::Form { line, problem: in_plain_words(error.message()) }
    }
}
