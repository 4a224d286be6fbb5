//! A schedule: which jobs arrive when, and under which policies they are run.

mod check;
mod error;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use error::ScheduleError;
use paceline_policy::policies::AnyPolicy;
use paceline_policy::{Params, Variant};
use serde::{Deserialize, Serialize};

/// What stands for the number of steps in a job's command.
const STEPS: &str = "{steps}";

/// What a schedule file says, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// Names the folder of the results.
    pub(crate) name: String,
    /// For the report's reader.
    pub(crate) description: String,
    /// The policies, in the order in which they are run; none stands there twice.
    pub(crate) policies: Vec<String>,
    /// Parameters by policy and name.
    pub(crate) params: BTreeMap<String, BTreeMap<String, f64>>,
    /// The jobs, in the file's order; at least one, each name once.
    pub(crate) jobs: Vec<Job>,
}

/// A job of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Its name: letters, digits, `.`, `_` and `-`.
    pub(crate) name: String,
    /// The image that it is run from.
    pub(crate) image: String,
    /// The command, with `{steps}` where the number of steps belongs.
    pub(crate) command: Vec<String>,
    /// Seconds after the run began.
    pub(crate) arrive: f64,
    /// Seconds that the job would take with the machine for itself; given iff the command has
    /// `{steps}`.
    pub(crate) work: Option<f64>,
    /// Its environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Its labels, apart from those that the bench sets.
    pub(crate) labels: BTreeMap<String, String>,
}

impl Schedule {
    /// Reads `file`.
    pub(crate) fn read(file: &Path) -> Result<Self, ScheduleError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| ScheduleError::Read { file: file.to_owned(), source })?;
        Self::parse(file, &text)
    }

    /// Reads the `text` of `file`.
    fn parse(file: &Path, text: &str) -> Result<Self, ScheduleError> {
        check::check(text, file::parse(text).map_err(|e| e.at(file))?).map_err(|e| e.at(file))
    }

    /// The same schedule under other `policies`; with none given, as it is.
    pub(crate) fn under(mut self, policies: &[String]) -> Result<Self, ScheduleError> {
        let mut seen = BTreeSet::new();
        for name in policies {
            let problem = match policy_problem(name, self.params.get(name)) {
                None if !seen.insert(name) => "it is given twice".to_owned(),
                None => continue,
                Some(problem) => problem,
            };
            return Err(ScheduleError::Policy { name: name.clone(), problem });
        }
        if !policies.is_empty() {
            self.policies = policies.to_vec();
        }
        Ok(self)
    }
}

impl Job {
    /// Whether the command wants to be told a number of steps.
    pub(crate) fn takes_steps(&self) -> bool {
        self.command.iter().any(|word| word.contains(STEPS))
    }

    /// The command for `steps` steps.
    pub(crate) fn command_for(&self, steps: u64) -> Vec<String> {
        self.command.iter().map(|word| word.replace(STEPS, &steps.to_string())).collect()
    }

    /// The command without the value of `--seed`: jobs that differ in it alone are equally fast.
    pub(crate) fn command_without_seed(&self) -> Vec<String> {
        let mut is_seed = false;
        let mut words = Vec::new();
        for word in &self.command {
            if word.starts_with("--seed=") {
                words.push("--seed".to_owned());
            } else if !is_seed {
                words.push(word.clone());
            }
            is_seed = word == "--seed";
        }
        words
    }
}

/// What is wrong with a policy's name or parameters, if anything is.
fn policy_problem(name: &str, params: Option<&BTreeMap<String, f64>>) -> Option<String> {
    let mut given = Params::default();
    for (name, value) in params.into_iter().flatten() {
        given.set(name.as_str(), *value);
    }
    match paceline_policy::policies::build(name, Variant::default(), &given) {
        Ok(AnyPolicy::Jobs(_)) => None,
        Ok(_) => Some("it is a policy of a cluster: a bench runs on one node".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

/// Where in a file something is wrong, before the file's name is known.
#[derive(Debug)]
enum Problem {
    Form { line: usize, problem: String },
    Value { line: usize, field: String, value: String, rule: String },
}

impl Problem {
    fn at(self, file: &Path) -> ScheduleError {
        let file = PathBuf::from(file);
        match self {
            Self::Form { line, problem } => ScheduleError::Form { file, line, problem },
            Self::Value { line, field, value, rule } => {
                ScheduleError::Value { file, line, field, value, rule }
            }
        }
    }
}

#[cfg(test)]
mod tests;
