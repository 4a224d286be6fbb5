//! All figures of a run, by name: the simulator's metrics, and those that only a real run has.

use std::collections::BTreeMap;

use paceline_policy::unit::count;
use paceline_sim::metrics::{Better, Metric};

use super::super::record::Run;
use super::overhead::{Overhead, at_once};
use super::trajectory::{Trajectory, mean};
use crate::text::titled;

/// Figures by the names of their measures; `None` means unknown.
pub(crate) type Figures = BTreeMap<String, Option<f64>>;

/// One figure of a run or of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// Its title in tables.
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) about: &'static str,
    /// Which values are good; `None` if neither direction is.
    pub(crate) better: Option<Better>,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// The simulator's metric of the same name.
    Metric,
    /// Computed from a measured or simulated run.
    Trajectory(fn(&Trajectory) -> Option<f64>),
    /// Computed from the cost of control.
    Overhead(fn(&Overhead) -> Option<f64>),
    /// Computed from the record of a measured run.
    Run(fn(&Run) -> Option<f64>),
}

impl Measure {
    /// The measure of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        MEASURES.iter().find(|measure| measure.name == name)
    }

    fn value(&self, trajectory: &Trajectory, run: Option<&Run>) -> Option<f64> {
        let value = match self.source {
            Source::Metric => {
                let metric = Metric::named(self.name)?;
                // Leaving out failed or stopped jobs would make a run look better than it is.
                let complete = !metric.finished_only || trajectory.outcome.unfinished() == 0;
                metric.of(&trajectory.outcome).filter(|_| complete)
            }
            Source::Trajectory(of) => of(trajectory),
            Source::Overhead(of) => of(trajectory.overhead.as_ref()?),
            Source::Run(of) => of(run?),
        };
        value.filter(|value| value.is_finite())
    }

    /// The title with its unit.
    pub(crate) fn titled(&self) -> String {
        titled(self.title, self.unit)
    }
}

/// All measures, in the order of the tables.
pub(crate) const MEASURES: &[Measure] = &[
    shared("completion_mean", "mean completion", "s", "from arrival to end, mean"),
    shared("completion_median", "median completion", "s", "from arrival to end, median"),
    shared("completion_p99", "p99 completion", "s", "from arrival to end, 99th percentile"),
    shared("makespan", "makespan", "s", "from the first arrival to the last end"),
    shared("slowdown_mean", "mean slow-down", "x", "completion time over the time alone"),
    shared("fairness_worst", "worst fairness", "x", "finish-time fairness ρ, the largest"),
    shared("unfair", "unfair", "%", "jobs whose finish-time fairness ρ is over 1.1"),
    shared("jain", "Jain's index", "-", "of time alone over completion time; 1 is fair").more(),
    shared("loss_area", "area under loss", "s", "time weighted by the loss's remaining fall"),
    shared("acceptable_mean", "time to acceptable", "s", "from arrival, of jobs that reached it"),
    shared("objective_mean", "time to objective", "s", "from arrival, of jobs that reached it"),
    shared("satisfied", "satisfied", "jobs", "S: within 10 % of their target, while all jobs run")
        .more(),
    shared("met", "met", "jobs", "S and G: at most 10 % over their target, while all jobs run")
        .more(),
    shared("distance", "distance to targets", "s", "Σ|q| over the jobs that are not satisfied"),
    own(
        "first_satisfied",
        "first satisfied",
        "s",
        "until the first job is satisfied",
        Source::Trajectory(|trajectory| trajectory.satisfaction.as_ref()?.first()),
    ),
    own(
        "overshoots",
        "overshoots",
        "-",
        "times that a satisfied job fell behind",
        Source::Trajectory(|trajectory| Some(count(trajectory.satisfaction.as_ref()?.overshoots))),
    ),
    shared("utilisation", "utilisation", "%", "CPU time of the jobs over that of the machine")
        .more(),
    shared("stranded", "stranded", "%", "CPU that stayed idle while a job was at its limit"),
    own(
        "jobs_mean",
        "jobs at once, mean",
        "-",
        "while at least one job was there",
        Source::Trajectory(|trajectory| Some(jobs_at_once(trajectory)?.0)),
    )
    .neutral(),
    own(
        "jobs_most",
        "jobs at once, most",
        "-",
        "while at least one job was there",
        Source::Trajectory(|trajectory| Some(jobs_at_once(trajectory)?.1)),
    )
    .neutral(),
    own(
        "decisions",
        "decisions",
        "-",
        "runs of the policy",
        Source::Overhead(|its| Some(its.decisions)),
    )
    .neutral(),
    own(
        "writes",
        "limits written",
        "-",
        "limits and weights written",
        Source::Overhead(|its| Some(its.written())),
    ),
    own(
        "skipped",
        "writes skipped",
        "-",
        "decisions near the limit in force",
        Source::Overhead(|its| Some(its.skipped)),
    )
    .neutral(),
    own(
        "failed_writes",
        "writes failed",
        "-",
        "limits that could not be written",
        Source::Overhead(|its| Some(its.failed)),
    ),
    own(
        "reaction",
        "reaction",
        "ms",
        "from a job's arrival or end to the limit",
        Source::Overhead(|its| Some(1000.0 * its.reaction?)),
    ),
    own(
        "cpu_per_decision",
        "CPU per decision",
        "ms",
        "the allocator's CPU time",
        Source::Overhead(|its| Some(1000.0 * its.cpu?)),
    ),
    own(
        "writing_per_decision",
        "writing per decision",
        "ms",
        "time spent writing limits",
        Source::Overhead(|its| Some(1000.0 * its.writing?)),
    ),
    shared("moves", "moves", "-", "jobs moved to another node").neutral(),
    own(
        "failed_moves",
        "moves failed",
        "-",
        "moves after which the job stayed",
        Source::Run(|run| {
            Some(count(run.moves.iter().filter(|moved| moved.failed.is_some()).count()))
        }),
    ),
    own(
        "move_seconds",
        "time per move",
        "s",
        "without progress, mean",
        Source::Run(|run| mean(&run.moves.iter().map(|moved| moved.seconds).collect::<Vec<_>>())),
    ),
    own(
        "unfinished",
        "failed",
        "jobs",
        "jobs that did not succeed",
        Source::Trajectory(|its| Some(its.failed())),
    ),
    own(
        "others",
        "other work",
        "%",
        "CPU use of the machine by anything but the jobs",
        Source::Run(|run| Some(100.0 * run.host.others?)),
    )
    .neutral(),
    own(
        "steal",
        "stolen",
        "%",
        "CPU time that other guests took",
        Source::Run(|run| Some(100.0 * run.host.steal)),
    )
    .neutral(),
];

const fn shared(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    about: &'static str,
) -> Measure {
    own(name, title, unit, about, Source::Metric)
}

const fn own(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    about: &'static str,
    source: Source,
) -> Measure {
    Measure { name, title, unit, about, better: Some(Better::Less), source }
}

impl Measure {
    const fn more(mut self) -> Self {
        self.better = Some(Better::More);
        self
    }

    const fn neutral(mut self) -> Self {
        self.better = None;
        self
    }
}

fn jobs_at_once(trajectory: &Trajectory) -> Option<(f64, f64)> {
    at_once(&trajectory.spans()?)
}

/// Every figure of a run; `run` is the record of a measured one.
pub(crate) fn figures(trajectory: &Trajectory, run: Option<&Run>) -> Figures {
    MEASURES
        .iter()
        .map(|measure| (measure.name.to_owned(), measure.value(trajectory, run)))
        .collect()
}
