//! One repeat as the simulator has it: the fitted jobs, which arrive as they did there.

use std::collections::BTreeMap;

use paceline_policy::Params;
use paceline_policy::policies::Srpt;
use paceline_sim::bounds::{Bound, Bounds, equal_shares};
use paceline_sim::fit::{Fit, Recording};
use paceline_sim::metrics::METRICS;
use paceline_sim::satisfaction::Satisfaction;
use paceline_sim::scenario::{Arm, Job, Node, Start};
use paceline_sim::{Outcome, Run, Scenario, Tempo};

use super::super::execute::ORACLES_LEAST;
use super::super::outcome::{ArmFacts, Course, Ground, JobFacts, ORACLE, mean, moved};
use super::predictor::Conditions;
use super::startup::Startup;
use super::text::text;
use crate::migrate::Means;

/// Arrivals may be drawn: then each repeat is another workload.
#[derive(Debug)]
pub(super) struct Repeat {
    /// The scenario as TOML.
    pub(super) text: String,
    scenario: Scenario,
    /// The works that the schedule says.
    declared: BTreeMap<String, f64>,
    /// The scenario's jobs, in the schedule's order.
    jobs: Vec<Job>,
    /// When each arrived, in seconds after the run began.
    arrivals: Vec<f64>,
    /// When the scenario begins, in the same seconds.
    begins: f64,
    /// Whether every one of them can be restarted elsewhere: the simulator knows none that has to stay.
    restartable: bool,
    /// Whether its nodes are alike: the simulator knows no job that takes longer on another one.
    alike: bool,
}

impl Repeat {
    /// Of jobs that arrive at `arrivals`, and start as `startups` say.
    pub(super) fn of(
        fit: &Fit,
        jobs: &[JobFacts],
        (arrivals, startups): (Vec<f64>, &[Startup]),
        until: Option<f64>,
    ) -> Result<Self, String> {
        let asks = || arrivals.iter().zip(startups).map(|(arrived, its)| arrived + its.wait);
        let begins = asks().fold(f64::INFINITY, f64::min);
        let mut fitted = fit.clone();
        for ((facts, asks), startup) in jobs.iter().zip(asks()).zip(startups) {
            let name = facts.job.name.as_str();
            for own in fitted.jobs.iter_mut().filter(|own| own.id.as_str() == name) {
                (own.arrived, own.start) = (asks - begins, startup.start);
                // What a new container does before it trains, it does again after a move.
                own.move_wait = (fit.nodes.len() > 1).then_some(startup.wait.max(0.0));
            }
        }
        let text = text(&fitted, until.map(|until| until - begins))?;
        let scenario = Scenario::parse(&text).map_err(|error| error.to_string())?;
        let drawn = scenario.draw(1);
        let mut found = Vec::new();
        for facts in jobs {
            let name = &facts.job.name;
            let job = drawn.iter().find(|job| job.id.as_str() == name.as_str());
            found.push(job.cloned().ok_or(format!("too few frames of `none` tell of {name}"))?);
        }
        let said = |facts: &JobFacts| Some((facts.job.name.clone(), facts.job.work?));
        let declared = jobs.iter().filter_map(said).collect();
        let restartable = jobs.iter().all(|facts| facts.job.checkpoint.is_some());
        let mut cpus = scenario.nodes.iter().map(|node| node.cpus.to_bits());
        let first = cpus.next();
        let alike = cpus.all(|cpus| Some(cpus) == first);
        Ok(Self { text, scenario, declared, jobs: found, arrivals, begins, restartable, alike })
    }

    /// What each job takes alone.
    pub(super) fn alone(&self) -> Vec<Option<f64>> {
        self.since_arrivals(self.jobs.iter().map(Job::alone))
    }

    /// What each takes by equal shares.
    pub(super) fn equal(&self) -> Vec<Option<f64>> {
        self.since_arrivals(equal_shares(&self.jobs, &self.scenario.nodes).into_iter())
    }

    /// The scenario's times, as they are from arrivals; `None` of a job that never ends.
    fn since_arrivals(&self, times: impl Iterator<Item = f64>) -> Vec<Option<f64>> {
        let each = times.zip(self.waits());
        each.map(|(time, wait)| Some(time + wait).filter(|time| time.is_finite())).collect()
    }

    fn waits(&self) -> impl Iterator<Item = f64> {
        let jobs = self.jobs.iter().zip(&self.arrivals);
        jobs.map(|(job, arrived)| job.arrive + self.begins - arrived)
    }

    /// The repeat of this `number` under `arm`, on a machine of these `conditions`, for each of so many seeds;
    /// those that cannot be simulated are left out.
    pub(super) fn simulate(
        &self,
        (number, conditions): (u32, &Conditions),
        arm: &ArmFacts,
        seeds: u64,
        ground: &Ground,
    ) -> Vec<(u64, Course)> {
        let restarts = arm.migration.unwrap_or_default() == Means::Restart;
        let (mut scenario, arm) = self.under(arm);
        let can_move = self.alike && (self.restartable || !restarts);
        if arm.is_of_a_cluster() && !can_move {
            return Vec::new();
        }
        let speeds = conditions.speeds.iter().map(|(at, speed)| (at - self.begins, *speed));
        scenario.tempo = Tempo::new(speeds);
        for node in &mut scenario.nodes {
            node.background = conditions.others.get(&node.name).copied().unwrap_or(node.background);
        }
        let course = |seed| {
            let run = Run { scenario: &scenario, arm: &arm, seed, record: true };
            let done = run.simulate().ok()?;
            let lines: Vec<&str> = done.lines.iter().map(|line| line.frame.as_str()).collect();
            // Of several nodes, a frame without a policy for all of them is of one of them.
            let one = scenario.nodes.len() == 1;
            let frames = one.then(|| Recording::parse(&lines.join("\n")).ok()).flatten();
            let satisfaction = frames.and_then(|frames| Satisfaction::of(&frames));
            Some((seed, self.course(number, &done.outcome, satisfaction, ground)))
        };
        (1..=seeds).filter_map(course).collect()
    }

    /// The scenario as an arm of a bench sets it, and that arm.
    fn under(&self, facts: &ArmFacts) -> (Scenario, Arm) {
        let mut scenario = self.scenario.clone();
        let mut arm = Arm { policy: facts.policy.clone(), variant: facts.variant };
        if facts.policy == ORACLE {
            let cpus = scenario.nodes.first().map_or(1.0, |node| node.cpus);
            scenario = scenario.declaring(&self.declared, ORACLES_LEAST / cpus);
            Srpt::NAME.clone_into(&mut arm.policy);
        }
        let mut params = Params::default();
        for (name, value) in &facts.params {
            params.set(name.as_str(), *value);
        }
        if facts.migration == Some(Means::Cpuset) {
            scenario = scenario.moving_at_no_cost();
        }
        scenario.params.insert(arm.policy.clone(), params);
        scenario.limiter.enforcement = Some(facts.enforcement);
        (scenario, arm)
    }

    /// A simulated run at the times of a measured one, with the jobs in the schedule's order.
    fn course(
        &self,
        number: u32,
        outcome: &Outcome,
        satisfaction: Option<Satisfaction>,
        ground: &Ground,
    ) -> Course {
        let until = outcome.until + self.begins;
        let (mut jobs, mut stopped) = (Vec::new(), BTreeMap::new());
        for (place, (job, arrived)) in self.jobs.iter().zip(&self.arrivals).enumerate() {
            let Some(simulated) = outcome.jobs.iter().find(|own| own.id == job.id.as_str()) else {
                continue;
            };
            let mut own = simulated.clone();
            let waited = simulated.arrived + self.begins - arrived;
            for moment in [&mut own.finished, &mut own.acceptable, &mut own.objective] {
                *moment = moment.map(|at| at + self.begins);
            }
            if own.finished.is_none() && self.scenario.until.is_finite() {
                stopped.insert(own.id.clone(), until);
            }
            own.arrived = *arrived;
            own.alone = ground.alone.get(place).copied().flatten();
            own.equal = ground.equal_of(number, place);
            // Until it trains all of the fall is to come; how an endless job's loss falls is not known.
            own.loss_area += if own.loss_area > 0.0 { waited } else { 0.0 };
            own.loss_area += if job.work.is_finite() { 0.0 } else { f64::NAN };
            let latency = satisfaction.as_ref().and_then(|found| found.latencies.get(&job.id));
            own.batch_latency = latency.copied();
            jobs.push(own);
        }
        let satisfaction = satisfaction.map(|found| moved(found, self.begins));
        Course::simulated(Outcome { jobs, until, ..outcome.clone() }, satisfaction, stopped)
    }

    /// The bounds of the fitted jobs, at a measured run's times; those that waits do not simply add to
    /// are left out.
    pub(super) fn bounds(&self) -> BTreeMap<String, Bound> {
        let bounds = self.bounds_of(1.0);
        let wait = mean(&self.waits().collect::<Vec<_>>()).unwrap_or(0.0);
        let add = |bound: Bound, seconds: f64| Bound {
            limit: bound.limit + seconds,
            reached: bound.reached.map(|reached| reached + seconds),
        };
        let first = self.arrivals.iter().copied().fold(f64::INFINITY, f64::min);
        let bound = |name: &str| {
            let bound = bounds.get(name)?;
            Some(match name {
                "completion_mean" | "acceptable_mean" | "objective_mean" | "loss_area" => {
                    add(bound, wait)
                }
                "makespan" => add(bound, self.begins - first),
                "satisfied" | "met" | "distance" => bound,
                _ => return None,
            })
        };
        let named = METRICS.iter().filter_map(|m| Some((m.name.to_owned(), bound(m.name)?)));
        named.collect()
    }

    /// The bounds of the same jobs where all times are `scale` times as long. On several nodes they hold for
    /// whoever may choose the jobs' nodes, too.
    pub(super) fn bounds_of(&self, scale: f64) -> Bounds {
        let room = self.scenario.nodes.iter().map(Node::room).fold(0.0, f64::max);
        let longer = |job: &Job| Job {
            node: None,
            room,
            arrive: job.arrive * scale,
            start: job
                .start
                .map(|its| Start { work: its.work * scale, seconds: its.seconds * scale }),
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
        let equal = equal_shares(&jobs, &self.scenario.nodes);
        Bounds::of(&jobs, &equal, &self.scenario.nodes, self.scenario.until * scale)
    }
}
