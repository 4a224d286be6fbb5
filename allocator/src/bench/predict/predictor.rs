//! A scenario fitted to the solo and `none` runs, and runs of it under other policies.

use std::collections::BTreeMap;

use paceline_policy::Params;
use paceline_policy::unit::count;
use paceline_sim::bounds::{Bound, Bounds, equal_shares};
use paceline_sim::fit::{Fit, Heading, Recording, fit, lifetimes};
use paceline_sim::metrics::METRICS;
use paceline_sim::satisfaction::Satisfaction;
use paceline_sim::scenario::{Arm, Job};
use paceline_sim::{Outcome, Run, Scenario};

use super::super::outcome::{ArmFacts, Course, Ground, JobFacts, Observed, mean, moved};

/// Noise of the jobs' reports is drawn: predictions are means over so many seeds.
const SEEDS: u64 = 5;

/// What the simulator needs to know of this machine and its jobs.
#[derive(Debug)]
pub(crate) struct Predictor {
    /// The scenario as TOML.
    pub(crate) text: String,
    pub(super) from: String,
    pub(super) fit: Fit,
    scenario: Scenario,
    /// The scenario's jobs, in the schedule's order.
    pub(super) jobs: Vec<Job>,
    /// When each arrives in the schedule, in seconds after a run began.
    arrivals: Vec<f64>,
    /// How long each takes from its arrival to its first frame: its container's start, and reading its
    /// data. The mean over the `none` runs; no fit tells it, since no frame does.
    startups: Vec<f64>,
    /// When the scenario begins, in seconds after a run began.
    begins: f64,
}

impl Predictor {
    /// Fits the `none` run in the middle; the others and the recordings of the jobs alone tell more of
    /// the same jobs. What cannot be fitted is said in words.
    pub(crate) fn fit(
        jobs: &[JobFacts],
        none: &[&Observed<'_>],
        calibration: &[Recording],
    ) -> Result<Self, String> {
        let usable: Vec<&Observed<'_>> = none.iter().copied().filter(|run| run.counts()).collect();
        let first = *middle(&usable).ok_or("no run of `none` counts")?;
        let recording = first.frames.as_ref().map_err(Clone::clone)?;
        let others = usable.iter().filter(|run| !std::ptr::eq(**run, first));
        let mut others: Vec<Recording> =
            others.filter_map(|run| run.frames.as_ref().ok()).chain(calibration).cloned().collect();
        others.extend(alike(jobs, calibration));
        let fit = fit(recording, &others).map_err(|error| error.to_string())?;
        let heading = Heading {
            name: "fitted".to_owned(),
            description: "A bench's jobs, fitted to its solo and `none` runs.".to_owned(),
            policies: vec!["none".to_owned()],
            params: Vec::new(),
        };
        let text = fit.scenario(&heading);
        let scenario = Scenario::parse(&text).map_err(|error| error.to_string())?;
        let drawn = scenario.draw(1);
        let mut found = Vec::new();
        for facts in jobs {
            let name = &facts.job.name;
            let job = drawn.iter().find(|job| job.id.as_str() == name.as_str());
            found.push(job.cloned().ok_or(format!("too few frames of `none` tell of {name}"))?);
        }
        let startups = jobs.iter().enumerate().map(|(place, facts)| {
            let each = usable.iter().filter_map(|run| startup(run, place, &facts.job.name));
            mean(&each.collect::<Vec<_>>()).ok_or(format!("no frame has {}", facts.job.name))
        });
        let startups = startups.collect::<Result<Vec<f64>, String>>()?;
        let offset = first.offset().ok_or("the `none` run has no samples")?;
        let began = lifetimes(recording).first().map(|life| life.arrived + offset);
        Ok(Self {
            text,
            from: format!(
                "{}, repeat {}, beside other recordings of the same jobs: {}",
                first.recorded.run.arm,
                first.recorded.run.repeat,
                others.len()
            ),
            fit,
            scenario,
            jobs: found,
            arrivals: first.recorded.run.jobs.iter().map(|job| job.arrived).collect(),
            startups,
            begins: began.ok_or("the `none` run has no job in its frames")?,
        })
    }

    /// Fills in what each job takes alone and by equal shares.
    pub(crate) fn complete(&self, ground: &mut Ground) {
        let finite = |time: f64| Some(time).filter(|time| time.is_finite());
        let from_start = |time: f64, startup: &f64| finite(time + startup);
        let alone = self.jobs.iter().zip(&self.startups);
        ground.alone = alone.map(|(job, startup)| from_start(job.alone(), startup)).collect();
        let equal = equal_shares(&self.jobs, self.machines());
        let equal = equal.into_iter().zip(&self.startups);
        ground.equal = equal.map(|(time, startup)| from_start(time, startup)).collect();
    }

    /// The arm as the simulator runs it: a course for each seed, at the times of a measured run; none
    /// of what is no policy.
    pub(crate) fn simulate(&self, arm: &ArmFacts, ground: &Ground) -> Vec<Course> {
        let mut scenario = self.scenario.clone();
        scenario.limiter.enforcement = arm.enforcement;
        let mut params = Params::default();
        for (name, value) in &arm.params {
            params.set(name.as_str(), *value);
        }
        scenario.params.insert(arm.policy.clone(), params);
        let arm = Arm { policy: arm.policy.clone(), variant: arm.variant };
        let course = |seed| {
            let run = Run { scenario: &scenario, arm: &arm, seed, record: true };
            let done = run.simulate().ok()?;
            let lines: Vec<&str> = done.lines.iter().map(|line| line.frame.as_str()).collect();
            let satisfaction = Recording::parse(&lines.join("\n")).ok();
            let satisfaction = satisfaction.and_then(|frames| Satisfaction::of(&frames));
            Some(self.course(&done.outcome, satisfaction, ground))
        };
        (1..=SEEDS).filter_map(course).collect()
    }

    /// A simulated run at the times of a measured one, with the jobs in the schedule's order.
    fn course(
        &self,
        outcome: &Outcome,
        satisfaction: Option<Satisfaction>,
        ground: &Ground,
    ) -> Course {
        let mut jobs = Vec::new();
        for (place, (job, arrived)) in self.jobs.iter().zip(&self.arrivals).enumerate() {
            let Some(simulated) = outcome.jobs.iter().find(|own| own.id == job.id.as_str()) else {
                continue;
            };
            let mut own = simulated.clone();
            let waited = simulated.arrived + self.begins - arrived;
            for moment in [&mut own.finished, &mut own.acceptable, &mut own.objective] {
                *moment = moment.map(|at| at + self.begins);
            }
            own.arrived = *arrived;
            own.alone = ground.alone.get(place).copied().flatten();
            own.equal = ground.equal.get(place).copied().flatten();
            // Until its first frame all of the fall is to come.
            own.loss_area += if own.loss_area > 0.0 { waited } else { 0.0 };
            let latency = satisfaction.as_ref().and_then(|found| found.latencies.get(&job.id));
            own.batch_latency = latency.copied();
            jobs.push(own);
        }
        let until = outcome.until + self.begins;
        let satisfaction = satisfaction.map(|found| moved(found, self.begins));
        Course::simulated(Outcome { jobs, until, ..outcome.clone() }, satisfaction)
    }

    /// The bounds of the fitted jobs, at a measured run's times; those that startups do not simply
    /// add to are left out.
    pub(super) fn bounds(&self) -> BTreeMap<String, Bound> {
        let bounds = self.bounds_of(1.0);
        let startup = mean(&self.startups).unwrap_or(0.0);
        let add = |bound: Bound, seconds: f64| Bound {
            limit: bound.limit + seconds,
            reached: bound.reached.map(|reached| reached + seconds),
        };
        let first = self.arrivals.iter().copied().fold(f64::INFINITY, f64::min);
        let bound = |name: &str| {
            let bound = bounds.get(name)?;
            Some(match name {
                "completion_mean" | "acceptable_mean" | "objective_mean" | "loss_area" => {
                    add(bound, startup)
                }
                "makespan" => add(bound, self.begins - first),
                "satisfied" | "met" | "distance" => bound,
                _ => return None,
            })
        };
        let named = METRICS.iter().filter_map(|m| Some((m.name.to_owned(), bound(m.name)?)));
        named.collect()
    }

    /// The bounds of the same jobs where all times are `scale` times as long.
    pub(crate) fn bounds_of(&self, scale: f64) -> Bounds {
        let longer = |job: &Job| Job {
            arrive: job.arrive * scale,
            work: job.work * scale,
            batch: job.batch * scale,
            fixed: job.fixed * scale,
            targets: paceline_wire::Targets {
                batch_latency: job.targets.batch_latency.map(|target| target * scale),
                ..job.targets
            },
            ..job.clone()
        };
        let jobs: Vec<Job> = self.jobs.iter().map(longer).collect();
        let equal = equal_shares(&jobs, self.machines());
        Bounds::of(&jobs, &equal, &self.scenario.nodes, f64::INFINITY)
    }

    fn machines(&self) -> f64 {
        count(self.scenario.nodes.len())
    }
}

/// Of jobs that are as fast as another, one was calibrated: what it tells, told of the others.
fn alike(jobs: &[JobFacts], calibration: &[Recording]) -> Vec<Recording> {
    let mut found = Vec::new();
    for (place, JobFacts { job, .. }) in jobs.iter().enumerate() {
        let before = jobs.iter().take(place).map(|facts| &facts.job);
        if let Some(first) = before.into_iter().find(|other| job.is_as_fast_as(other)) {
            found.extend(calibration.iter().filter_map(|its| its.told_of(&first.name, &job.name)));
        }
    }
    found
}

/// The run in the middle by its mean completion time.
fn middle<'a, 'b>(runs: &'a [&'b Observed<'b>]) -> Option<&'a &'b Observed<'b>> {
    let took = |run: &Observed<'_>| {
        let jobs = run.recorded.run.jobs.iter();
        jobs.map(|job| job.ended - job.arrived).sum::<f64>()
    };
    let mut order: Vec<&&Observed<'_>> = runs.iter().collect();
    order.sort_by(|a, b| took(a).total_cmp(&took(b)));
    order.get(order.len().saturating_sub(1) / 2).copied()
}

/// From a job's arrival to its first frame.
fn startup(run: &Observed<'_>, place: usize, name: &str) -> Option<f64> {
    let frames = run.frames.as_ref().ok()?;
    let life = lifetimes(frames).into_iter().find(|life| life.id.as_str() == name)?;
    Some(life.arrived + run.offset()? - run.recorded.run.jobs.get(place)?.arrived)
}
