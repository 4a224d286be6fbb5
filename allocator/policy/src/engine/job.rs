//! The engine's record of one job: cumulative readings, and their values as of the last frame.

use paceline_wire::{Direction, Targets};

use super::JobSpec;
use super::batch_clock::BatchClock;
use super::reading::{Reading, TimedReading};
use super::report::Report;
use super::window::{Window, WindowInput};
use crate::frame::{self, Limit, Reached, Usage};
use crate::limiter::{Change, InForce, Setting, Switches, View, Why};
use crate::signal::mean_between;
use crate::unit::{Moment, NodeName, Share, counter};

/// A job is silent (X7) after no report for this many of its own report periods. It must also have used
/// this many times the CPU time between two reports, since a job with little CPU reports seldom.
const SILENT_PERIODS: f64 = 3.0;
/// … and no report for this many intervals of the policy.
const SILENT_INTERVALS: f64 = 2.0;
/// A pinned share is written when the cap in force differs by this much. Less is rounding.
const PIN_TOLERANCE: f64 = 0.0005;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) spec: JobSpec,
    /// The policy's last choice.
    pub(super) chosen: Share,
    pub(super) in_force: InForce,
    /// The last requested setting, in force or not, and the time of the request.
    pub(super) asked: Option<(Moment, Setting)>,
    /// The share at which a command holds it.
    pub(super) pinned: Option<Share>,
    /// The guards that commands have switched.
    pub(super) switches: Switches,
    /// The targets set by commands. They override its owner's and its endpoint's.
    pub(super) ordered: Targets,
    appeared: Moment,
    /// When its current process was first seen.
    process_since: Moment,
    report: Option<Report>,
    /// Count and sum of the losses as of the last frame.
    losses: Option<(u64, f64)>,
    batches: Batches,
    /// When the last report of a loss or a batch was first seen.
    last_report: Moment,
    /// When its endpoint was last read.
    last_read: Moment,
    /// The CPU seconds used at the last report, and at the start of its current process.
    used_at_report: f64,
    used_at_start: f64,
    /// The last two readings.
    usage: Option<TimedReading>,
    usage_before: Option<TimedReading>,
    /// The CPU seconds used when it took the last reported step.
    used_at_step: Option<f64>,
    /// The CPU seconds counted before its counters last restarted.
    used_before: f64,
    usage_mark: Option<TimedReading>,
    window: Window,
}

/// Which batches began after the last frame and the last change of limit.
///
/// The endpoint counts batches that have *ended*. The first one to end after such a change began
/// before it. So the count starts with the reading that shows that it has ended.
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
            in_force: InForce {
                cap: spec.in_force,
                weight: spec.own_weight,
                own_weight: spec.own_weight,
            },
            asked: None,
            pinned: None,
            switches: Switches::default(),
            ordered: Targets::default(),
            appeared: now,
            process_since: now,
            report: None,
            losses: began,
            batches: Batches::default(),
            last_report: now,
            last_read: now,
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
        let report = self.clock_check(now, report);
        let before = self.report.as_ref();
        let before_step = before.and_then(|before| before.steps.taken);
        if before.is_some_and(|before| before.instance != report.instance) {
            // The process restarted inside its container, and so did its counters.
            self.losses = Some((0, 0.0));
            self.batches = Batches::default();
            self.window.forget_batches();
            self.process_since = now;
            self.used_at_start = self.cpu_seconds().unwrap_or(0.0);
            self.report_came(now);
        } else if before.is_none_or(|before| report.reports() > before.reports()) {
            self.report_came(now);
        }
        self.losses.get_or_insert(report.losses);
        if self.batches.from.is_none() && report.batches.0 > self.batches.ended_before {
            self.batches.from = Some(report.batches);
        }
        self.last_read = now;
        if before_step != report.steps.taken {
            self.used_at_step = self.used_before_now(now, report.age);
        }
        self.report = Some(report);
    }

    /// The report, without batches that the clock shows to be impossible: those of the last report
    /// stay.
    fn clock_check(&self, now: Moment, report: Report) -> Report {
        let before = self.report.as_ref().filter(|before| before.instance == report.instance);
        let elapsed = before.map_or(f64::INFINITY, |_| now.seconds_since(self.last_read));
        let clock = BatchClock {
            elapsed: elapsed + report.age,
            lifetime: self.lifetime(now).unwrap_or(f64::INFINITY),
        };
        let counted = before.map_or((0, 0.0), |before| before.batches);
        let batches = if clock.allows(counted, report.batches) { report.batches } else { counted };
        Report { batches, ..report }
    }

    /// How long its container has run, in seconds.
    fn lifetime(&self, now: Moment) -> Option<f64> {
        self.spec.age.map(|age| age + now.seconds_since(self.appeared))
    }

    /// The CPU weight that its owner gave it, less what it has.
    pub(super) fn spare_weight(&self) -> i64 {
        let InForce { weight, own_weight, .. } = self.in_force;
        own_weight.checked_signed_diff(weight).unwrap_or(0)
    }

    /// The CPU seconds used `age` seconds before `now`, interpolated between the last two readings.
    fn used_before_now(&self, now: Moment, age: f64) -> Option<f64> {
        let (last, used) = (self.usage?, self.cpu_seconds()?);
        let Some(before) = self.usage_before else { return Some(used) };
        let (window, age) = (last.at.seconds_since(before.at), age - now.seconds_since(last.at));
        let grown = (last.reading.cpu_seconds - before.reading.cpu_seconds).max(0.0);
        let part = if window > 0.0 { (age / window).clamp(0.0, 1.0) } else { 0.0 };
        Some(used - part * grown)
    }

    pub(super) fn used(&mut self, at: Moment, reading: Reading) {
        let taken = TimedReading { at, reading };
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

    /// Makes the next tick ignore the usage until now.
    pub(super) fn restart_window(&mut self) {
        self.window.begin(self.usage);
    }

    /// Starts the period of the next frame.
    pub(super) fn begin_frame(&mut self, chosen: Option<Share>) {
        self.chosen = chosen.unwrap_or(self.chosen);
        self.usage_mark = self.usage;
        if let Some(report) = &self.report {
            self.losses = Some(report.losses);
        }
        self.mark_batches();
    }

    /// Whether it has a batch target but no measured batch that began after the last frame.
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
        let alive = self.last_report.seconds_since(self.process_since);
        let reports = self.report.as_ref().map_or(0, Report::reports);
        let period = if reports == 0 { 0.0 } else { alive / counter(reports) };
        quiet > (SILENT_PERIODS * period).max(SILENT_INTERVALS * interval)
            && self.has_used_enough_to_report(reports)
    }

    /// Whether it has used enough CPU time for another report to be due. True if its CPU time is unknown.
    fn has_used_enough_to_report(&self, reports: u64) -> bool {
        let Some(used) = self.cpu_seconds().filter(|_| reports > 0) else { return true };
        let a_report = (self.used_at_report - self.used_at_start) / counter(reports);
        used - self.used_at_report >= SILENT_PERIODS * a_report
    }

    /// The limiter's view of the job at `now`.
    pub(super) fn view(&mut self, now: Moment, cpus: f64, silent: bool) -> View {
        let input = WindowInput {
            cap: self.in_force.cap,
            cpus,
            latest: self.usage,
            from: self.batches.from,
            batches: self.report.as_ref().map(|report| report.batches),
        };
        let sample = self.window.tick(now, input);
        View {
            job: self.spec.id.clone(),
            in_force: self.in_force.cap,
            measured_under: sample.cap,
            min: self.spec.min,
            max: self.spec.max,
            weight: self.spec.weight,
            usage: sample.usage,
            pressed: sample.pressed,
            batch_latency: sample.batch_latency,
            budget: self.targets().batch_latency,
            max_slowdown: self.spec.max_slowdown,
            switches: self.switches,
            silent,
        }
    }

    /// Whether the last view's usage is entirely from after `moment`.
    pub(super) fn sampled_only_since(&self, moment: Moment) -> bool {
        self.window.sampled_only_since(moment)
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
            // The job latches its own targets, not those that a label or a command sets instead.
            reached: Reached {
                acceptable: reached.acceptable && asked.acceptable == targets.acceptable,
                objective: reached.objective && asked.objective == targets.objective,
            },
            targets,
        }
    }

    /// The work left. Before its first report, a job has done nothing. If its reports do not give the
    /// steps done, the work left is unknown.
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

    /// The direction in which its loss improves.
    pub(super) fn direction(&self) -> Direction {
        let own = self.report.as_ref().map(|report| report.direction);
        self.spec.direction.or(own).unwrap_or_default()
    }

    /// Sets targets; those that are `None` stay unchanged.
    pub(super) fn order_targets(&mut self, targets: Targets) {
        self.ordered = over(targets, self.ordered);
    }

    /// The change that puts a pinned job at its share, if it is not there. `least` is the smallest valid
    /// share.
    pub(super) fn hold(&self, least: Share) -> Option<Change> {
        let pinned = self.pinned?;
        let share = if pinned < least { least } else { pinned };
        let off = (self.in_force.cap.get() - share.get()).abs() >= PIN_TOLERANCE;
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

/// `targets`, completed by `others` where they are not set.
fn over(targets: Targets, others: Targets) -> Targets {
    Targets {
        acceptable: targets.acceptable.or(others.acceptable),
        objective: targets.objective.or(others.objective),
        batch_latency: targets.batch_latency.or(others.batch_latency),
    }
}
