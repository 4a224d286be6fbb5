use std::fmt;
use std::str::FromStr;

use paceline_policy::names::did_you_mean;

use crate::metrics::{METRICS, Metric};
use crate::outcome::{JobOutcome, Outcome};
use crate::scenario::ScenarioError;

/// The prefix of the name of one job's completion time.
const OF_A_JOB: &str = "completion:";

/// A figure of a run.
#[derive(Clone, Debug)]
pub enum Measure {
    /// A metric over all jobs.
    Metric(&'static Metric),
    /// The completion time of the job of this name.
    Completion(String),
}

impl Measure {
    /// Its value for a run; `None` if the run does not have it.
    pub fn of(&self, outcome: &Outcome) -> Option<f64> {
        match self {
            Self::Metric(metric) => metric.of(outcome),
            Self::Completion(name) => {
                outcome.jobs.iter().find(|job| job.id == *name).and_then(JobOutcome::completion)
            }
        }
    }

    /// Whether its value for a run leaves out jobs that did not finish.
    pub fn leaves_out_jobs(&self, outcome: &Outcome) -> bool {
        match self {
            Self::Metric(metric) => metric.leaves_out_jobs(outcome),
            Self::Completion(_) => self.of(outcome).is_none(),
        }
    }

    /// Its title in tables.
    pub fn title(&self) -> String {
        match self {
            Self::Metric(metric) => metric.title.to_owned(),
            Self::Completion(name) => format!("completion of {name}"),
        }
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.unit,
            Self::Completion(_) => "s",
        }
    }
}

impl FromStr for Measure {
    type Err = ScenarioError;

    /// Parses a metric's name, or `completion:JOB`.
    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        if let Some(name) = text.strip_prefix(OF_A_JOB) {
            return Ok(Self::Completion(name.to_owned()));
        }
        if let Some(metric) = Metric::named(text) {
            return Ok(Self::Metric(metric));
        }
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let hint = did_you_mean(text, names.iter().copied());
        let expected = format!("{OF_A_JOB}JOB or one of {}{hint}", names.join(", "));
        Err(ScenarioError::option("metric", text, expected))
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(metric) => f.write_str(metric.name),
            Self::Completion(name) => write!(f, "{OF_A_JOB}{name}"),
        }
    }
}
