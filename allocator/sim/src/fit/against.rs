//! Compares a simulation with the recording of a real run.
//!
//! A real job has reached a target once the mean of its last reports has, so noise lets it reach a
//! target before its curve does. A simulated job follows its curve alone, and is late by that.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Lifetime, Recording, lifetimes};
use crate::outcome::{JobOutcome, Outcome};
use crate::stats::mean;

/// The accuracy of a simulation of a recorded run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Accuracy {
    /// The jobs of both, in the order of their arrival in the recording.
    pub jobs: Vec<JobAccuracy>,
    /// The mean completion time of the jobs that ended in both.
    pub mean: Figure,
    /// From the first arrival to the last end, of the same jobs.
    pub makespan: Figure,
    /// The mean absolute relative error of the jobs' completion times.
    pub mean_error: Option<f64>,
    /// Jobs of the recording that the scenario does not have.
    pub only_recorded: Vec<String>,
    /// Jobs of the scenario that the recording does not have.
    pub only_simulated: Vec<String>,
}

/// One job; all times are seconds after its arrival.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobAccuracy {
    /// Its name.
    pub id: String,
    /// Until its end.
    pub completion: Figure,
    /// Until its loss was acceptable.
    pub acceptable: Figure,
    /// Until it had reached its objective.
    pub objective: Figure,
}

/// A time as it was measured and as it was simulated, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figure {
    /// In the recording.
    pub measured: Option<f64>,
    /// The mean over the simulation's runs.
    pub simulated: Option<f64>,
    /// The relative error: simulated over measured, minus 1.
    pub error: Option<f64>,
}

impl Figure {
    fn new(measured: Option<f64>, simulated: Option<f64>) -> Self {
        let both = measured.zip(simulated).filter(|(measured, _)| *measured > 0.0);
        let error = both.map(|(measured, simulated)| simulated / measured - 1.0);
        Self { measured, simulated, error }
    }
}

/// Compares runs of a scenario, one for each seed, with a recording.
pub fn accuracy(recording: &Recording, runs: &[Outcome]) -> Accuracy {
    let mut simulated: BTreeMap<&str, Vec<&JobOutcome>> = BTreeMap::new();
    for job in runs.iter().flat_map(|run| &run.jobs) {
        simulated.entry(&job.id).or_default().push(job);
    }
    let mut found = Accuracy::default();
    let mut ends = Ends::default();
    for life in lifetimes(recording) {
        match simulated.remove(life.id.as_str()) {
            Some(runs) => {
                let job = JobAccuracy::new(&life, &runs);
                ends.take(&life, &runs, &job.completion);
                found.jobs.push(job);
            }
            None => found.only_recorded.push(life.id.to_string()),
        }
    }
    let completions = || found.jobs.iter().map(|job| &job.completion);
    let both = || completions().filter(|figure| figure.error.is_some());
    found.mean = Figure::new(
        mean(&both().filter_map(|figure| figure.measured).collect::<Vec<_>>()),
        mean(&both().filter_map(|figure| figure.simulated).collect::<Vec<_>>()),
    );
    let errors = completions().filter_map(|figure| figure.error).map(f64::abs);
    found.mean_error = mean(&errors.collect::<Vec<_>>());
    found.makespan = ends.makespan();
    found.only_simulated = simulated.into_keys().map(ToOwned::to_owned).collect();
    found
}

impl JobAccuracy {
    fn new(life: &Lifetime, runs: &[&JobOutcome]) -> Self {
        let since = |moment: Option<f64>| moment.map(|at| at - life.arrived);
        let of = |time: fn(&JobOutcome) -> Option<f64>| all(runs.iter().map(|run| time(run)));
        Self {
            id: life.id.to_string(),
            completion: Figure::new(life.completion(), of(JobOutcome::completion)),
            acceptable: Figure::new(
                since(life.acceptable),
                of(|run| Some(run.acceptable? - run.arrived)),
            ),
            objective: Figure::new(
                since(life.objective),
                of(|run| Some(run.objective? - run.arrived)),
            ),
        }
    }
}

/// First arrivals and last ends.
#[derive(Debug, Default)]
struct Ends {
    measured: Option<(f64, f64)>,
    simulated: Option<(f64, f64)>,
}

impl Ends {
    fn take(&mut self, life: &Lifetime, runs: &[&JobOutcome], completion: &Figure) {
        let (Some(measured), Some(simulated)) = (completion.measured, completion.simulated) else {
            return;
        };
        let arrived = mean(&runs.iter().map(|run| run.arrived).collect::<Vec<_>>()).unwrap_or(0.0);
        widen(&mut self.measured, life.arrived, life.arrived + measured);
        widen(&mut self.simulated, arrived, arrived + simulated);
    }

    fn makespan(&self) -> Figure {
        let length = |(from, to): (f64, f64)| to - from;
        Figure::new(self.measured.map(length), self.simulated.map(length))
    }
}

fn widen(span: &mut Option<(f64, f64)>, from: f64, to: f64) {
    let (first, last) = span.unwrap_or((from, to));
    *span = Some((first.min(from), last.max(to)));
}

/// The mean over the runs; `None` if a run lacks the value.
fn all(each: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    each.collect::<Option<Vec<f64>>>().and_then(|each| mean(&each))
}
