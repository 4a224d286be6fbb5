//! All figures that a run has, by name: the simulator's, and those that only a real run has.

use std::collections::BTreeMap;

use paceline_policy::unit::count;
use paceline_sim::metrics::{Better, Metric};

use super::super::record::Run;
use super::course::{Course, mean};
use super::upkeep::{Upkeep, at_once};
use crate::text::titled;

/// Figures by the names of their measures; `None` is not known.
pub(crate) type Figures = BTreeMap<String, Option<f64>>;

/// One figure of a run or of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// What it is called in tables.
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) about: &'static str,
    /// Which values are good; `None` if that cannot be said.
    pub(crate) better: Option<Better>,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// As the simulator has it.
    Metric,
    /// Of a course, measured or simulated.
    Course(fn(&Course) -> Option<f64>),
    /// Of what control did.
    Upkeep(fn(&Upkeep) -> Option<f64>),
    /// Of what was noted beside the run.
    Run(fn(&Run) -> Option<f64>),
}

impl Measure {
    /// The measure of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        MEASURES.iter().find(|measure| measure.name == name)
    }

    fn of(&self, course: &Course, run: Option<&Run>) -> Option<f64> {
        let value = match self.source {
            Source::Metric => {
                let metric = Metric::named(self.name)?;
                // Without those that failed or were stopped, a run would look better than it is.
                let whole = !metric.of_the_ended || course.outcome.unfinished() == 0;
                metric.of(&course.outcome).filter(|_| whole)
            }
            Source::Course(of) => of(course),
            Source::Upkeep(of) => of(course.upkeep.as_ref()?),
            Source::Run(of) => of(run?),
        };
        value.filter(|value| value.is_finite())
    }

    /// The title with its unit.
    pub(crate) fn titled(&self) -> String {
        titled(self.title, self.unit)
    }
}

/// All of them, in the order in which people see them.
pub(crate) const MEASURES: &[Measure] = &[
    shared("completion_mean", "mean completion", "s", "from arrival to end, mean"),
    shared("completion_median", "median completion", "s", "from arrival to end, median"),
    shared("completion_p99", "p99 completion", "s", "from arrival to end, 99th percentile"),
    shared("makespan", "makespan", "s", "from the first arrival to the last end"),
    shared("slowdown_mean", "mean slow-down", "x", "completion time over the time alone"),
    shared("fairness_worst", "worst fairness", "x", "finish-time fairness ρ, the largest"),
    shared("unfair", "unfair", "%", "jobs whose finish-time fairness ρ is over 1.1"),
    shared("jain", "Jain's index", "-", "of time alone over completion time; 1 is fair").more(),
    shared("loss_area", "area under loss", "s", "time, by the part of the fall to come"),
    shared("acceptable_mean", "time to acceptable", "s", "from arrival, of those that got there"),
    shared("objective_mean", "time to objective", "s", "from arrival, of those that got there"),
    shared("satisfied", "satisfied", "jobs", "S: within 10 % of their target, all jobs there")
        .more(),
    shared("met", "met", "jobs", "S and G: at most 10 % over their target, all jobs there").more(),
    shared("distance", "distance to targets", "s", "Σ|q|, but for the satisfied"),
    own(
        "first_satisfied",
        "first satisfied",
        "s",
        "until the first job is satisfied",
        Source::Course(|course| course.satisfaction.as_ref()?.first()),
    ),
    own(
        "overshoots",
        "overshoots",
        "-",
        "times that a satisfied job fell behind",
        Source::Course(|course| Some(count(course.satisfaction.as_ref()?.overshoots))),
    ),
    shared("utilisation", "utilisation", "%", "CPU time of the jobs over what there was").more(),
    shared("stranded", "stranded", "%", "idle while a job stood at its limit"),
    own(
        "jobs_mean",
        "jobs at once, mean",
        "-",
        "while there were any",
        Source::Course(|course| Some(jobs_at_once(course)?.0)),
    )
    .neutral(),
    own(
        "jobs_most",
        "jobs at once, most",
        "-",
        "while there were any",
        Source::Course(|course| Some(jobs_at_once(course)?.1)),
    )
    .neutral(),
    own(
        "decisions",
        "decisions",
        "-",
        "runs of the policy",
        Source::Upkeep(|its| Some(its.decisions)),
    )
    .neutral(),
    own(
        "writes",
        "limits written",
        "-",
        "limits and weights written",
        Source::Upkeep(|its| Some(its.written())),
    ),
    own(
        "skipped",
        "writes skipped",
        "-",
        "choices near what was in force",
        Source::Upkeep(|its| Some(its.skipped)),
    )
    .neutral(),
    own(
        "failed_writes",
        "writes failed",
        "-",
        "limits that were not written",
        Source::Upkeep(|its| Some(its.failed)),
    ),
    own(
        "reaction",
        "reaction",
        "ms",
        "from a coming or going to the limit",
        Source::Upkeep(|its| Some(1000.0 * its.reaction?)),
    ),
    own(
        "cpu_per_decision",
        "CPU a decision",
        "ms",
        "the allocator's CPU time",
        Source::Upkeep(|its| Some(1000.0 * its.cpu?)),
    ),
    own(
        "writing_per_decision",
        "writing a decision",
        "ms",
        "time in writing",
        Source::Upkeep(|its| Some(1000.0 * its.writing?)),
    ),
    shared("moves", "moves", "-", "jobs moved to another node").neutral(),
    own(
        "failed_moves",
        "moves failed",
        "-",
        "jobs that stayed where they were",
        Source::Run(|run| {
            Some(count(run.moves.iter().filter(|moved| moved.failed.is_some()).count()))
        }),
    ),
    own(
        "move_seconds",
        "a move",
        "s",
        "without progress, mean",
        Source::Run(|run| mean(&run.moves.iter().map(|moved| moved.seconds).collect::<Vec<_>>())),
    ),
    own(
        "unfinished",
        "failed",
        "jobs",
        "did not succeed",
        Source::Course(|its| Some(its.failed())),
    ),
    own(
        "others",
        "others",
        "%",
        "the machine's use by anything but the jobs",
        Source::Run(|run| Some(100.0 * run.host.others?)),
    )
    .neutral(),
    own(
        "steal",
        "stolen",
        "%",
        "CPU time that the machine did not get",
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

fn jobs_at_once(course: &Course) -> Option<(f64, f64)> {
    at_once(&course.spans()?)
}

/// Every figure of a run; `run` is what was noted beside a measured one.
pub(crate) fn figures(course: &Course, run: Option<&Run>) -> Figures {
    MEASURES.iter().map(|measure| (measure.name.to_owned(), measure.of(course, run))).collect()
}
