//! One arm's runs, and its figures over all of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::containers::LimitLeft;
use super::super::record::{Host, JobRun};
use super::super::schedule::Arm;
use super::figure::RunValue;
use super::measure::Figures;
use super::{Fidelity, Figure, JobFacts, Measured, Promise, Regression, figures, job_figures};

/// The results of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArmFindings {
    #[serde(flatten)]
    pub(crate) facts: Arm,
    /// By name; unknown figures are `null`.
    pub(crate) figures: BTreeMap<String, Option<Figure>>,
    /// In the schedule's order.
    pub(crate) jobs: Vec<JobFindings>,
    /// In the order of their repeats, without the warm-up.
    pub(crate) runs: Vec<RunFindings>,
    /// How close the simulator's prediction comes, figure by figure.
    pub(crate) fidelity: Vec<Fidelity>,
    /// Why it is worse than `none`, if it is: one decision and its consequences.
    #[serde(rename = "story")]
    pub(crate) regression: Option<Regression>,
    /// Whether `paceline` kept its promise that no job ends later than under `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) promise: Option<Promise>,
}

/// The results of one job in an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobFindings {
    pub(crate) job: String,
    /// By name; unknown figures are `null`.
    pub(crate) figures: BTreeMap<String, Option<Figure>>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunFindings {
    pub(crate) repeat: u32,
    /// Where its files are.
    pub(crate) folder: String,
    pub(crate) host: Host,
    /// Containers that the allocator left with a limit: there should be none.
    pub(crate) limits_left: Vec<LimitLeft>,
    pub(crate) figures: Figures,
    /// The simulator's prediction for this repeat.
    #[serde(default)]
    pub(crate) predicted: Figures,
    /// In the schedule's order.
    pub(crate) jobs: Vec<RunJob>,
}

/// One job of a run; times are seconds after the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunJob {
    pub(crate) arrived: f64,
    pub(crate) ended: f64,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
    pub(crate) figures: Figures,
    #[serde(default)]
    pub(crate) predicted: Figures,
}

/// A measured figure, and its prediction.
pub(crate) type Both = (Option<f64>, Option<f64>);

impl RunFindings {
    pub(crate) fn new(measured: &Measured<'_>) -> Self {
        let Measured { observed, trajectory } = measured;
        let run = &observed.recorded.run;
        let job = |(place, its): (usize, &JobRun)| RunJob {
            arrived: its.arrived,
            ended: its.ended,
            failure: observed.failure(its),
            figures: job_figures(trajectory, place),
            predicted: Figures::new(),
        };
        Self {
            repeat: run.repeat,
            folder: observed.recorded.folder.display().to_string(),
            host: run.host.clone(),
            limits_left: run.limits_left.clone(),
            figures: figures(trajectory, Some(run)),
            predicted: Figures::new(),
            jobs: run.jobs.iter().enumerate().map(job).collect(),
        }
    }

    /// Whether no other work disturbed it.
    pub(crate) fn is_clean(&self) -> bool {
        self.host.spoiled.is_none()
    }

    /// What disturbed it, and which run of `arm` it is; `None` if it was not disturbed.
    pub(crate) fn disturbance(&self, arm: &str) -> Option<String> {
        let why = self.host.spoiled.as_ref()?;
        Some(format!("{why} ({arm}, repeat {})", self.repeat))
    }

    /// The figure of this name.
    pub(crate) fn both(&self, name: &str) -> Both {
        both(&self.figures, &self.predicted, name)
    }

    /// The figure of this name of the job at `place`.
    pub(crate) fn both_of_job(&self, place: usize, name: &str) -> Both {
        let job = self.jobs.get(place);
        job.map_or((None, None), |job| both(&job.figures, &job.predicted, name))
    }
}

fn both(measured: &Figures, predicted: &Figures, name: &str) -> Both {
    (measured.get(name).copied().flatten(), predicted.get(name).copied().flatten())
}

impl ArmFindings {
    /// The results of an arm with these `runs`, compared with those of `none`.
    pub(crate) fn new(
        facts: &Arm,
        runs: Vec<RunFindings>,
        baseline: &[RunFindings],
        jobs: &[JobFacts],
    ) -> Self {
        let of_run = |run: &RunFindings| Some(run.figures.clone());
        let job = |(place, facts): (usize, &JobFacts)| JobFindings {
            job: facts.job.name.clone(),
            figures: summarize(&runs, baseline, |run| Some(run.jobs.get(place)?.figures.clone())),
        };
        Self {
            facts: facts.clone(),
            figures: summarize(&runs, baseline, of_run),
            jobs: jobs.iter().enumerate().map(job).collect(),
            fidelity: Vec::new(),
            regression: None,
            promise: None,
            runs,
        }
    }

    /// A figure by its measure's name.
    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)?.as_ref()
    }

    /// A figure's value in each of the runs that it is a mean of, by repeat.
    pub(crate) fn values(&self, name: &str) -> BTreeMap<u32, f64> {
        let value = |run: &RunFindings| Some((run.repeat, run.both(name).0?));
        basis(&self.runs).into_iter().filter_map(value).collect()
    }

    /// The undisturbed runs.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &RunFindings> {
        self.runs.iter().filter(|run| run.is_clean())
    }

    /// Whether every run was disturbed. Then its figures come from disturbed runs, and are marked.
    pub(crate) fn is_disturbed(&self) -> bool {
        !self.runs.is_empty() && self.counted().next().is_none()
    }

    /// The run that is shown where there is room for one: the median by mean completion time, of the runs
    /// that the figures are means of.
    pub(crate) fn median_run(&self) -> Option<&RunFindings> {
        let mean = |run: &RunFindings| {
            run.figures.get("completion_mean").copied().flatten().unwrap_or(f64::INFINITY)
        };
        let mut runs = basis(&self.runs);
        runs.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }
}

impl JobFindings {
    /// A figure by its name.
    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)?.as_ref()
    }
}

/// The runs that figures are means of: the undisturbed ones, or all if every run was disturbed.
fn basis(runs: &[RunFindings]) -> Vec<&RunFindings> {
    let clean: Vec<&RunFindings> = runs.iter().filter(|run| run.is_clean()).collect();
    if clean.is_empty() { runs.iter().collect() } else { clean }
}

/// Each figure over those runs, compared with all runs of `none`.
fn summarize(
    runs: &[RunFindings],
    baseline: &[RunFindings],
    of: impl Fn(&RunFindings) -> Option<Figures>,
) -> BTreeMap<String, Option<Figure>> {
    let figures = |runs: Vec<&RunFindings>| -> Vec<(u32, bool, Figures)> {
        let figures = |run: &RunFindings| Some((run.repeat, !run.is_clean(), of(run)?));
        runs.into_iter().filter_map(figures).collect()
    };
    let (own, none) = (figures(basis(runs)), figures(baseline.iter().collect()));
    let values = |runs: &[(u32, bool, Figures)], name: &str| -> Vec<RunValue> {
        let value = |(repeat, disturbed, its): &(u32, bool, Figures)| {
            let value = its.get(name).copied()??;
            Some(RunValue { repeat: *repeat, value, disturbed: *disturbed })
        };
        runs.iter().filter_map(value).collect()
    };
    let names = own.first().map(|(.., figures)| figures.keys()).into_iter().flatten();
    names
        .map(|name| {
            let known = values(&own, name);
            let figure = Figure::new(&known, &values(&none, name));
            let partial = known.len() < own.len();
            (name.clone(), figure.map(|figure| Figure { partial, ..figure }))
        })
        .collect()
}
