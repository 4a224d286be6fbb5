//! A job during the simulation, and the reports of its endpoint.

use std::sync::Arc;

use paceline_policy::engine::{Reading, Report, Steps};
use paceline_policy::frame::Reached;
use paceline_policy::limiter::DEFAULT_WEIGHT;
use paceline_policy::unit::counter;
use paceline_policy::{JobSpec, Share};
use paceline_wire::Targets;

use super::jobs::Instances;
use crate::curve::Fall;
use crate::fluid::{Demand, ROUNDING, Tally};
use crate::number::floor;
use crate::outcome::JobOutcome;
use crate::random::{LazyStream, Purpose};
use crate::scenario::{Competition, EarlyReports, Job, Start, threads_for};

/// A job's limit before any is written.
pub(super) const UNLIMITED: Share = Share::ALL;

/// Noise shortens durations to this part at most.
const MIN_DURATION: f64 = 0.1;

/// One job.
#[derive(Debug)]
pub(super) struct LiveJob {
    pub(super) job: Job,
    /// Where it runs, or will run after its move.
    pub(super) node: Option<usize>,
    pub(super) cap: Share,
    pub(super) cpu_shares: u64,
    /// Its start before it trains. An interrupted start is repeated from its beginning.
    pub(super) start: Option<Start>,
    /// Work done before its present process began.
    pub(super) before: f64,
    /// The work in the checkpoint that it was last moved with.
    pub(super) saved: f64,
    /// When its present process crashes.
    pub(super) crash: Option<f64>,
    /// The amounts of work at which something happens, the next one last.
    goals: Vec<(f64, Goal)>,
    pub(super) outcome: JobOutcome,
    reported: Report,
    /// How many of its reported losses are from before its first frame.
    early: u64,
    noise: LazyStream,
    durations: LazyStream,
    /// How many batches it has reported, and how long they took without noise.
    timed: (u64, f64),
    pub(super) checkpoints: LazyStream,
    pub(super) crashes: LazyStream,
    fall: Option<Fall>,
    /// The time and work up to which the area under its loss is counted.
    counted: (f64, f64),
    processes: usize,
}

/// What happens at a job's goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Acceptable,
    Objective,
    End,
}

impl LiveJob {
    pub(super) fn new(job: Job, index: usize, seed: u64) -> Self {
        let targets = [
            (job.work_to_acceptable(), Goal::Acceptable),
            (job.work_to_objective(), Goal::Objective),
            (job.work.is_finite().then_some(job.work), Goal::End),
        ];
        let mut goals: Vec<(f64, Goal)> =
            targets.into_iter().filter_map(|(work, goal)| Some((work?, goal))).collect();
        goals.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self {
            node: job.node,
            cap: UNLIMITED,
            cpu_shares: job.cpu_shares,
            start: job.start,
            before: 0.0,
            saved: 0.0,
            crash: None,
            goals,
            outcome: JobOutcome::new(&job),
            reported: first_report(&job),
            early: 0,
            noise: LazyStream::new(seed, Purpose::Noise, index),
            durations: LazyStream::new(seed, Purpose::Duration, index),
            timed: (0, 0.0),
            checkpoints: LazyStream::new(seed, Purpose::Checkpoint, index),
            crashes: LazyStream::new(seed, Purpose::Crash, index),
            fall: job.loss.as_ref().map(|curve| curve.fall()),
            counted: (job.arrive, 0.0),
            processes: 0,
            job,
        }
    }

    /// Its description for the engine when it begins to run.
    pub(super) fn spec(&self) -> JobSpec {
        JobSpec {
            id: self.job.id.clone(),
            node: None,
            fresh: true,
            in_force: UNLIMITED,
            min: self.job.min,
            max: self.job.max,
            weight: self.job.weight,
            own_weight: self.job.cpu_shares,
            age: None,
            max_slowdown: self.job.max_slowdown,
            may_terminate: self.job.may_terminate,
            work: self.job.declared,
            direction: None,
            targets: Targets::default(),
        }
    }

    /// Lets a process train from now on, on a node that does not limit it yet.
    pub(super) fn train(&mut self, now: f64, instances: &mut Instances) {
        self.outcome.started.get_or_insert(now);
        (self.cap, self.cpu_shares) = (UNLIMITED, self.job.cpu_shares);
        let instance = instances.name(self.processes);
        self.processes += 1;
        self.reported =
            Report { instance, reached: self.reported.reached, ..first_report(&self.job) };
        // Only its first process begins with early reports.
        let early = self.job.early_reports.filter(|_| self.processes == 1);
        self.early = u64::from(early.is_some());
        self.timed = (0, 0.0);
        if let Some(EarlyReports { loss, largest }) = early {
            (self.reported.losses, self.reported.largest) = ((self.early, loss), Some(largest));
        }
    }

    /// Whether its process is not the first one, and does not train yet.
    pub(super) fn starts_again(&self) -> bool {
        self.start.is_some() && self.processes > 0
    }

    /// Its demand on its node.
    pub(super) fn demand(&self, cpus: f64, competition: Competition) -> Demand {
        match self.start {
            Some(start) => self.job.starting(start),
            None => self.job.demand(self.cap, self.cpu_shares, cpus, competition),
        }
    }

    /// Its threads on a node of `cpus` CPUs.
    pub(super) fn threads_on(&self, cpus: f64) -> f64 {
        match self.start {
            Some(start) => threads_for(self.job.starting(start).cap, cpus),
            None => self.job.threads_on(cpus),
        }
    }

    /// The work that it has done, including its present process.
    pub(super) fn done(&self, tally: Tally) -> f64 {
        if self.start.is_some() { self.before } else { self.before + tally.work }
    }

    /// Whether its CPU weight differs from the default, so that the engine needs it.
    pub(super) fn has_own_weight(&self) -> bool {
        self.job.cpu_shares != DEFAULT_WEIGHT
    }

    /// The work of its present process at which the next event happens.
    pub(super) fn goal(&self) -> f64 {
        if let Some(start) = self.start {
            return start.work;
        }
        self.goals.last().map_or(f64::INFINITY, |(work, _)| work - self.before)
    }

    /// Handles its next goal.
    pub(super) fn reach(&mut self, now: f64) -> Option<Goal> {
        let (_, goal) = self.goals.pop()?;
        match goal {
            Goal::Acceptable => {
                self.outcome.acceptable = Some(now);
                self.reported.reached.acceptable = true;
            }
            Goal::Objective => {
                self.outcome.objective = Some(now);
                self.reported.reached.objective = true;
            }
            Goal::End => self.outcome.finished = Some(now),
        }
        Some(goal)
    }

    /// What its endpoint reports now, and what the kernel has counted.
    pub(super) fn report(&mut self, now: f64, tally: Tally, cpus: f64) -> (Report, Reading) {
        self.count_loss(now, self.done(tally));
        let reported = self.reported.losses.0 - self.early;
        if tally.batches > reported {
            self.report_losses(reported, tally.batches);
        }
        self.report_without_losses(tally, cpus)
    }

    /// The same without losses, which are needed only when a policy runs, and take the longest to
    /// compute.
    pub(super) fn report_without_losses(&mut self, tally: Tally, cpus: f64) -> (Report, Reading) {
        self.report_batches((tally.batches, tally.batch_seconds));
        self.reported.done = Some(self.done(tally) / self.job.work);
        let taken = self.steps_before() + tally.batches;
        self.reported.steps =
            Steps { taken: Some(taken), total: self.job.total.after(taken), ..Steps::default() };
        let reading = Reading {
            cpu_seconds: tally.cpu * cpus,
            throttled_seconds: Some(tally.throttled),
            memory: None,
        };
        (self.reported.clone(), reading)
    }

    /// The steps that it had taken before its present process.
    fn steps_before(&self) -> u64 {
        floor(self.before / self.job.batch + ROUNDING)
    }

    /// Reports the batches of its present process, with their number and their duration without
    /// noise.
    fn report_batches(&mut self, all: (u64, f64)) {
        let (before, took) = (self.timed, self.reported.batches.1);
        self.timed = all;
        self.reported.batches = all;
        if self.job.batch_noise > 0.0 {
            let new = all.0.saturating_sub(before.0);
            let mut part = 1.0;
            if new > 0 {
                let off = self.durations.stream().normal() / counter(new).sqrt();
                part = (1.0 + self.job.batch_noise * off).max(MIN_DURATION);
            }
            self.reported.batches.1 = took + (all.1 - before.1) * part;
        }
    }

    /// Reports a loss for each batch of its present process from `from + 1` to `to`.
    fn report_losses(&mut self, from: u64, to: u64) {
        let Some(curve) = &self.job.loss else { return };
        let step = self.job.batch / self.job.work;
        let done = self.steps_before();
        let mut sum = curve.sum(done + from, done + to, step);
        let fraction = |batches: u64| counter(done + batches) * step;
        sum += self.job.residuals.mean(fraction(from), fraction(to)) * counter(to - from);
        if self.job.noise > 0.0 {
            sum += self.job.noise * counter(to - from).sqrt() * self.noise.stream().normal();
        }
        let at = |batch: u64| curve.at(counter(done + batch) * step).abs();
        let before = self.reported.largest.unwrap_or_else(|| at(from + 1));
        // If losses only shrink, the first is the largest.
        self.reported.largest = Some(if curve.shrinks() { before } else { before.max(at(to)) });
        self.reported.losses = (self.early + to, self.reported.losses.1 + sum);
    }

    /// Counts the area under its loss up to now, where it has done this work.
    pub(super) fn count_loss(&mut self, now: f64, work: f64) {
        let (from, before) = self.counted;
        if now <= from {
            return;
        }
        self.counted = (now, work);
        if let Some((curve, fall)) = self.job.loss.as_ref().zip(self.fall) {
            let at = |work: f64| (work / self.job.work).min(1.0);
            let loss = curve.mean(at(before), at(work));
            self.outcome.loss_area += (now - from) * fall.to_come(loss);
        }
    }

    /// From now on its loss is that of the work before its next process.
    pub(super) fn restart_loss(&mut self, now: f64) {
        self.counted = (now, self.before);
    }
}

fn first_report(job: &Job) -> Report {
    Report {
        instance: Arc::default(),
        direction: job.direction(),
        losses: (0, 0.0),
        largest: None,
        batches: (0, 0.0),
        done: None,
        steps: Steps::default(),
        age: 0.0,
        targets: job.targets,
        reached: Reached::default(),
    }
}
