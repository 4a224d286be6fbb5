use std::fmt;
use std::str::FromStr;

use paceline_policy::names::did_you_mean;

use crate::metrics::{METRICS, Metric};
use crate::outcome::{JobOutcome, Outcome};
use crate::scenario::ScenarioError;

/// What the figure of one job's completion time is named by, before the job's name.
const OF_A_JOB: &str = "completion:";

/// Which figure of a run is wanted.
#[derive(Clone, Debug)]
pub enum Measure {
    /// One of all jobs.
    Metric(&'static Metric),
    /// The completion time of the job of this name.
    Completion(String),
}

impl Measure {
    /// Its value for a run; `None` where the run has no such thing.
    pub fn of(&self, outcome: &Outcome) -> Option<f64> {
        match self {
            Self::Metric(metric) => metric.of(outcome),
            Self::Completion(name) => {
                outcome.jobs.iter().find(|job| job.id == *name).and_then(JobOutcome::completion)
            }
        }
    }

    /// What it is called in tables.
    pub fn title(&self) -> String {
        match self {
            Self::Metric(metric) => metric.title.to_owned(),
            Self::Completion(name) => format!("completion of {name}"),
        }
    }

    /// What it counts.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.unit,
            Self::Completion(_) => "s",
        }
    }
}

impl FromStr for Measure {
    type Err = ScenarioError;

    /// Of a metric's name, or of `completion:JOB`.
    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        if let Some(name) = text.strip_prefix(OF_A_JOB) {
            return Ok(Self::Completion(name.to_owned()));
        }
        if let Some(metric) = Metric::named(text) {
            return Ok(Self::Metric(metric));
        }
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let hint = did_you_mean(text, names.iter().copied());
        let rule = format!("must be {OF_A_JOB}JOB or one of {}{hint}", names.join(", "));
        Err(ScenarioError::value("metric", &format!("{text:?}"), rule))
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
