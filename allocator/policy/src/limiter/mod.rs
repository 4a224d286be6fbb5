//! The limiter: it turns the shares that a policy chooses into changes of limits. No policy bypasses it.
//!
//! A policy's choice is clamped to the limits of the job's owner and Docker, then bounded to one step.
//! Guards may raise it, and unused CPU of other jobs is lent on top. A change is written only if it is
//! large enough. The policy's own choice stays as it is: only the limit in force differs. A silent job
//! keeps its limit, since outdated figures must not lead to a cut.
//!
//! The limiter works in two steps. [`Limiter::decided`] records a decision. [`Limiter::tick`] returns
//! the share of each job. It is also called between decisions, since guards and loans cannot wait for
//! the next one. Both depend only on the views and on the state before the current moment. So repeated
//! calls at the same moment give the same answer.
//!
//! Changes below 1 % of the node are not written, unless they are at least 4 % of a small limit.
//! Decreases come before increases. Owners can switch each guard for one job (`switches`).

mod bounds;
mod canary;
mod change;
mod clamp;
mod enforcement;
mod fairness;
mod fill;
mod guards;
mod job_limits;
mod lending;
mod settings;
mod slew;
mod switches;
mod view;
mod weights;
mod why;

use serde::Serialize;

use crate::decision::Decision;
use crate::frame::Frame;
use crate::per_job::PerJob;
use crate::unit::{JobId, Share, count};
use bounds::Bounds;
use clamp::{Choice, Clamp};
use guards::{GuardState, Tick};
use job_limits::{Evaluation, JobLimits};
use lending::Borrower;

pub use bounds::{DEFAULT_FLOOR, MIN_CPUS};
pub use canary::Canary;
pub(crate) use change::order;
pub use change::{Change, DEFAULT_WEIGHT, InForce, MIN_CHANGE, Setting, WEIGHTS};
pub use enforcement::Enforcement;
pub use fairness::Fairness;
pub use settings::{LimiterOptions, LimiterSettings, SettingError};
pub use slew::Slew;
pub use switches::{Guard, Switches};
pub use view::View;
pub(crate) use view::is_pressed;
pub use why::Why;

/// The limiter of one node, with its state.
#[derive(Debug)]
pub struct Limiter {
    rules: Rules,
    /// The share of the node that is reserved for pinned jobs.
    reserved: f64,
    /// The weight that jobs outside of the limiter have too little, or too much if negative.
    spare_weight: i64,
    /// The current moment.
    t: f64,
    jobs: PerJob<JobLimits>,
    /// The number of calls so far.
    round: u64,
    /// Whether the last tick changed the state of no job.
    unchanged: bool,
    /// The counters before the current moment, and now.
    counters_before: Counters,
    counters: Counters,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    settings: LimiterSettings,
    /// [`MIN_CPUS`] as a share of the node.
    least: f64,
}

/// How often the guards acted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Decisions for a job that were limited to one step.
    pub slewed: u64,
    /// Jobs that were raised because they had fallen behind an equal share.
    pub raised: u64,
    /// Cuts that were undone.
    pub rolled_back: u64,
}

/// The share that a job is to have now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// Its share of the node.
    pub share: Share,
    /// Why.
    pub why: Why,
}

impl Limiter {
    /// The limiter of a node with `cpus` CPUs and the default settings.
    pub fn new(cpus: f64) -> Self {
        let rules = Rules { settings: LimiterSettings::default(), least: bounds::least(cpus) };
        Self {
            rules,
            reserved: 0.0,
            spare_weight: 0,
            t: f64::NEG_INFINITY,
            jobs: PerJob::new(),
            round: 0,
            unchanged: false,
            counters_before: Counters::default(),
            counters: Counters::default(),
        }
    }

    /// The limiter of a node with `cpus` CPUs and these settings.
    pub fn with(cpus: f64, settings: LimiterSettings) -> Result<Self, SettingError> {
        settings.check()?;
        let default = Self::new(cpus);
        Ok(Self { rules: Rules { settings, ..default.rules }, ..default })
    }

    /// Replaces the settings; returns the old ones.
    pub(crate) fn set(&mut self, new: LimiterSettings) -> Result<LimiterSettings, SettingError> {
        new.check()?;
        Ok(std::mem::replace(&mut self.rules.settings, new))
    }

    /// How often the guards acted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The guards that are on for a job with these switches and this slowdown allowed by its owner.
    pub fn guards(&self, switches: Switches, max_slowdown: Option<f64>) -> Vec<Guard> {
        switches.guards_on(max_slowdown, self.rules.settings)
    }

    /// The smallest share that Docker accepts.
    pub(crate) fn least(&self) -> Share {
        Share::nearest(self.rules.least)
    }

    /// Reserves a share of the node for jobs outside of the limiter. It is not lent, and it does not count
    /// for equal shares.
    pub(crate) fn reserve(&mut self, share: f64) {
        self.reserved = share.clamp(0.0, 1.0);
    }

    /// The difference between the weights that the owners of jobs outside of the limiter gave them, and
    /// the weights that these jobs have. The other jobs make up for it.
    pub(crate) fn balance(&mut self, spare_weight: i64) {
        self.spare_weight = spare_weight;
    }

    /// Whether ticks between decisions can change loans: only where shares are lent and a job is limited.
    pub(crate) fn lends(&self) -> bool {
        let lends = self.rules.settings.enforcement == Enforcement::QuotaLeftover;
        lends && self.evaluations().any(|evaluation| evaluation.clamp.share < 1.0)
    }

    /// Whether the last tick changed the state of no job. Then a tick with the same figures changes
    /// nothing.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.unchanged
    }

    /// The shares that result from a recorded decision. Frames must be in the order of their time.
    pub fn effective(&mut self, frame: &Frame, decision: &Decision) -> PerJob<Effective> {
        let views: Vec<View> = frame.jobs.iter().map(View::from).collect();
        self.decided(frame.t, &views, &decision.limits, &decision.waiting);
        self.tick(frame.t, &views)
    }

    /// Records the policy's choices at `t` seconds for the running jobs. A job without a choice keeps its
    /// last one. `waiting`, in the order of ids, are jobs that wait on purpose: only their owners' and
    /// Docker's minimum applies to them.
    pub fn decided(&mut self, t: f64, views: &[View], chosen: &PerJob<Share>, waiting: &[JobId]) {
        let again = !self.advance_to(t);
        for view in views {
            let limits = self.jobs.get_or_default(&view.job);
            let last = limits.before.map(|before| before.clamp);
            // At its first moment, a job starts from the same share when the call is repeated.
            let first = limits.now.filter(|_| again).map(|evaluation| evaluation.clamp.from);
            let from = last.map(|last| last.share).or(first).unwrap_or(view.in_force.get());
            let chosen = chosen.get(&view.job).map(|chosen| chosen.get());
            let chosen = chosen.or(last.map(|last| last.chosen)).unwrap_or(1.0);
            let waits = waiting.binary_search(&view.job).is_ok();
            let clamp = Clamp::new(&self.rules, view, Choice { from, chosen, waits });
            let guards = limits.before.map(|before| before.guards).unwrap_or_default();
            limits.store(self.round, Evaluation { clamp, guards });
        }
        self.drop_absent();
        let slewed: u64 =
            self.evaluations().map(|evaluation| u64::from(evaluation.clamp.is_slewed())).sum();
        self.counters.slewed = self.counters_before.slewed + slewed;
    }

    /// The share of each job at `t` seconds. A job without a decision is left out.
    pub fn tick(&mut self, t: f64, views: &[View]) -> PerJob<Effective> {
        self.advance_to(t);
        let tick = Tick { t, equal: (1.0 - self.reserved) / count(views.len()) };
        let mut counters = Counters { slewed: self.counters.slewed, ..self.counters_before };
        let mut seen = Vec::with_capacity(views.len());
        for view in views {
            let Some(limits) = self.jobs.get(&view.job) else { continue };
            let Some(Evaluation { clamp, .. }) = limits.now else { continue };
            let before = limits.before.map(|before| before.guards).unwrap_or_default();
            let state = before.tick(&self.rules, tick, view, &clamp);
            state.guards.count_since(&before, &mut counters);
            seen.push(TickedJob { view, clamp, state });
        }
        self.counters = counters;
        seen.sort_by(|a, b| a.view.job.cmp(&b.view.job));
        self.finish_tick(seen)
    }

    /// The changes that are large enough to write, in the order in which to write them. Weights are
    /// written together, so that their sum stays the same.
    pub fn changes(
        &self,
        effective: &PerJob<Effective>,
        in_force: impl Fn(&JobId) -> Option<InForce>,
    ) -> Vec<Change> {
        let known = effective.iter().filter_map(|(job, of)| Some((job, of, in_force(job)?)));
        let known: Vec<(&JobId, &Effective, InForce)> = known.collect();
        let own: u64 = known.iter().map(|(_, _, in_force)| in_force.own_weight).sum();
        let total = own.saturating_add_signed(self.spare_weight);
        let settings: Vec<(Setting, Setting)> = match self.rules.settings.enforcement {
            Enforcement::Shares => {
                let shares: Vec<f64> = known.iter().map(|(_, of, _)| of.share.get()).collect();
                let weights = weights::divide(total, &shares);
                let before = known.iter().map(|(_, _, in_force)| Setting::Weight(in_force.weight));
                before.zip(weights.into_iter().map(Setting::Weight)).collect()
            }
            Enforcement::Quota | Enforcement::QuotaLeftover => {
                let cap = |(_, of, in_force): &(&JobId, &Effective, InForce)| {
                    (Setting::Cap(in_force.cap), Setting::Cap(of.share))
                };
                known.iter().map(cap).collect()
            }
        };
        let is_worth = |(from, to): &(Setting, Setting)| from.is_worth_changing_to(*to, total);
        let together =
            self.rules.settings.enforcement == Enforcement::Shares && settings.iter().any(is_worth);
        let change = |((job, of, _), setting): (&(&JobId, &Effective, InForce), _)| {
            let (from, to): (Setting, Setting) = setting;
            let writes = (together && from != to) || is_worth(&setting);
            writes.then(|| Change { job: JobId::clone(job), from, to, why: of.why })
        };
        let mut changes: Vec<Change> = known.iter().zip(settings).filter_map(change).collect();
        order(&mut changes);
        changes
    }

    /// Forgets a job that is gone. If it returns, it counts as new.
    pub fn forget(&mut self, job: &JobId) {
        self.jobs.remove(job);
    }

    /// The current evaluations of all jobs.
    fn evaluations(&self) -> impl Iterator<Item = Evaluation> {
        self.jobs.values().filter_map(|limits| limits.now)
    }

    /// Starts a call at `t`; returns whether that is a later moment. A later moment starts from the
    /// current evaluations. A repeated one starts from those before it.
    fn advance_to(&mut self, t: f64) -> bool {
        self.round += 1;
        let later = t > self.t;
        if later {
            self.t = t;
            self.counters_before = self.counters;
            self.jobs.values_mut().for_each(JobLimits::advance);
        }
        later
    }

    /// Drops jobs that this call did not evaluate: their current evaluation now, and their state with the
    /// next moment.
    fn drop_absent(&mut self) {
        let round = self.round;
        self.jobs.retain(|limits| limits.end(round));
    }

    /// Lends unused CPU, if enabled, and stores the state of every job.
    fn finish_tick(&mut self, seen: Vec<TickedJob<'_>>) -> PerJob<Effective> {
        let mut lent = Vec::new();
        if self.rules.settings.enforcement == Enforcement::QuotaLeftover {
            let borrowers: Vec<Borrower> = seen.iter().map(TickedJob::borrower).collect();
            lent = lending::lend(&borrowers, 1.0 - self.reserved);
        }
        let mut lent = lent.into_iter();
        let mut effective = Vec::with_capacity(seen.len());
        self.unchanged = true;
        for TickedJob { view, clamp, state } in seen {
            let GuardState { own, why, mut guards, .. } = state;
            let (share, demand) = lent.next().unwrap_or((own, guards.demand));
            guards.demand = demand;
            let why = if share > own { Why::Lent { own, lent: share - own } } else { why };
            effective.push((view.job.clone(), Effective { share: Share::nearest(share), why }));
            if let Some(limits) = self.jobs.get_mut(&view.job) {
                self.unchanged &= limits.before.is_some_and(|before| before.guards == guards);
                limits.store(self.round, Evaluation { clamp, guards });
            }
        }
        self.drop_absent();
        effective.into_iter().collect()
    }
}

impl Rules {
    fn bounds(&self, view: &View, waits: bool) -> Bounds {
        Bounds::new(view, self.least, waits)
    }
}

/// One job in the middle of a tick.
struct TickedJob<'a> {
    view: &'a View,
    clamp: Clamp,
    state: GuardState,
}

impl TickedJob<'_> {
    fn borrower(&self) -> Borrower {
        Borrower {
            usage: self.view.usage,
            pressed: self.view.pressed,
            own: self.state.own,
            cut: self.state.cut,
            ceiling: self.state.ceiling,
            weight: self.clamp.chosen * self.view.weight,
            demand: self.state.guards.demand,
        }
    }
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod tests;
