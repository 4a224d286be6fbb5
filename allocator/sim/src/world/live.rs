//! One job while the simulation runs, and what its endpoint would say.

use std::sync::Arc;

use paceline_policy::engine::{Reading, Report, Steps};
use paceline_policy::frame::Reached;
use paceline_policy::limiter::DEFAULT_WEIGHT;
use paceline_policy::unit::counter;
use paceline_policy::{JobSpec, Share};
use paceline_wire::Targets;

use super::jobs::Instances;
use crate::curve::Fall;
use crate::fluid::{Party, ROUNDING, Tally};
use crate::number::floor;
use crate::outcome::JobOutcome;
use crate::random::{Lazy, Purpose};
use crate::scenario::{Company, Job, Start, Told, threads_for};

/// What a job's limit and weight are before anybody touches them.
pub(super) const UNLIMITED: Share = Share::ALL;

/// Noise takes no more of what batches last than leaves them this part.
const LEAST_DURATION: f64 = 0.1;

/// One job.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) job: Job,
    /// Where it runs, or is to run once its move is over.
    pub(super) node: Option<usize>,
    pub(super) cap: Share,
    pub(super) cpu_shares: u64,
    /// What it has to do before it trains, all of it: a start that is cut short begins anew.
    pub(super) start: Option<Start>,
    /// Work done before its present process began.
    pub(super) before: f64,
    /// The work in the checkpoint that it was last moved with.
    pub(super) saved: f64,
    /// When its present process crashes.
    pub(super) crash: Option<f64>,
    /// The works at which something happens, the next one first.
    goals: Vec<(f64, Goal)>,
    pub(super) outcome: JobOutcome,
    told: Report,
    /// How many of the losses that it has told of are of the time before it was first seen.
    early: u64,
    noise: Lazy,
    durations: Lazy,
    /// How many batches it has told of, and what those took without noise.
    timed: (u64, f64),
    pub(super) checkpoints: Lazy,
    pub(super) crashes: Lazy,
    fall: Option<Fall>,
    /// Up to when the area under its loss is counted, and the work then.
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

impl Live {
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
            told: first_report(&job),
            early: 0,
            noise: Lazy::new(seed, Purpose::Noise, index),
            durations: Lazy::new(seed, Purpose::Duration, index),
            timed: (0, 0.0),
            checkpoints: Lazy::new(seed, Purpose::Checkpoint, index),
            crashes: Lazy::new(seed, Purpose::Crash, index),
            fall: job.loss.as_ref().map(|curve| curve.fall()),
            counted: (job.arrive, 0.0),
            processes: 0,
            job,
        }
    }

    /// What the engine is told of it when it begins to run.
    pub(super) fn spec(&self) -> JobSpec {
        JobSpec {
            id: self.job.id.clone(),
            node: None,
            fresh: true,
            in_force: UNLIMITED,
            min: self.job.min,
            max: self.job.max,
            weight: self.job.weight,
            max_slowdown: self.job.max_slowdown,
            may_terminate: self.job.may_terminate,
            work: self.job.declared,
            direction: None,
            targets: Targets::default(),
        }
    }

    /// A process of it trains from now on, on a node where nothing limits it yet.
    pub(super) fn train(&mut self, now: f64, instances: &mut Instances) {
        self.outcome.started.get_or_insert(now);
        (self.cap, self.cpu_shares) = (UNLIMITED, self.job.cpu_shares);
        let instance = instances.name(self.processes);
        self.processes += 1;
        self.told = Report { instance, reached: self.told.reached, ..first_report(&self.job) };
        // Only its first process begins with what it told of then.
        let told = self.job.told.filter(|_| self.processes == 1);
        self.early = u64::from(told.is_some());
        self.timed = (0, 0.0);
        if let Some(Told { loss, largest }) = told {
            (self.told.losses, self.told.largest) = ((self.early, loss), Some(largest));
        }
    }

    /// Whether its process is not the first one, and does not train yet.
    pub(super) fn starts_again(&self) -> bool {
        self.start.is_some() && self.processes > 0
    }

    /// What it asks of its node.
    pub(super) fn party(&self, cpus: f64, company: Company) -> Party {
        match self.start {
            Some(start) => self.job.starting(start),
            None => self.job.party(self.cap, self.cpu_shares, cpus, company),
        }
    }

    /// Its threads on a node of `cpus` CPUs.
    pub(super) fn threads_on(&self, cpus: f64) -> f64 {
        match self.start {
            Some(start) => threads_for(self.job.starting(start).cap, cpus),
            None => self.job.threads_on(cpus),
        }
    }

    /// The work that it has done, its present process among it.
    pub(super) fn done(&self, tally: Tally) -> f64 {
        if self.start.is_some() { self.before } else { self.before + tally.work }
    }

    /// Whether its CPU weight is one that the engine must be told of.
    pub(super) fn has_own_weight(&self) -> bool {
        self.job.cpu_shares != DEFAULT_WEIGHT
    }

    /// The work of its present process at which something happens next.
    pub(super) fn goal(&self) -> f64 {
        if let Some(start) = self.start {
            return start.work;
        }
        self.goals.last().map_or(f64::INFINITY, |(work, _)| work - self.before)
    }

    /// It has got there.
    pub(super) fn reach(&mut self, now: f64) -> Option<Goal> {
        let (_, goal) = self.goals.pop()?;
        match goal {
            Goal::Acceptable => {
                self.outcome.acceptable = Some(now);
                self.told.reached.acceptable = true;
            }
            Goal::Objective => {
                self.outcome.objective = Some(now);
                self.told.reached.objective = true;
            }
            Goal::End => self.outcome.finished = Some(now),
        }
        Some(goal)
    }

    /// What its endpoint says now, and what the kernel says that it has used.
    pub(super) fn report(&mut self, now: f64, tally: Tally, cpus: f64) -> (Report, Reading) {
        self.count_loss(now, self.done(tally));
        let told = self.told.losses.0 - self.early;
        if tally.batches > told {
            self.tell_losses(told, tally.batches);
        }
        self.glance(tally, cpus)
    }

    /// The same but for its losses, which are told when a policy runs: nobody else asks for them,
    /// and they take the longest to work out.
    pub(super) fn glance(&mut self, tally: Tally, cpus: f64) -> (Report, Reading) {
        self.tell_batches((tally.batches, tally.batch_seconds));
        self.told.done = Some(self.done(tally) / self.job.work);
        let taken = self.steps_before() + tally.batches;
        self.told.steps =
            Steps { taken: Some(taken), total: self.job.total.after(taken), ..Steps::default() };
        let reading = Reading {
            cpu_seconds: tally.cpu * cpus,
            throttled_seconds: Some(tally.throttled),
            memory: None,
        };
        (self.told.clone(), reading)
    }

    /// The steps that it had taken when its present process began.
    fn steps_before(&self) -> u64 {
        floor(self.before / self.job.batch + ROUNDING)
    }

    /// So many batches of its present process took so long by the share that it had.
    fn tell_batches(&mut self, all: (u64, f64)) {
        let (before, took) = (self.timed, self.told.batches.1);
        self.timed = all;
        self.told.batches = all;
        if self.job.batch_noise > 0.0 {
            let new = all.0.saturating_sub(before.0);
            let mut part = 1.0;
            if new > 0 {
                let off = self.durations.stream().normal() / counter(new).sqrt();
                part = (1.0 + self.job.batch_noise * off).max(LEAST_DURATION);
            }
            self.told.batches.1 = took + (all.1 - before.1) * part;
        }
    }

    /// Each batch of its present process from `from + 1` to `to` reports a loss.
    fn tell_losses(&mut self, from: u64, to: u64) {
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
        let before = self.told.largest.unwrap_or_else(|| at(from + 1));
        // Where losses only shrink, the first is the largest, and no other has to be worked out.
        self.told.largest = Some(if curve.shrinks() { before } else { before.max(at(to)) });
        self.told.losses = (self.early + to, self.told.losses.1 + sum);
    }

    /// Counts the area under its loss up to now, with the work then.
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

    /// Its loss is, from now on, that of the work before its next process.
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
