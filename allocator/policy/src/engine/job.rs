//! One job as the engine knows it: cumulative readings, and the marks that the last frame set.

use paceline_wire::{Progress, Targets};

use super::{JobSpec, Reading};
use crate::frame::{self, Limit, Reached, Usage};
use crate::unit::{Moment, Share, counter, saturate};

/// A job with no report for this many of its own report periods has gone silent (X7) …
const SILENT_PERIODS: f64 = 3.0;
/// … once as many intervals of the policy have passed, too.
const SILENT_INTERVALS: f64 = 2.0;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: JobSpec,
    /// What the policy chose last.
    pub(super) chosen: Share,
    pub(super) in_force: Share,
    appeared: Moment,
    progress: Option<Progress>,
    /// Count and sum of the losses as of the last frame.
    losses: Option<(u64, f64)>,
    batches: Batches,
    /// When the last report of a loss was first seen.
    last_report: Moment,
    usage: Option<(Moment, Reading)>,
    usage_mark: Option<(Moment, Reading)>,
}

/// Which batches began after the last frame and the last change of limit.
///
/// The endpoint tells how many batches have *ended*. The first to end after such a change began
/// before it, so the count starts with the reading that shows it ended.
#[derive(Clone, Copy, Debug, Default)]
struct Batches {
    ended_before: u64,
    from: Option<(u64, f64)>,
}

impl Job {
    pub(super) fn new(now: Moment, spec: JobSpec) -> Self {
        let began = spec.fresh.then_some((0, 0.0));
        Self {
            chosen: Share::ALL,
            in_force: spec.in_force,
            appeared: now,
            progress: None,
            losses: began,
            batches: Batches::default(),
            last_report: now,
            usage: None,
            usage_mark: None,
            spec,
        }
    }

    pub(super) fn reported(&mut self, now: Moment, progress: Progress) {
        let before = self.progress.as_ref();
        if before.is_some_and(|before| before.instance != progress.instance) {
            // The process began anew inside its container: so did its counters.
            self.losses = Some((0, 0.0));
            self.batches = Batches::default();
            self.last_report = now;
        } else if before.is_none_or(|before| progress.eval.count > before.eval.count) {
            self.last_report = now;
        }
        let (count, sum) = (progress.eval.count, progress.eval.sum);
        self.losses.get_or_insert((count, sum));
        let latency = &progress.batch_latency;
        if self.batches.from.is_none() && latency.count > self.batches.ended_before {
            self.batches.from = Some((latency.count, latency.sum));
        }
        self.progress = Some(progress);
    }

    pub(super) fn used(&mut self, now: Moment, reading: Reading) {
        let restarted =
            self.usage.is_some_and(|(_, before)| reading.cpu_seconds < before.cpu_seconds);
        if self.usage_mark.is_none() || restarted {
            self.usage_mark = Some((now, reading));
        }
        self.usage = Some((now, reading));
    }

    pub(super) fn applied(&mut self, share: Share) {
        if share != self.in_force {
            self.in_force = share;
            self.mark_batches();
        }
    }

    /// Ends the time that the last frame told of.
    pub(super) fn begin_frame(&mut self, chosen: Option<Share>) {
        self.chosen = chosen.unwrap_or(self.chosen);
        self.usage_mark = self.usage;
        if let Some(progress) = &self.progress {
            self.losses = Some((progress.eval.count, progress.eval.sum));
        }
        self.mark_batches();
    }

    fn mark_batches(&mut self) {
        let ended_before = self.progress.as_ref().map_or(0, |p| p.batch_latency.count);
        self.batches = Batches { ended_before, from: None };
    }

    pub(super) fn is_silent(&self, now: Moment, interval: f64) -> bool {
        let quiet = now.seconds_since(self.last_report);
        let alive = self.last_report.seconds_since(self.appeared);
        let reports = self.progress.as_ref().map_or(0, |progress| progress.eval.count);
        let period = if reports == 0 { 0.0 } else { alive / counter(reports) };
        quiet > (SILENT_PERIODS * period).max(SILENT_INTERVALS * interval)
    }

    pub(super) fn in_frame(&self, node: &str, cpus: f64) -> frame::Job {
        let progress = self.progress.as_ref();
        let asked = progress.map(|p| p.targets).unwrap_or_default();
        let targets = self.targets(asked);
        let reached = progress.map(|p| p.reached).unwrap_or_default();
        frame::Job {
            id: self.spec.id.clone(),
            node: Some(node.to_owned()),
            loss: self.loss(),
            loss_max: progress.and_then(|p| p.eval.max_abs),
            direction: self
                .spec
                .direction
                .or(progress.map(|p| p.eval.direction))
                .unwrap_or_default(),
            batch_latency: self.batch_latency(),
            usage: self.usage(cpus),
            limit: Limit {
                cpu: Some(self.chosen.get()),
                applied: Some(self.in_force.get()),
                min: self.spec.min.map(Share::get),
                max: self.spec.max.map(Share::get),
            },
            throttled: self.throttled(),
            weight: Some(self.spec.weight),
            may_terminate: Some(self.spec.may_terminate),
            // The job latches the targets that it knows of, not those that a label puts over them.
            reached: Reached {
                acceptable: reached.acceptable_at.is_some()
                    && asked.acceptable == targets.acceptable,
                objective: reached.objective_at.is_some() && asked.objective == targets.objective,
            },
            targets,
        }
    }

    fn targets(&self, asked: Targets) -> Targets {
        let own = self.spec.targets;
        Targets {
            acceptable: own.acceptable.or(asked.acceptable),
            objective: own.objective.or(asked.objective),
            batch_latency: own.batch_latency.or(asked.batch_latency),
        }
    }

    fn loss(&self) -> Option<f64> {
        let eval = &self.progress.as_ref()?.eval;
        mean(self.losses?, (eval.count, eval.sum))
    }

    fn batch_latency(&self) -> Option<f64> {
        let latency = &self.progress.as_ref()?.batch_latency;
        mean(self.batches.from?, (latency.count, latency.sum))
    }

    fn usage(&self, cpus: f64) -> Usage {
        let between = |(from, before): (Moment, Reading), (to, now): (Moment, Reading)| {
            let seconds = to.seconds_since(from);
            (seconds > 0.0)
                .then(|| saturate((now.cpu_seconds - before.cpu_seconds) / seconds / cpus))
        };
        Usage {
            cpu: self.usage_mark.zip(self.usage).and_then(|(from, to)| between(from, to)),
            memory: self.usage.and_then(|(_, reading)| reading.memory),
            ..Usage::default()
        }
    }

    fn throttled(&self) -> Option<f64> {
        let ((from, before), (to, now)) = (self.usage_mark?, self.usage?);
        let seconds = to.seconds_since(from);
        let stood = now.throttled_seconds? - before.throttled_seconds?;
        (seconds > 0.0).then(|| saturate(stood / seconds).clamp(0.0, 1.0))
    }
}

/// The exact mean of what came between two readings of a count and a sum that only grow.
fn mean(from: (u64, f64), to: (u64, f64)) -> Option<f64> {
    let came = to.0.checked_sub(from.0).filter(|came| *came > 0)?;
    Some((to.1 - from.1) / counter(came)).filter(|mean| mean.is_finite())
}
