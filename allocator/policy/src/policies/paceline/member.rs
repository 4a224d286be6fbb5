//! The state of one job, from its first frame to its last.

use super::cap::{self, Cap, Served};
use super::curve::{Curve, Reach};
use super::ending::Ending;
use super::ghost::Ghost;
use super::newcomer::{Newcomer, Stage};
use super::received::Received;
use super::row::{self, Row};
use super::service::Service;
use super::settings::Settings;
use super::sharing::{Outcome, Participant};
use super::speed::MIN_WINDOW;
use super::work::Work;
use crate::frame::Job;
use crate::unit::saturate;

/// Weights are limited to this factor above and below 1.
const MAX_WEIGHT: f64 = 1e4;
/// A target counts as unreachable if its work exceeds this multiple of the service so far, and the job's
/// own total.
const MAX_WORK_RATIO: f64 = 20.0;
/// Without a forecast, an acceptable loss is assumed after this part of the work left.
const EARLY_PART: f64 = 0.2;
/// A job that reports its objective as reached is believed until it has received this part more service.
const CONFIRMATION: f64 = 0.1;
/// The value of reaching the objective for a job that continues after it, relative to an acceptable loss.
const OBJECTIVE: f64 = 0.1;
/// The parts of the remaining fall that are left at the milestones of `learn`.
const FALLS: [f64; 3] = [0.5, 0.25, 0.125];

/// The state of one job.
#[derive(Debug)]
pub(super) struct Member {
    /// When it was first seen.
    pub(super) since: f64,
    /// The service that it would have received under equal sharing, in node-seconds.
    pub(super) fair: f64,
    /// The service received before it was first seen.
    begun_with: f64,
    pub(super) weight: f64,
    /// The largest share that its owner allows.
    pub(super) most: f64,
    pub(super) received: Received,
    pub(super) cap: Cap,
    pub(super) work: Work,
    pub(super) curve: Curve,
    pub(super) newcomer: Newcomer,
    pub(super) ending: Ending,
    /// The service received when it reported its objective as reached, while no loss confirms that.
    claimed_at: Option<f64>,
    /// Whether a ghost has taken its place in the virtual system.
    pub(super) is_over: bool,
    /// The target for its batches and their measurements, if it is a service.
    pub(super) service: Option<Box<(f64, Service)>>,
    /// The share that the last run gave it; 0 if it waits.
    pub(super) share: f64,
    /// Whether the last run served it.
    pub(super) served: bool,
    /// Whether the last run made it wait.
    pub(super) waited: bool,
    /// Its usage in the last window, if it had no limit.
    pub(super) open_use: f64,
    /// The work left, where the size is known.
    pub(super) left: Option<f64>,
    /// The work left by its total alone.
    by_total: Option<f64>,
    /// Its usage since the previous frame.
    pub(super) usage: Option<f64>,
    /// Its limit in force.
    pub(super) limit: f64,
}

/// The values of a frame that all jobs share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) t: f64,
    pub(super) seconds: f64,
    /// The CPUs of the node, if they are known.
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
            open_use: 0.0,
            left: None,
            by_total: None,
            usage: None,
            limit: 1.0,
        };
        member.read(job, window.cpus, settings);
        member
    }

    /// Records another frame. If the job was served since the previous frame, `free` is the share that all other
    /// limits left, and the idle share of the node.
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
        // Service from before the measurements counts under equal sharing, too.
        let earlier = self.received.take(counter(job, window), estimate);
        self.fair += earlier;
        self.begun_with += earlier;
        let was_new = self.newcomer.is_new();
        self.read(job, window.cpus, settings);
        let Window { t, seconds, .. } = window;
        let (limit, most, whole) = (self.limit, self.most, self.whole(settings));
        let served =
            free.map(|(free, idle)| Served { t, seconds, limit, most, free, idle, stepped });
        // A cap set by its owner needs no measurement.
        let open =
            served.zip(self.usage).is_some_and(|(served, usage)| served.could_use_more(usage))
                || self.is_capped(settings);
        let was_open = served.is_some_and(|served| served.is_unlimited());
        self.open_use = self.usage.filter(|_| was_open).unwrap_or(0.0);
        self.cap.take(self.usage, served, whole);
        self.newcomer.take(Stage {
            t,
            was_open: open,
            used_most: seconds >= MIN_WINDOW && self.usage.is_some_and(|of| of > whole),
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

    /// Records the values that are read in first and later frames alike.
    fn read(&mut self, job: &Job, cpus: Option<f64>, settings: &Settings) {
        let weight = positive(job.weight).unwrap_or(1.0);
        self.weight = weight.clamp(1.0 / MAX_WEIGHT, MAX_WEIGHT);
        let most = positive(job.limit.max).unwrap_or(1.0).min(1.0);
        if most.total_cmp(&self.most).is_ne() {
            self.cap.measure_again();
        }
        self.most = most;
        self.limit = positive(job.limit.applied).or(positive(job.limit.cpu)).unwrap_or(1.0);
        // The service received between the step and this frame.
        let since = match node_seconds(job.step_cpu_seconds, cpus) {
            Some(then) => node_seconds(job.cpu_seconds, cpus).map_or(0.0, |now| now - then),
            None => 0.0,
        };
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
            (Some(target), Some(known)) => {
                known.0 = target;
                known.1.take(job.usage.cpu, job.batch_latency);
            }
            (Some(target), none) => *none = Some(Box::new((target, Service::default()))),
            (None, known) => {
                if known.take().is_some() {
                    // A service did not take part in the sharing.
                    self.fair = self.used();
                }
            }
        }
    }

    /// The service that it has received, in node-seconds.
    pub(super) fn used(&self) -> f64 {
        self.received.total()
    }

    /// The largest share of the node that it can use.
    pub(super) fn can_use(&self) -> f64 {
        self.cap.within(self.most)
    }

    /// Whether its owner's maximum is below what counts as the whole node.
    pub(super) fn is_capped(&self, settings: &Settings) -> bool {
        self.most < settings.whole
    }

    /// The usage above which it can use all that it may. A job that its owner's maximum holds back cannot show
    /// that it can use the whole node.
    fn whole(&self, settings: &Settings) -> f64 {
        if self.most < 1.0 { settings.whole.min(cap::USES_UP * self.most) } else { settings.whole }
    }

    /// The ghost that takes its place in the virtual system once it has reached its objective.
    pub(super) fn leaves(&mut self) -> Option<Ghost> {
        if self.is_over || self.ending.ended().is_none() {
            return None;
        }
        let ghost = Ghost::from_member(self, 0.0);
        self.is_over = true;
        ghost
    }

    /// Its values in a run at the time `t`, apart from those that depend on other jobs.
    pub(super) fn row(&self, at: usize, job: &Job, t: f64, settings: &Settings) -> Row {
        let used = self.used();
        let guess = self.left.unwrap_or(used.max(settings.prior));
        let (density, aim) = self.density(job, guess, settings);
        Row {
            member: at,
            weight: self.weight,
            cap: self.can_use(),
            left: self.left,
            used,
            fair: self.fair,
            theta: 0.0,
            since: self.since,
            is_new: self.newcomer.is_new(),
            states: self.work.states_total(),
            doubted: self.work.is_doubted(),
            density,
            aim,
            was_first: false,
            cap_is_known: self.cap.is_known() || self.is_capped(settings),
            cap_is_due: self.cap.is_due(t),
            open_use: self.open_use,
        }
    }

    /// Whether it takes part in the sharing.
    pub(super) fn trains(&self) -> bool {
        self.service.is_none() && self.ending.ended().is_none()
    }

    /// Its part in the virtual system.
    pub(super) fn participant(&self) -> Participant {
        let left = row::virtual_left(self.left, self.used(), self.fair);
        Participant { weight: self.weight, cap: self.can_use(), left }
    }

    /// Adds the next of these results of the virtual system, if it took part there.
    pub(super) fn credit<'a>(&mut self, granted: &mut impl Iterator<Item = &'a Outcome>) {
        if self.trains()
            && let Some(outcome) = granted.next()
        {
            self.fair = saturate(self.fair + outcome.served);
        }
    }

    /// Estimates its work left, from its total or from the forecast of an objective that ends it.
    pub(super) fn estimate_work(&mut self, job: &Job, settings: &Settings) {
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

    /// The work until a loss confirms its report that it has reached its objective: a part of the service
    /// received then. After that, its report is no longer believed.
    fn until_confirmed(&mut self) -> Option<f64> {
        if !self.ending.is_claimed() {
            self.claimed_at = None;
            return None;
        }
        let used = self.used();
        let claimed_at = *self.claimed_at.get_or_insert(used);
        Some(claimed_at * (1.0 + CONFIRMATION) - used).filter(|left| *left > 0.0)
    }

    /// The work until its objective, if there is a forecast.
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
        let farthest = (MAX_WORK_RATIO * self.used()).max(self.by_total.unwrap_or(0.0));
        Some(steps * self.work.per_step()?).filter(|work| *work <= farthest)
    }

    /// Its density and the work until its best milestone, with `left` until its end.
    fn density(&self, job: &Job, left: f64, settings: &Settings) -> (f64, f64) {
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
        let (early, learn) = (settings.early, settings.learn);
        let before_end =
            |work: Option<f64>, weight| Some((work.filter(|work| *work < left)?, weight));
        let targets = [before_end(acceptable, early), before_end(objective, OBJECTIVE * early)];
        if learn <= 0.0 {
            return row::density(self.weight, left, targets);
        }
        let learnt = |part| self.work_of(Reach::Steps(self.curve.until_left(part)?));
        let [half, quarter, eighth] = FALLS.map(|part| before_end(learnt(part), learn));
        let [acceptable, objective] = targets;
        row::density(self.weight, left, [acceptable, objective, half, quarter, eighth])
    }
}

/// A value that is finite and above 0.
pub(super) fn positive(x: Option<f64>) -> Option<f64> {
    match x {
        Some(x) if 0.0 < x && x < f64::INFINITY => Some(x),
        Some(_) | None => None,
    }
}

/// The service according to its counter.
fn counter(job: &Job, window: Window) -> Option<f64> {
    node_seconds(job.cpu_seconds, window.cpus)
}

fn node_seconds(cpu_seconds: Option<f64>, cpus: Option<f64>) -> Option<f64> {
    Some(cpu_seconds? / cpus?)
}
