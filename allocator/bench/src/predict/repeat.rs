//! One repeat as a scenario: the fitted jobs, with the arrivals of that repeat.

use std::collections::BTreeMap;

use paceline_node::migration::MigrationMethod;
use paceline_policy::Params;
use paceline_policy::policies::Srpt;
use paceline_sim::bounds::{Bound, Bounds, equal_shares};
use paceline_sim::fit::{Fit, Recording};
use paceline_sim::metrics::METRICS;
use paceline_sim::satisfaction::Satisfaction;
use paceline_sim::scenario::{self, Job, Node, Start};
use paceline_sim::{Outcome, Run, Scenario, SpeedProfile};

use super::super::execute::ORACLE_MIN_CPUS;
use super::super::outcome::{JobFacts, ORACLE, ReferenceTimes, Trajectory, mean, shifted};
use super::super::schedule::Arm;
use super::predictor::Conditions;
use super::startup::Startup;
use super::text::text;

/// One repeat as a scenario. If arrivals are drawn, each repeat is another workload.
#[derive(Debug)]
pub(super) struct Repeat {
    /// The scenario as TOML.
    pub(super) text: String,
    scenario: Scenario,
    /// The jobs' works in the schedule.
    declared: BTreeMap<String, f64>,
    /// The scenario's jobs, in the schedule's order.
    jobs: Vec<Job>,
    /// When each arrived, in seconds after the run began.
    arrivals: Vec<f64>,
    /// When the scenario begins, in seconds after the run began.
    begins: f64,
    /// Whether every job can be restarted on another node: the simulator has no jobs that must stay.
    restartable: bool,
    /// Whether its nodes are equal: the simulator has no jobs that are slower on another node.
    alike: bool,
}

impl Repeat {
    /// A repeat whose jobs arrive at `arrivals`, and start as in `startups`.
    pub(super) fn new(
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
                // After a move, the new container starts up again before it trains.
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
            found.push(job.cloned().ok_or(format!("too few frames of `none` contain {name}"))?);
        }
        let work = |facts: &JobFacts| Some((facts.job.name.clone(), facts.job.work?));
        let declared = jobs.iter().filter_map(work).collect();
        let restartable = jobs.iter().all(|facts| facts.job.checkpoint.is_some());
        let mut cpus = scenario.nodes.iter().map(|node| node.cpus.to_bits());
        let first = cpus.next();
        let alike = cpus.all(|cpus| Some(cpus) == first);
        Ok(Self { text, scenario, declared, jobs: found, arrivals, begins, restartable, alike })
    }

    /// Seconds that each job takes alone.
    pub(super) fn isolated(&self) -> Vec<Option<f64>> {
        self.since_arrivals(self.jobs.iter().map(Job::alone))
    }

    /// Seconds that each job takes with equal shares.
    pub(super) fn equal_share(&self) -> Vec<Option<f64>> {
        self.since_arrivals(equal_shares(&self.jobs, &self.scenario.nodes).into_iter())
    }

    /// Converts the scenario's times to times from the arrivals; `None` for a job that never ends.
    fn since_arrivals(&self, times: impl Iterator<Item = f64>) -> Vec<Option<f64>> {
        let each = times.zip(self.waits());
        each.map(|(time, wait)| Some(time + wait).filter(|time| time.is_finite())).collect()
    }

    fn waits(&self) -> impl Iterator<Item = f64> {
        let jobs = self.jobs.iter().zip(&self.arrivals);
        jobs.map(|(job, arrived)| job.arrive + self.begins - arrived)
    }

    /// Simulates the repeat of this `number` under `arm` and these `conditions`, once for each seed. Seeds
    /// that cannot be simulated are left out.
    pub(super) fn simulate(
        &self,
        (number, conditions): (u32, &Conditions),
        arm: &Arm,
        seeds: u64,
        reference: &ReferenceTimes,
    ) -> Vec<(u64, Trajectory)> {
        let restarts = arm.migration.unwrap_or_default() == MigrationMethod::Restart;
        let (mut scenario, arm) = self.under(arm);
        let can_move = self.alike && (self.restartable || !restarts);
        if arm.is_cluster_policy() && !can_move {
            return Vec::new();
        }
        let speeds = conditions.speeds.iter().map(|(at, speed)| (at - self.begins, *speed));
        scenario.speed_profile = SpeedProfile::new(speeds);
        for node in &mut scenario.nodes {
            node.background =
                conditions.background.get(&node.name).copied().unwrap_or(node.background);
        }
        let trajectory = |seed| {
            let run = Run { scenario: &scenario, arm: &arm, seed, record: true };
            let done = run.simulate().ok()?;
            let lines: Vec<&str> = done.lines.iter().map(|line| line.frame.as_str()).collect();
            // With several nodes, each frame may be of one node only.
            let one = scenario.nodes.len() == 1;
            let frames = one.then(|| Recording::parse(&lines.join("\n")).ok()).flatten();
            let satisfaction = frames.and_then(|frames| Satisfaction::from_recording(&frames));
            Some((seed, self.trajectory(number, &done.outcome, satisfaction, reference)))
        };
        (1..=seeds).filter_map(trajectory).collect()
    }

    /// The scenario with the settings of a bench's arm, and that arm for the simulator.
    fn under(&self, facts: &Arm) -> (Scenario, scenario::Arm) {
        let mut scenario = self.scenario.clone();
        let mut arm = scenario::Arm { policy: facts.policy.clone(), variant: facts.variant };
        if facts.policy == ORACLE {
            let cpus = scenario.nodes.first().map_or(1.0, |node| node.cpus);
            scenario = scenario.declaring(&self.declared, ORACLE_MIN_CPUS / cpus);
            Srpt::NAME.clone_into(&mut arm.policy);
        }
        let mut params = Params::default();
        for (name, value) in &facts.params {
            params.set(name.as_str(), *value);
        }
        if facts.migration == Some(MigrationMethod::Cpuset) {
            scenario = scenario.moving_at_no_cost();
        }
        scenario.params.insert(arm.policy.clone(), params);
        scenario.limiter.enforcement = Some(facts.enforcement);
        (scenario, arm)
    }

    /// Converts a simulated run to a measured run's times, with the jobs in the schedule's order.
    fn trajectory(
        &self,
        number: u32,
        outcome: &Outcome,
        satisfaction: Option<Satisfaction>,
        reference: &ReferenceTimes,
    ) -> Trajectory {
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
            own.alone = reference.isolated.get(place).copied().flatten();
            own.equal = reference.equal_share_of(number, place);
            // Before it trains, all of the loss's fall remains. An endless job's fall is unknown.
            own.loss_area += if own.loss_area > 0.0 { waited } else { 0.0 };
            own.loss_area += if job.work.is_finite() { 0.0 } else { f64::NAN };
            let latency = satisfaction.as_ref().and_then(|found| found.latencies.get(&job.id));
            own.batch_latency = latency.copied();
            jobs.push(own);
        }
        let satisfaction = satisfaction.map(|found| shifted(found, self.begins));
        Trajectory::simulated(Outcome { jobs, until, ..outcome.clone() }, satisfaction, stopped)
    }

    /// The bounds of the fitted jobs, converted to a measured run's times. Bounds to which the waits before
    /// the first frame cannot simply be added are left out.
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

    /// The bounds of the same jobs, with all times multiplied by `scale`. On several nodes they also hold
    /// for policies that choose the jobs' nodes.
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
        Bounds::for_jobs(&jobs, &equal, &self.scenario.nodes, self.scenario.until * scale)
    }
}
