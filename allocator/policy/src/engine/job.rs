//! One job as the engine knows it: cumulative readings, and the marks that the last frame set.

use paceline_wire::{Direction, Targets};

use super::JobSpec;
use super::reading::{Reading, Taken};
use super::report::Report;
use super::window::{Sight, Window};
use crate::frame::{self, Limit, Reached, Usage};
use crate::limiter::{Change, DEFAULT_WEIGHT, InForce, Setting, Switches, View, Why};
use crate::signal::mean_between;
use crate::unit::{Moment, NodeName, Share, counter};

/// A job with no report for this many of its own report periods has gone silent (X7) …
const SILENT_PERIODS: f64 = 3.0;
/// … once as many intervals of the policy have passed, too, and once it has used so many times the CPU
/// time that it needs from one report to the next: one that gets little CPU reports seldom.
const SILENT_INTERVALS: f64 = 2.0;
/// A held share is written when what is in force differs by this much: less is rounding.
const OFF: f64 = 0.0005;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: JobSpec,
    /// What the policy chose last.
    pub(super) chosen: Share,
    pub(super) in_force: InForce,
    /// What was last asked for, in force or not, and when.
    pub(super) asked: Option<(Moment, Setting)>,
    /// The share that it is held at by an order.
    pub(super) pinned: Option<Share>,
    /// The guards that were switched by an order.
    pub(super) switches: Switches,
    /// The targets that were set by an order: these rule over its owner's and its endpoint's.
    pub(super) ordered: Targets,
    appeared: Moment,
    report: Option<Report>,
    /// Count and sum of the losses as of the last frame.
    losses: Option<(u64, f64)>,
    batches: Batches,
    /// When the last report of a loss or a batch was first seen.
    last_report: Moment,
    /// The CPU seconds that it had used by then, and when its present process began.
    used_at_report: f64,
    used_at_start: f64,
    /// The last two readings.
    usage: Option<Taken>,
    usage_before: Option<Taken>,
    /// The CPU seconds that it had used when it took the step that it reported last.
    used_at_step: Option<f64>,
    /// CPU seconds of its counters up to when they last began again.
    used_before: f64,
    usage_mark: Option<Taken>,
    window: Window,
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
            in_force: InForce { cap: spec.in_force, weight: DEFAULT_WEIGHT },
            asked: None,
            pinned: None,
            switches: Switches::default(),
            ordered: Targets::default(),
            appeared: now,
            report: None,
            losses: began,
            batches: Batches::default(),
            last_report: now,
            used_at_report: 0.0,
            used_at_start: 0.0,
            usage: None,
            usage_before: None,
            used_at_step: None,
            used_before: 0.0,
            usage_mark: None,
            window: Window::default(),
            spec,
        }
    }

    pub(super) fn reported(&mut self, now: Moment, report: Report) {
        let before = self.report.as_ref();
        let before_step = before.and_then(|before| before.steps.taken);
        if before.is_some_and(|before| before.instance != report.instance) {
            // The process began anew inside its container: so did its counters.
            self.losses = Some((0, 0.0));
            self.batches = Batches::default();
            self.window.forget_batches();
            self.used_at_start = self.cpu_seconds().unwrap_or(0.0);
            self.report_came(now);
        } else if before.is_none_or(|before| report.reports() > before.reports()) {
            self.report_came(now);
        }
        self.losses.get_or_insert(report.losses);
        if self.batches.from.is_none() && report.batches.0 > self.batches.ended_before {
            self.batches.from = Some(report.batches);
        }
        if before_step != report.steps.taken {
            self.used_at_step = self.used_before_now(now, report.age);
        }
        self.report = Some(report);
    }

    /// The CPU seconds that it had used so many seconds before `now`, at a moment between the last two readings.
    fn used_before_now(&self, now: Moment, age: f64) -> Option<f64> {
        let (last, used) = (self.usage?, self.cpu_seconds()?);
        let Some(before) = self.usage_before else { return Some(used) };
        let (window, age) = (last.at.seconds_since(before.at), age - now.seconds_since(last.at));
        let grown = (last.reading.cpu_seconds - before.reading.cpu_seconds).max(0.0);
        let part = if window > 0.0 { (age / window).clamp(0.0, 1.0) } else { 0.0 };
        Some(used - part * grown)
    }

    pub(super) fn used(&mut self, at: Moment, reading: Reading) {
        let taken = Taken { at, reading };
        let restarted = self.usage.filter(|before| taken.restarted_after(before));
        if let Some(before) = restarted {
            self.used_before += before.reading.cpu_seconds;
        }
        if self.usage_mark.is_none() || restarted.is_some() {
            self.usage_mark = Some(taken);
        }
        self.usage_before = self.usage.replace(taken);
    }

    pub(super) fn applied(&mut self, setting: Setting) {
        let before = self.in_force;
        match setting {
            Setting::Cap(share) => self.in_force.cap = share,
            Setting::Weight(weight) => self.in_force.weight = weight,
        }
        if self.in_force != before {
            self.mark_batches();
            self.window.limit_changed(self.usage);
        }
    }

    /// The next look is to see nothing of what was used until now.
    pub(super) fn look_anew(&mut self) {
        self.window.begin(self.usage);
    }

    /// Ends the time that the last frame told of.
    pub(super) fn begin_frame(&mut self, chosen: Option<Share>) {
        self.chosen = chosen.unwrap_or(self.chosen);
        self.usage_mark = self.usage;
        if let Some(report) = &self.report {
            self.losses = Some(report.losses);
        }
        self.mark_batches();
    }

    /// Whether its batches have a target, and none is known yet that began after the last frame.
    pub(super) fn awaits_batches(&self) -> bool {
        self.batches.from.is_none() && self.targets().batch_latency.is_some()
    }

    fn mark_batches(&mut self) {
        let ended_before = self.report.as_ref().map_or(0, |report| report.batches.0);
        self.batches = Batches { ended_before, from: None };
    }

    fn report_came(&mut self, now: Moment) {
        self.last_report = now;
        self.used_at_report = self.cpu_seconds().unwrap_or(0.0);
    }

    /// The CPU time that it has used since its container began.
    fn cpu_seconds(&self) -> Option<f64> {
        self.usage.map(|taken| self.used_before + taken.reading.cpu_seconds)
    }

    pub(super) fn is_silent(&self, now: Moment, interval: f64) -> bool {
        let quiet = now.seconds_since(self.last_report);
        let alive = self.last_report.seconds_since(self.appeared);
        let reports = self.report.as_ref().map_or(0, Report::reports);
        let period = if reports == 0 { 0.0 } else { alive / counter(reports) };
        quiet > (SILENT_PERIODS * period).max(SILENT_INTERVALS * interval)
            && self.has_used_enough_to_report(reports)
    }

    /// Whether it has used the CPU time by which it should have reported again. True if its CPU time is unknown.
    fn has_used_enough_to_report(&self, reports: u64) -> bool {
        let Some(used) = self.cpu_seconds().filter(|_| reports > 0) else { return true };
        let a_report = (self.used_at_report - self.used_at_start) / counter(reports);
        used - self.used_at_report >= SILENT_PERIODS * a_report
    }

    /// What the limiter sees of the job at `now`.
    pub(super) fn view(&mut self, now: Moment, cpus: f64, silent: bool) -> View {
        let sight = Sight {
            cap: self.in_force.cap,
            cpus,
            latest: self.usage,
            from: self.batches.from,
            batches: self.report.as_ref().map(|report| report.batches),
        };
        let seen = self.window.look(now, sight);
        View {
            job: self.spec.id.clone(),
            in_force: self.in_force.cap,
            measured_under: seen.cap,
            min: self.spec.min,
            max: self.spec.max,
            weight: self.spec.weight,
            usage: seen.usage,
            pressed: seen.pressed,
            batch_latency: seen.batch_latency,
            budget: self.targets().batch_latency,
            max_slowdown: self.spec.max_slowdown,
            switches: self.switches,
            silent,
        }
    }

    /// Whether the last view told of what was used since `moment` or later, and of nothing older.
    pub(super) fn saw_only_since(&self, moment: Moment) -> bool {
        self.window.saw_only_since(moment)
    }

    pub(super) fn in_frame(&self, node: &NodeName, cpus: f64) -> frame::Job {
        let report = self.report.as_ref();
        let asked = self.asked_targets();
        let targets = self.targets();
        let reached = report.map(|report| report.reached).unwrap_or_default();
        let steps = report.map(|report| report.steps).unwrap_or_default();
        frame::Job {
            id: self.spec.id.clone(),
            node: Some(node.clone()),
            loss: self.loss(),
            loss_max: report.and_then(|report| report.largest),
            direction: self.direction(),
            batch_latency: self.batch_latency(),
            usage: self.usage(cpus),
            limit: Limit {
                cpu: Some(self.chosen.get()),
                applied: Some(self.in_force.cap.get()),
                min: self.spec.min.map(Share::get),
                max: self.spec.max.map(Share::get),
                max_slowdown: self.spec.max_slowdown,
                held: false,
            },
            throttled: self.throttled(),
            weight: Some(self.spec.weight),
            may_terminate: Some(self.spec.may_terminate),
            remaining: self.remaining(),
            cpu_seconds: self.cpu_seconds(),
            step: steps.taken,
            step_cpu_seconds: steps.taken.and(self.used_at_step),
            total_steps: steps.total,
            expected_steps: steps.expected,
            steps_to_acceptable: steps.to_acceptable,
            steps_to_objective: steps.to_objective,
            // The job latches the targets that it knows of, not those that a label puts over them.
            reached: Reached {
                acceptable: reached.acceptable && asked.acceptable == targets.acceptable,
                objective: reached.objective && asked.objective == targets.objective,
            },
            targets,
        }
    }

    /// Before its first report, a job has done nothing; one that reports and does not say how many of
    /// its steps are done may have done anything.
    fn remaining(&self) -> Option<f64> {
        let done = self.report.as_ref().map_or(Some(0.0), |report| report.done)?;
        self.spec.work.map(|work| work * (1.0 - done))
    }

    fn asked_targets(&self) -> Targets {
        self.report.as_ref().map(|report| report.targets).unwrap_or_default()
    }

    /// The targets in force.
    pub(super) fn targets(&self) -> Targets {
        over(self.ordered, over(self.spec.targets, self.asked_targets()))
    }

    /// Which way its loss goes.
    pub(super) fn direction(&self) -> Direction {
        let own = self.report.as_ref().map(|report| report.direction);
        self.spec.direction.or(own).unwrap_or_default()
    }

    /// Sets targets; what is not given stays.
    pub(super) fn order_targets(&mut self, targets: Targets) {
        self.ordered = over(targets, self.ordered);
    }

    /// What is to be written to hold the job at the share that was ordered, if it is not there.
    pub(super) fn hold(&self, least: Share) -> Option<Change> {
        let pinned = self.pinned?;
        let share = if pinned < least { least } else { pinned };
        let off = (self.in_force.cap.get() - share.get()).abs() >= OFF;
        off.then(|| Change {
            job: self.spec.id.clone(),
            from: Setting::Cap(self.in_force.cap),
            to: Setting::Cap(share),
            why: Why::Pinned,
        })
    }

    fn loss(&self) -> Option<f64> {
        mean_between(self.losses?, self.report.as_ref()?.losses)
    }

    fn batch_latency(&self) -> Option<f64> {
        mean_between(self.batches.from?, self.report.as_ref()?.batches)
    }

    fn usage(&self, cpus: f64) -> Usage {
        let between = self.usage_mark.zip(self.usage);
        Usage {
            cpu: between.and_then(|(from, to)| to.usage_since(&from, cpus)),
            memory: self.usage.and_then(|taken| taken.reading.memory),
            ..Usage::default()
        }
    }

    fn throttled(&self) -> Option<f64> {
        self.usage?.throttled_since(&self.usage_mark?)
    }
}

/// Targets over those that count less.
fn over(targets: Targets, others: Targets) -> Targets {
    Targets {
        acceptable: targets.acceptable.or(others.acceptable),
        objective: targets.objective.or(others.objective),
        batch_latency: targets.batch_latency.or(others.batch_latency),
    }
}
