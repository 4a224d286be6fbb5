//! One arm's runs, and their figures together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::containers::LimitLeft;
use super::super::predict::Fidelity;
use super::super::promise::Promise;
use super::super::record::{Host, JobRun};
use super::super::story::Story;
use super::figure::RunValue;
use super::measure::Figures;
use super::{ArmFacts, Figure, JobFacts, Measured, figures, job_figures};

/// What came of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArmFindings {
    #[serde(flatten)]
    pub(crate) facts: ArmFacts,
    /// By name; `null` is not known.
    pub(crate) figures: BTreeMap<String, Option<Figure>>,
    /// In the schedule's order.
    pub(crate) jobs: Vec<JobFindings>,
    /// In the order of their repeats; the warm-up is none of them.
    pub(crate) runs: Vec<RunFindings>,
    /// How near the simulator's prediction comes, figure by figure.
    pub(crate) fidelity: Vec<Fidelity>,
    /// One decision that explains why it is worse than `none`, where it is.
    pub(crate) story: Option<Story>,
    /// Whether a policy that promises no job a later end kept that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) promise: Option<Promise>,
}

/// What came of one job in an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobFindings {
    pub(crate) job: String,
    /// By name; `null` is not known.
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
    /// What the simulator says of this repeat.
    #[serde(default)]
    pub(crate) predicted: Figures,
    /// In the schedule's order.
    pub(crate) jobs: Vec<RunJob>,
}

/// One job of a run; moments are seconds after it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunJob {
    pub(crate) arrived: f64,
    pub(crate) ended: f64,
    /// Why it did not succeed, if it did not.
    pub(crate) failure: Option<String>,
    pub(crate) figures: Figures,
    #[serde(default)]
    pub(crate) predicted: Figures,
}

/// A figure as it was measured, and as it is predicted.
pub(crate) type Both = (Option<f64>, Option<f64>);

impl RunFindings {
    pub(super) fn of(measured: &Measured<'_>) -> Self {
        let Measured { observed, course } = measured;
        let run = &observed.recorded.run;
        let job = |(place, its): (usize, &JobRun)| RunJob {
            arrived: its.arrived,
            ended: its.ended,
            failure: observed.failure(its),
            figures: job_figures(course, place),
            predicted: Figures::new(),
        };
        Self {
            repeat: run.repeat,
            folder: observed.recorded.folder.display().to_string(),
            host: run.host.clone(),
            limits_left: run.limits_left.clone(),
            figures: figures(course, Some(run)),
            predicted: Figures::new(),
            jobs: run.jobs.iter().enumerate().map(job).collect(),
        }
    }

    /// Whether nothing else disturbed it.
    pub(crate) fn is_clean(&self) -> bool {
        self.host.spoiled.is_none()
    }

    /// What disturbed it, and which run of `arm` it is; `None` of one that nothing disturbed.
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
    /// The arm of these `runs`, beside those of `none`.
    pub(super) fn of(
        facts: &ArmFacts,
        runs: Vec<RunFindings>,
        baseline: &[RunFindings],
        jobs: &[JobFacts],
    ) -> Self {
        let whole = |run: &RunFindings| Some(run.figures.clone());
        let job = |(place, facts): (usize, &JobFacts)| JobFindings {
            job: facts.job.name.clone(),
            figures: together(&runs, baseline, |run| Some(run.jobs.get(place)?.figures.clone())),
        };
        Self {
            facts: facts.clone(),
            figures: together(&runs, baseline, whole),
            jobs: jobs.iter().enumerate().map(job).collect(),
            fidelity: Vec::new(),
            story: None,
            promise: None,
            runs,
        }
    }

    /// A figure by its measure's name.
    pub(crate) fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.get(name)?.as_ref()
    }

    /// The runs that count.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &RunFindings> {
        self.runs.iter().filter(|run| run.is_clean())
    }

    /// Whether every run was disturbed: then its figures are of those, and marked.
    pub(crate) fn is_disturbed(&self) -> bool {
        !self.runs.is_empty() && self.counted().next().is_none()
    }

    /// The run that stands for the others where only one can be shown: the one in the middle by its
    /// mean completion time, of those that the figures are means of.
    pub(crate) fn middle(&self) -> Option<&RunFindings> {
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

/// The runs that figures are means of: the undisturbed ones, or all where there are none of those.
fn basis(runs: &[RunFindings]) -> Vec<&RunFindings> {
    let clean: Vec<&RunFindings> = runs.iter().filter(|run| run.is_clean()).collect();
    if clean.is_empty() { runs.iter().collect() } else { clean }
}

/// Each figure over those runs, beside all runs of `none`.
fn together(
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
            let own = values(&own, name);
            (name.clone(), Figure::of(&own, &values(&none, name)))
        })
        .collect()
}
