//! One job, from its first frame to its last.

use super::cap::{Cap, Served};
use super::curve::{Curve, Reach};
use super::ending::Ending;
use super::newcomer::{Newcomer, Stage};
use super::order::SMALL;
use super::received::Received;
use super::row::Milestones;
use super::service::Service;
use super::settings::Settings;
use super::speed::LEAST_WINDOW;
use super::work::Work;
use crate::frame::Job;
use crate::unit::saturate;

/// Weights further apart than this factor from 1 make no difference.
const LARGEST_WEIGHT: f64 = 1e4;
/// A target farther than so many times the service so far, and than the job's own total, is never reached.
const FARTHEST: f64 = 20.0;
/// An acceptable loss that is not forecast yet is taken to come after this part of the work left.
const EARLY_PART: f64 = 0.2;
/// A job that says that it has reached its objective is taken at its word until it has received this part more.
const CONFIRMATION: f64 = 0.1;
/// A job that goes on after its objective gains little by reaching it soon: this part of what an acceptable
/// loss counts.
const OBJECTIVE: f64 = 0.1;
/// What is left of the fall to come at the milestones of `learn`.
const FALLS: [f64; 3] = [0.5, 0.25, 0.125];

/// What is kept of one job.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is so or not, by itself")]
pub(super) struct Member {
    /// When it was first seen.
    pub(super) since: f64,
    /// The service that it would have under equal sharing.
    pub(super) fair: f64,
    /// What it had received before it was first seen.
    begun_with: f64,
    pub(super) weight: f64,
    /// The most that its owner allows.
    pub(super) most: f64,
    pub(super) received: Received,
    pub(super) cap: Cap,
    pub(super) work: Work,
    pub(super) curve: Curve,
    pub(super) newcomer: Newcomer,
    pub(super) ending: Ending,
    /// What it had received when it said that it had reached its objective, while no loss bears that out.
    claimed_at: Option<f64>,
    /// Whether a ghost has taken its place in the virtual system.
    pub(super) is_over: bool,
    /// The target for its batches and what was measured of them, if it is a service.
    pub(super) service: Option<(f64, Service)>,
    /// What the last run gave it of the node: 0 if it waits.
    pub(super) share: f64,
    /// Whether the last run served it.
    pub(super) served: bool,
    /// Whether the last run had it wait.
    pub(super) waited: bool,
    /// Whether it used much of the node in the last window, in which nothing limited it.
    pub(super) used_much: bool,
    /// The work left, where the size is known.
    pub(super) left: Option<f64>,
    /// The same by its total alone.
    by_total: Option<f64>,
    /// What it used since the frame before.
    pub(super) usage: Option<f64>,
    /// Its limit in force.
    pub(super) limit: f64,
}

/// What a frame means to every job of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) t: f64,
    pub(super) seconds: f64,
    pub(super) cpus: Option<f64>,
}

impl Member {
    /// A job at its first frame.
    pub(super) fn new(job: &Job, window: Window, settings: &Settings) -> Self {
        let received = Received::new(counter(job, window));
        let mut member = Self {
            since: window.t,
            fair: received.total(),
            begun_with: received.total(),
            weight: 1.0,
            most: 1.0,
            received,
            cap: Cap::new(),
            work: Work::default(),
            curve: Curve::default(),
            newcomer: Newcomer::new(window.t),
            ending: Ending::default(),
            claimed_at: None,
            is_over: false,
            service: None,
            share: 0.0,
            served: false,
            waited: false,
            used_much: false,
            left: None,
            by_total: None,
            usage: None,
            limit: 1.0,
        };
        member.read(job, window.cpus, settings);
        member
    }

    /// Takes in another frame. If it was served since the frame before, `free` is what all other limits left of
    /// the node, and the unused part of it.
    pub(super) fn take(
        &mut self,
        job: &Job,
        window: Window,
        free: Option<(f64, f64)>,
        settings: &Settings,
    ) {
        let stepped = self.work.has_stepped();
        self.usage = job.usage.cpu.filter(|usage| usage.is_finite() && *usage >= 0.0);
        let estimate = self.usage.unwrap_or(0.0) * window.seconds;
        // What it had before it was counted, it had under equal sharing, too.
        let earlier = self.received.take(counter(job, window), estimate);
        self.fair += earlier;
        self.begun_with += earlier;
        let was_new = self.newcomer.is_new();
        self.read(job, window.cpus, settings);
        let Window { t, seconds, .. } = window;
        let limit = self.limit;
        let served = free.map(|(free, idle)| Served { t, seconds, limit, free, idle, stepped });
        // What its owner allows needs no measurement.
        let open =
            served.zip(self.usage).is_some_and(|(served, usage)| served.could_use_more(usage))
                || self.is_capped(settings);
        self.used_much = served.is_some_and(|served| served.is_unlimited())
            && self.usage.is_some_and(|usage| usage >= SMALL);
        self.cap.take(self.usage, served, settings.whole);
        self.newcomer.take(Stage {
            t,
            was_open: open,
            used_most: seconds >= LEAST_WINDOW && self.usage.is_some_and(|of| of > settings.whole),
            begun: self.used() >= settings.probe,
            stepped: self.work.has_stepped(),
            measured: self.work.per_step().is_some() || !self.work.states_total(),
        });
        if was_new {
            // Before its cap was known, the virtual node gave it more than it can use.
            let most = self.begun_with + self.can_use() * (t - self.since);
            self.fair = self.fair.min(most.max(self.begun_with));
        }
    }

    /// What first and later frames say alike.
    fn read(&mut self, job: &Job, cpus: Option<f64>, settings: &Settings) {
        let positive = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0);
        let weight = positive(job.weight).unwrap_or(1.0);
        self.weight = weight.clamp(1.0 / LARGEST_WEIGHT, LARGEST_WEIGHT);
        self.most = positive(job.limit.max).unwrap_or(1.0).min(1.0);
        self.limit = positive(job.limit.applied).or(positive(job.limit.cpu)).unwrap_or(1.0);
        // Between the step and this frame it received this.
        let then = node_seconds(job.step_cpu_seconds, cpus);
        let since =
            node_seconds(job.cpu_seconds, cpus).zip(then).map_or(0.0, |(now, then)| now - then);
        let total = job.expected_steps.filter(|steps| *steps > 0).or(job.total_steps);
        let by_then = saturate(self.used() - since.max(0.0)).max(0.0);
        self.work.take((job.step, by_then), total, self.waited);
        let has_targets = job.targets.acceptable.is_some() || job.targets.objective.is_some();
        if let Some(step) = job.step.filter(|_| has_targets || settings.learn > 0.0) {
            self.curve.take(step, job.loss, job.direction);
        }
        self.ending.take(job);
        let latency = positive(job.targets.batch_latency);
        match (latency, &mut self.service) {
            (Some(target), Some((known, service))) => {
                *known = target;
                service.take(job.usage.cpu, job.batch_latency);
            }
            (Some(target), none) => *none = Some((target, Service::default())),
            (None, known) => {
                if known.take().is_some() {
                    // A service had no part in the sharing.
                    self.fair = self.used();
                }
            }
        }
    }

    /// The service that it has received.
    pub(super) fn used(&self) -> f64 {
        self.received.total()
    }

    /// The most of the node that it can use.
    pub(super) fn can_use(&self) -> f64 {
        self.cap.within(self.most)
    }

    /// Whether its owner allows it less than what counts as the whole node.
    pub(super) fn is_capped(&self, settings: &Settings) -> bool {
        self.most < settings.whole
    }

    /// The part of its fair service by which it may be behind, where its size is unknown: so much of what an
    /// equal share gives it in the time that it is here. `equal` is that share of the node.
    pub(super) fn may_lag(&self, equal: f64, t: f64, settings: &Settings) -> f64 {
        // Of a job that is to tell its size soon, nothing is left open.
        if self.work.states_total() || self.fair <= 0.0 {
            return 0.0;
        }
        settings.theta * (equal * (t - self.since).max(0.0) / self.fair).min(1.0)
    }

    /// Whether it takes part in the sharing.
    pub(super) fn trains(&self) -> bool {
        self.service.is_none() && self.ending.ended().is_none()
    }

    /// What is left of it in the virtual system: infinite if its size is unknown.
    pub(super) fn virtual_left(&self) -> f64 {
        self.left.map_or(f64::INFINITY, |left| (self.used() + left - self.fair).max(0.0))
    }

    /// Works out what is left of its work, by its total or by the way to an objective that ends it.
    pub(super) fn reckon(&mut self, job: &Job, settings: &Settings) {
        let used = self.used();
        let by_total = self.work.left(used, settings.believes());
        self.by_total = by_total;
        let may_end = job.may_terminate.unwrap_or(true) && !self.work.is_doubted();
        let by_loss = if may_end { self.to_objective(job) } else { None };
        let by_loss = if may_end { self.until_confirmed().or(by_loss) } else { by_loss };
        self.left = match (by_total, by_loss) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// The work until a loss bears out that it has reached its objective, as it says: a part of what it had received
    /// then. After that, its word counts no more.
    fn until_confirmed(&mut self) -> Option<f64> {
        if !self.ending.is_claimed() {
            self.claimed_at = None;
            return None;
        }
        let used = self.used();
        let claimed_at = *self.claimed_at.get_or_insert(used);
        Some(claimed_at * (1.0 + CONFIRMATION) - used).filter(|left| *left > 0.0)
    }

    /// The work until its objective, if that is forecast.
    fn to_objective(&self, job: &Job) -> Option<f64> {
        let target = job.targets.objective.filter(|target| target.is_finite())?;
        self.work_of(self.reach(job, job.steps_to_objective, target))
    }

    fn reach(&self, job: &Job, own: Option<f64>, target: f64) -> Reach {
        match own.filter(|steps| steps.is_finite() && *steps >= 0.0) {
            Some(steps) => Reach::Steps(steps),
            None => self.curve.reach(target, job.direction),
        }
    }

    fn work_of(&self, reach: Reach) -> Option<f64> {
        let Reach::Steps(steps) = reach else { return None };
        let farthest = (FARTHEST * self.used()).max(self.by_total.unwrap_or(0.0));
        Some(steps * self.work.per_step()?).filter(|work| *work <= farthest)
    }

    /// What its work leads to before its end.
    pub(super) fn milestones(&self, job: &Job, left: f64, settings: &Settings) -> Milestones {
        let known = |target: Option<f64>| target.filter(|target| target.is_finite());
        let acceptable = known(job.targets.acceptable).filter(|_| !job.reached.acceptable);
        let acceptable = acceptable.and_then(|target| {
            let reach = self.reach(job, job.steps_to_acceptable, target);
            match reach {
                Reach::Unknown => Some(EARLY_PART * left),
                Reach::Never | Reach::Steps(_) => self.work_of(reach),
            }
        });
        let stays = !job.may_terminate.unwrap_or(true) && !job.reached.objective;
        let objective = if stays { self.to_objective(job) } else { None };
        let learnt = |part| {
            let steps =
                if settings.learn > 0.0 { self.curve.until_left(part)? } else { return None };
            self.work_of(Reach::Steps(steps))
        };
        let [half, quarter, eighth] = FALLS.map(learnt);
        let (early, learn) = (settings.early, settings.learn);
        let all = [
            (acceptable, early),
            (objective, OBJECTIVE * early),
            (half, learn),
            (quarter, learn),
            (eighth, learn),
        ];
        all.map(|(work, weight)| Some((work.filter(|work| *work < left)?, weight)))
    }
}

/// The service by its counter.
fn counter(job: &Job, window: Window) -> Option<f64> {
    node_seconds(job.cpu_seconds, window.cpus)
}

fn node_seconds(cpu_seconds: Option<f64>, cpus: Option<f64>) -> Option<f64> {
    let cpus = cpus.filter(|cpus| cpus.is_finite() && *cpus > 0.0)?;
    Some(cpu_seconds? / cpus)
}
