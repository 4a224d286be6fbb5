//! One job while the simulation runs, and what its endpoint would say.

use paceline_policy::engine::Reading;
use paceline_policy::limiter::DEFAULT_WEIGHT;
use paceline_policy::unit::counter;
use paceline_policy::{JobSpec, Share};
use paceline_wire::{
    Checkpoint, Cpu, Eval, Latency, Progress, Reached, SCHEMA, Signals, State, Targets,
};

use crate::fluid::{Party, Tally};
use crate::outcome::JobOutcome;
use crate::random::{Purpose, Stream};
use crate::scenario::Job;

/// What a job's limit and weight are before anybody touches them.
pub(super) const UNLIMITED: Share = Share::ALL;

/// One job.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) job: Job,
    /// Where it runs, or is to run once its move is over.
    pub(super) node: Option<usize>,
    pub(super) running: bool,
    pub(super) cap: Share,
    pub(super) cpu_shares: u64,
    /// Work done before its present process began.
    pub(super) before: f64,
    /// The works at which something happens, the next one first.
    goals: Vec<(f64, Goal)>,
    pub(super) outcome: JobOutcome,
    progress: Progress,
    noise: Stream,
    pub(super) checkpoints: Stream,
    /// Up to when the area under its loss is counted, and the work then.
    counted: (f64, f64),
    processes: u64,
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
            (job.work_to(job.targets.acceptable), Goal::Acceptable),
            (job.work_to(job.targets.objective), Goal::Objective),
            (job.work.is_finite().then_some(job.work), Goal::End),
        ];
        let mut goals: Vec<(f64, Goal)> =
            targets.into_iter().filter_map(|(work, goal)| Some((work?, goal))).collect();
        goals.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self {
            node: job.node,
            running: false,
            cap: UNLIMITED,
            cpu_shares: job.cpu_shares,
            before: 0.0,
            goals,
            outcome: JobOutcome::new(&job),
            progress: first_report(&job),
            noise: Stream::new(seed, Purpose::Noise, index),
            checkpoints: Stream::new(seed, Purpose::Checkpoint, index),
            counted: (job.arrive, 0.0),
            processes: 0,
            job,
        }
    }

    /// What the engine is told of it when it begins to run.
    pub(super) fn spec(&self) -> JobSpec {
        JobSpec {
            id: self.job.id.clone(),
            fresh: true,
            in_force: UNLIMITED,
            min: self.job.min,
            max: self.job.max,
            weight: self.job.weight,
            max_slowdown: self.job.max_slowdown,
            may_terminate: self.job.may_terminate,
            direction: None,
            targets: Targets::default(),
        }
    }

    /// A process of it begins, on a node where nothing limits it yet.
    pub(super) fn begin(&mut self, now: f64) {
        self.running = true;
        self.outcome.started.get_or_insert(now);
        (self.cap, self.cpu_shares) = (UNLIMITED, self.job.cpu_shares);
        self.processes += 1;
        let reached = self.progress.reached;
        self.progress = first_report(&self.job);
        self.progress.reached = reached;
        self.progress.instance = self.processes.to_string();
    }

    /// What it asks of its node.
    pub(super) fn party(&self, cpus: f64) -> Party {
        self.job.party(self.cap, self.cpu_shares, cpus)
    }

    /// Whether its CPU weight is one that the engine must be told of.
    pub(super) fn has_own_weight(&self) -> bool {
        self.job.cpu_shares != DEFAULT_WEIGHT
    }

    /// The work of its present process at which something happens next.
    pub(super) fn goal(&self) -> f64 {
        self.goals.last().map_or(f64::INFINITY, |(work, _)| work - self.before)
    }

    /// It has got there.
    pub(super) fn reach(&mut self, now: f64) -> Option<Goal> {
        let (_, goal) = self.goals.pop()?;
        match goal {
            Goal::Acceptable => {
                self.outcome.acceptable = Some(now);
                self.progress.reached.acceptable_at = Some(now);
            }
            Goal::Objective => {
                self.outcome.objective = Some(now);
                self.progress.reached.objective_at = Some(now);
            }
            Goal::End => self.outcome.finished = Some(now),
        }
        Some(goal)
    }

    /// What its endpoint says now, and what the kernel says that it has used.
    pub(super) fn report(&mut self, now: f64, tally: Tally, cpus: f64) -> (Progress, Reading) {
        self.count_loss(now, self.before + tally.work);
        let progress = &mut self.progress;
        progress.now = now;
        let ended = progress.batch_latency.count;
        if tally.batches > ended {
            progress.state = State::Running;
            progress.step = Some(tally.batches);
            let latency = &mut progress.batch_latency;
            let batches = counter(tally.batches - ended);
            latency.last = Some((tally.batch_seconds - latency.sum) / batches);
            (latency.count, latency.sum) = (tally.batches, tally.batch_seconds);
            if let Some(curve) = &self.job.loss {
                let step = self.job.batch / self.job.work;
                let done = crate::number::floor(self.before / self.job.batch);
                let (from, to) = (done + ended, done + tally.batches);
                let mut sum = curve.sum(from, to, step);
                if self.job.noise > 0.0 {
                    sum += self.job.noise * batches.sqrt() * self.noise.normal();
                }
                let eval = &mut progress.eval;
                let edges = [from + 1, to].map(|at| curve.at(counter(at) * step).abs());
                let largest = edges.into_iter().fold(eval.max_abs.unwrap_or(0.0), f64::max);
                eval.max_abs = Some(largest);
                eval.value = Some(sum / batches);
                eval.updated_at = Some(now);
                (eval.count, eval.sum) = (tally.batches, eval.sum + sum);
            }
        }
        let reading = Reading {
            cpu_seconds: tally.cpu * cpus,
            throttled_seconds: Some(tally.throttled),
            memory: None,
        };
        (progress.clone(), reading)
    }

    /// Counts the area under its loss up to now, with the work then.
    pub(super) fn count_loss(&mut self, now: f64, work: f64) {
        let (from, before) = self.counted;
        self.counted = (now, work);
        if let Some(curve) = &self.job.loss {
            let at = |work: f64| (work / self.job.work).min(1.0);
            self.outcome.loss_area += (now - from) * curve.to_come(at(before), at(work));
        }
    }
}

fn first_report(job: &Job) -> Progress {
    Progress {
        schema: SCHEMA,
        job: job.id.to_string(),
        pid: 1,
        instance: String::new(),
        source: "simulator".to_owned(),
        state: State::Starting,
        started_at: 0.0,
        now: 0.0,
        step: None,
        epoch: None,
        total_steps: None,
        dataset: None,
        eval: Eval {
            name: "loss".to_owned(),
            direction: job.direction(),
            value: None,
            window: 5,
            updated_at: None,
            count: 0,
            sum: 0.0,
            first: None,
            best: None,
            max_abs: None,
        },
        batch_latency: Latency::default(),
        targets: job.targets,
        reached: Reached::default(),
        checkpoint: Checkpoint::default(),
        validation: None,
        signals: Signals::default(),
        cpu: Cpu::default(),
        rank: None,
        sidecar: None,
        dropped: 0,
        rejected: 0,
    }
}
