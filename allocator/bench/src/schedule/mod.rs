//! A schedule: which jobs arrive when, and under which arms they run.

mod arm;
mod arrivals;
mod check;
mod error;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(crate) use arm::Arm;
pub(crate) use arrivals::Arrivals;
pub use error::ScheduleError;
use paceline_api::bounded;
use paceline_api::nodes::Node;
use serde::{Deserialize, Serialize};

/// The placeholder for the number of steps in a job's command.
const STEPS: &str = "{steps}";

/// A checked schedule file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// The name, which is also that of the folder of results.
    pub(crate) name: String,
    /// For the report's reader.
    pub(crate) description: String,
    /// The file's text.
    pub(crate) text: String,
    /// How often each arm runs; at least once.
    pub(crate) repeats: u32,
    /// The same in the schedule's full form.
    full_repeats: Option<u32>,
    /// Whether a run that does not count comes before all others.
    pub(crate) warm_up: bool,
    /// The seed of random arrivals.
    pub(crate) seed: u64,
    /// The paper's times divided by those of the schedule.
    pub(crate) scale: f64,
    pub(crate) arrivals: Arrivals,
    /// Seconds after which running jobs are stopped; they have no completion time then.
    pub(crate) until: Option<f64>,
    /// In the order in which they run; at least one, with unique names.
    pub(crate) arms: Vec<Arm>,
    /// The additional arms of the full form.
    full_arms: Vec<Arm>,
    /// The parts of the machine; empty if it is not divided.
    pub(crate) nodes: Vec<Node>,
    /// The jobs in the file's order; at least one, with unique names. Their arrivals are those of the
    /// first repeat.
    pub(crate) jobs: Vec<Job>,
    /// Parameters by policy and name, for arms that the command line adds.
    params: BTreeMap<String, BTreeMap<String, f64>>,
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
    /// Seconds that the job takes alone on the machine; given if and only if the command has `{steps}`.
    pub(crate) work: Option<f64>,
    /// The node that it begins on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The path in its container of a folder for checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<String>,
    /// Its environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Its labels, apart from those that the bench sets.
    pub(crate) labels: BTreeMap<String, String>,
}

/// The JSON Schema of a schedule's file.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(file::ScheduleFile)
}

impl Schedule {
    /// Reads `file`.
    pub(crate) fn read(file: &Path) -> Result<Self, ScheduleError> {
        let text = bounded::SCHEDULE
            .read(file)
            .map_err(|source| ScheduleError::Read { file: file.to_owned(), source })?;
        Self::parse(file, &text)
    }

    /// Reads the `text` of `file`.
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ScheduleError> {
        check::check(text, file::parse(text).map_err(|e| e.at(file))?).map_err(|e| e.at(file))
    }

    /// The schedule with only these arms, each the name of an arm or of a policy. Without names it stays
    /// unchanged.
    pub(crate) fn under(mut self, names: &[String]) -> Result<Self, ScheduleError> {
        let mut seen = BTreeSet::new();
        let mut arms = Vec::new();
        for name in names {
            let mut all = self.arms.iter().chain(&self.full_arms);
            let arm = all.find(|arm| arm.name == *name).cloned();
            let params = || self.params.get(name).cloned().unwrap_or_default();
            let arm = arm.unwrap_or_else(|| Arm::new(name, params()));
            let problem = match arm.problem(self.nodes.len()) {
                None if !seen.insert(name) => "it is given twice".to_owned(),
                None if arm.is_oracle() => check::unknown_work(&self.jobs).unwrap_or_default(),
                None => String::new(),
                Some(problem) => problem,
            };
            if !problem.is_empty() {
                return Err(ScheduleError::Policy { name: name.clone(), problem });
            }
            arms.push(arm);
        }
        if !arms.is_empty() {
            self.arms = arms;
            self.full_arms.clear();
        }
        Ok(self)
    }

    /// The same in its full form, if it has one.
    pub(crate) fn in_full(mut self) -> Self {
        self.repeats = self.full_repeats.unwrap_or(self.repeats);
        self.arms.append(&mut self.full_arms);
        self
    }

    /// The jobs with their arrivals in a repeat. Random arrivals differ between repeats and are the same
    /// for every arm. The warm-up, repeat 0, has those of the first repeat.
    pub(crate) fn jobs_of(&self, repeat: u32) -> Vec<Job> {
        let seed = self.seed.wrapping_add(u64::from(repeat.saturating_sub(1)));
        let mut jobs = self.jobs.clone();
        let times = self.arrivals.draw(jobs.len(), seed).into_iter().flatten();
        for (job, time) in jobs.iter_mut().zip(times) {
            job.arrive = time;
        }
        jobs
    }
}

impl Job {
    /// Whether the command has a placeholder for the number of steps.
    pub(crate) fn takes_steps(&self) -> bool {
        self.command.iter().any(|word| word.contains(STEPS))
    }

    /// The command for `steps` steps.
    pub(crate) fn command_for(&self, steps: u64) -> Vec<String> {
        self.command.iter().map(|word| word.replace(STEPS, &steps.to_string())).collect()
    }

    /// Whether both do the same work in each step, because they differ only in their seed.
    pub(crate) fn is_as_fast_as(&self, other: &Self) -> bool {
        self.image == other.image
            && self.node == other.node
            && self.env == other.env
            && self.command_without_seed() == other.command_without_seed()
    }

    /// The command without the value of `--seed`.
    fn command_without_seed(&self) -> Vec<String> {
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

/// An error in a file, before the file's name is added.
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
