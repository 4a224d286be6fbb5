//! What stands below every policy and cannot be bypassed: from wanted shares to changes of limits.
//!
//! A policy's choice is clamped to what the job's owner and Docker allow, moved by at most one
//! step, raised where a guard says so, topped up by what others leave unused, and becomes a change
//! only when it is worth one. What the policy chose stays what it is: all this changes only what is
//! in force. A job that has gone silent keeps what it has: nobody is cut on the strength of figures
//! that are no longer true.
//!
//! The limiter works in two steps. [`Limiter::decided`] takes in a decision; [`Limiter::look`]
//! says what each job is to have now, and may be asked again and again between decisions, since
//! guards and loans cannot wait for the next one. Both are functions of what is seen and of the
//! state as of the moment before, so the same question at the same moment has the same answer.

mod canary;
mod change;
mod clamp;
mod enforcement;
mod fairness;
mod fill;
mod guards;
mod leftover;
mod seat;
mod settings;
mod slew;
mod switches;
mod verdict;
mod view;
mod why;

use serde::Serialize;

use crate::decision::Decision;
use crate::frame::Frame;
use crate::per_job::PerJob;
use crate::unit::{JobId, Share, count};
use clamp::Bounds;
use guards::{Look, Standing};
use leftover::Party;
use seat::{Account, Seat};
use verdict::{Choice, Verdict};

pub use canary::Canary;
pub(crate) use change::order;
pub use change::{Change, DEFAULT_WEIGHT, InForce, LEAST_CHANGE, Setting, WEIGHTS};
pub use clamp::{DEFAULT_FLOOR, LEAST_CPUS};
pub use enforcement::Enforcement;
pub use fairness::Fairness;
pub use settings::{LimiterOptions, LimiterSettings, SettingError};
pub use slew::Slew;
pub use switches::{Guard, Switches};
pub use view::View;
pub(crate) use view::presses;
pub use why::Why;

/// The rules of one node, and what they need to remember.
#[derive(Debug)]
pub struct Limiter {
    rules: Rules,
    /// How much of the node is held for jobs that are not judged here.
    reserved: f64,
    /// The moment that is judged.
    t: f64,
    jobs: PerJob<Seat>,
    /// How many times somebody was judged.
    round: u64,
    /// Whether the last look left everyone as the moment before had.
    still: bool,
    /// As of the moment before, and now.
    counted: Counters,
    counters: Counters,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    settings: LimiterSettings,
    /// [`LEAST_CPUS`] as a share of the node.
    least: f64,
}

/// How often the guards acted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Decisions for a job that were cut down to one step.
    pub slewed: u64,
    /// Jobs that were raised because they had fallen behind an equal share.
    pub raised: u64,
    /// Cuts that were undone.
    pub rolled_back: u64,
}

/// What a job is to have now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// Its share of the node.
    pub share: Share,
    /// Why.
    pub why: Why,
}

impl Limiter {
    /// The limiter of a node with `cpus` CPUs that nobody has set otherwise.
    pub fn new(cpus: f64) -> Self {
        let rules = Rules { settings: LimiterSettings::default(), least: clamp::least(cpus) };
        Self {
            rules,
            reserved: 0.0,
            t: f64::NEG_INFINITY,
            jobs: PerJob::new(),
            round: 0,
            still: false,
            counted: Counters::default(),
            counters: Counters::default(),
        }
    }

    /// The limiter of a node with `cpus` CPUs.
    pub fn with(cpus: f64, settings: LimiterSettings) -> Result<Self, SettingError> {
        settings.check()?;
        let default = Self::new(cpus);
        Ok(Self { rules: Rules { settings, ..default.rules }, ..default })
    }

    /// Goes by other settings from now on; returns those before.
    pub(crate) fn set(&mut self, new: LimiterSettings) -> Result<LimiterSettings, SettingError> {
        new.check()?;
        Ok(std::mem::replace(&mut self.rules.settings, new))
    }

    /// How often the guards acted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The guards that are on for a job with these switches and this word of its owner.
    pub fn guards(&self, switches: Switches, max_slowdown: Option<f64>) -> Vec<Guard> {
        switches.guards_on(max_slowdown, self.rules.settings)
    }

    /// The least share that Docker accepts.
    pub(crate) fn least(&self) -> Share {
        Share::nearest(self.rules.least)
    }

    /// From now on, so much of the node is held for jobs that are not judged here: nobody is lent
    /// of it, and it is no part of an equal share.
    pub(crate) fn reserve(&mut self, share: f64) {
        self.reserved = share.clamp(0.0, 1.0);
    }

    /// Whether looks between decisions can change anything: only where shares are lent, and only
    /// while somebody is limited.
    pub(crate) fn lends(&self) -> bool {
        let lends = self.rules.settings.enforcement == Enforcement::QuotaLeftover;
        lends && self.judged().any(|account| account.verdict.share < 1.0)
    }

    /// Whether the last look left everyone as the moment before had: from the same figures, the
    /// next one comes to the same.
    pub(crate) fn is_still(&self) -> bool {
        self.still
    }

    /// What the limiter makes of a recorded decision. Frames come in the order of their time.
    pub fn effective(&mut self, frame: &Frame, decision: &Decision) -> PerJob<Effective> {
        let views: Vec<View> = frame.jobs.iter().map(View::from).collect();
        self.decided(frame.t, &views, &decision.limits, &decision.waiting);
        self.look(frame.t, &views)
    }

    /// Takes in what the policy chose at `t` seconds for the jobs that run. A job that it did not
    /// name keeps its last choice. `waiting`, in order, wait on purpose: no floor but their owners' and
    /// Docker's raises them.
    pub fn decided(&mut self, t: f64, views: &[View], chosen: &PerJob<Share>, waiting: &[JobId]) {
        let again = !self.turn_to(t);
        for view in views {
            let seat = self.jobs.get_or_default(&view.job);
            let last = seat.before.map(|before| before.verdict);
            // A job that this moment is the first for starts from the same share when asked twice.
            let first = seat.now.filter(|_| again).map(|judged| judged.verdict.from);
            let from = last.map(|last| last.share).or(first).unwrap_or(view.in_force.get());
            let chosen = chosen.get(&view.job).map(|chosen| chosen.get());
            let chosen = chosen.or(last.map(|last| last.chosen)).unwrap_or(1.0);
            let waits = waiting.binary_search(&view.job).is_ok();
            let verdict = Verdict::new(&self.rules, view, Choice { from, chosen, waits });
            let guards = seat.before.map(|before| before.guards).unwrap_or_default();
            seat.judge(self.round, Account { verdict, guards });
        }
        self.leave_out();
        let slewed: u64 = self.judged().map(|account| u64::from(account.verdict.is_slewed())).sum();
        self.counters.slewed = self.counted.slewed + slewed;
    }

    /// What each job is to have at `t` seconds. A job that no decision has seen is left alone.
    pub fn look(&mut self, t: f64, views: &[View]) -> PerJob<Effective> {
        self.turn_to(t);
        let look = Look { t, equal: (1.0 - self.reserved) / count(views.len()) };
        let mut counters = Counters { slewed: self.counters.slewed, ..self.counted };
        let mut seen = Vec::with_capacity(views.len());
        for view in views {
            let Some(seat) = self.jobs.get(&view.job) else { continue };
            let Some(Account { verdict, .. }) = seat.now else { continue };
            let before = seat.before.map(|before| before.guards).unwrap_or_default();
            let standing = before.look(&self.rules, look, view, &verdict);
            standing.guards.count_since(&before, &mut counters);
            seen.push(Seen { view, verdict, standing });
        }
        self.counters = counters;
        seen.sort_by(|a, b| a.view.job.cmp(&b.view.job));
        self.settle(seen)
    }

    /// The changes that are worth a write, in the order in which to write them.
    pub fn changes(
        &self,
        effective: &PerJob<Effective>,
        in_force: impl Fn(&JobId) -> Option<InForce>,
    ) -> Vec<Change> {
        let jobs = effective.len();
        let change = |(id, effective): (&JobId, &Effective)| {
            let in_force = in_force(id)?;
            let (from, to) = match self.rules.settings.enforcement {
                Enforcement::Shares => {
                    (Setting::Weight(in_force.weight), Setting::weight(effective.share, jobs))
                }
                Enforcement::Quota | Enforcement::QuotaLeftover => {
                    (Setting::Cap(in_force.cap), Setting::Cap(effective.share))
                }
            };
            from.is_far_from(to, jobs).then(|| Change {
                job: id.clone(),
                from,
                to,
                why: effective.why,
            })
        };
        let mut changes: Vec<Change> = effective.iter().filter_map(change).collect();
        order(&mut changes);
        changes
    }

    /// Forgets a job that is gone: back again, it is new.
    pub fn forget(&mut self, job: &JobId) {
        self.jobs.remove(job);
    }

    /// All that were judged, as they stand.
    fn judged(&self) -> impl Iterator<Item = Account> {
        self.jobs.values().filter_map(|seat| seat.now)
    }

    /// Begins to judge anew at `t`; returns whether that is a later moment. Then all stand as they
    /// did before; otherwise as they were judged.
    fn turn_to(&mut self, t: f64) -> bool {
        self.round += 1;
        let later = t > self.t;
        if later {
            self.t = t;
            self.counted = self.counters;
            self.jobs.values_mut().for_each(Seat::turn);
        }
        later
    }

    /// Whoever was not judged in this round is gone: of this moment at once, and with the next one
    /// altogether.
    fn leave_out(&mut self) {
        let round = self.round;
        self.jobs.retain(|seat| seat.end(round));
    }

    /// Lends what is left over, where that is wanted, and remembers how everyone stands.
    fn settle(&mut self, seen: Vec<Seen<'_>>) -> PerJob<Effective> {
        let mut lent = Vec::new();
        if self.rules.settings.enforcement == Enforcement::QuotaLeftover {
            let parties: Vec<Party> = seen.iter().map(Seen::party).collect();
            lent = leftover::lend(&parties, 1.0 - self.reserved);
        }
        let mut lent = lent.into_iter();
        let mut effective = Vec::with_capacity(seen.len());
        self.still = true;
        for Seen { view, verdict, standing } in seen {
            let Standing { own, why, mut guards, .. } = standing;
            let (share, appetite) = lent.next().unwrap_or((own, guards.appetite));
            guards.appetite = appetite;
            let why = if share > own { Why::Lent { own, lent: share - own } } else { why };
            effective.push((view.job.clone(), Effective { share: Share::nearest(share), why }));
            if let Some(seat) = self.jobs.get_mut(&view.job) {
                self.still &= seat.before.is_some_and(|before| before.guards == guards);
                seat.judge(self.round, Account { verdict, guards });
            }
        }
        self.leave_out();
        effective.into_iter().collect()
    }
}

impl Rules {
    fn bounds(&self, view: &View, waits: bool) -> Bounds {
        Bounds::of(view, self.least, waits)
    }
}

/// One job in the middle of a look.
struct Seen<'a> {
    view: &'a View,
    verdict: Verdict,
    standing: Standing,
}

impl Seen<'_> {
    fn party(&self) -> Party {
        Party {
            usage: self.view.usage,
            pressed: self.view.pressed,
            own: self.standing.own,
            cut: self.standing.cut,
            ceiling: self.standing.ceiling,
            weight: self.verdict.chosen * self.view.weight,
            appetite: self.standing.guards.appetite,
        }
    }
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod tests;
