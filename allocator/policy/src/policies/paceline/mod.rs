//! `paceline`: least work left first, no job later than under equal sharing.
//!
//! Source: this project. The policy simulates a virtual node on which the same jobs share equally by
//! weight (FSP: Friedman and Henderson, SIGMETRICS 2003; Dell'Amico et al., arXiv 1506.09158). A job's
//! end there is its deadline on the real node. The real node serves jobs in the order of the work that
//! they have left (Schrage 1968), or of the work until their loss is acceptable. It does so only within
//! the slack that the deadlines leave. Jobs that do not report their work get an equal share.
//!
//! Work is in *node-seconds*: CPU seconds over the node's CPUs. One run:
//!
//! 1. `sharing`: the virtual node advances from the last frame to this one. A job that is gone continues
//!    there as a `ghost` until its virtual end.
//! 2. `member`: the state of each job is updated: its service (`received`), the largest share that it
//!    can use (`cap`), the work of a step and the work left (`work`), and when its loss reaches its
//!    targets (`curve`). `speed` measures how much of the node jobs really get.
//! 3. `ending`: jobs that have reached their objective are ended. `service`: jobs with a target for their
//!    batches get the share that they need; training shares the rest.
//! 4. `deadlines`, `claimant` and `slack` decide which jobs may be served, `order` which are served, and
//!    `limits` the limits to write.
//! 5. `timing`: the time of the next run. `outlook`: when each job is expected to end.
//!
//! Rules that real machines require:
//!
//! - A cap is measured only where the job could have had more.
//! - The virtual node does as much work as the real one did, so contention and other processes slow
//!   both. What a new job uses before its first frame is taken off both.
//! - The work of a step is measured by the CPU time at the moment of its report
//!   (`step_cpu_seconds`). The frame's CPU time is up to a second later.
//! - Once the work of a step is exact, steps of a waiting job do not count. Threads of a job with
//!   almost no CPU wait for each other.
//! - A decision names the jobs that may get less than the limiter's floor (`waiting`). They wait on
//!   purpose, or are services that already have what they need.

mod answer;
mod cap;
mod claimant;
mod curve;
mod deadlines;
mod ending;
mod ghost;
mod limits;
mod member;
mod newcomer;
mod order;
mod outlook;
mod rank;
mod ranking;
mod received;
mod row;
mod service;
mod settings;
mod sharing;
mod slack;
mod speed;
mod tally;
mod timing;
mod work;

use std::collections::BTreeMap;
use std::mem;

use crate::decision::Decision;
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Params};
use crate::policy::Policy;
use crate::reason::paceline::Why;
use crate::unit::{JobId, saturate};
use deadlines::Deadlines;
use ghost::Ghost;
use member::{Member, Window};
use order::Served;
use ranking::Ranking;
use row::Row;
use service::Claim;
use settings::Settings;
use sharing::{Outcome, Participant, Sharing};
use speed::{Seen, Speed};
use tally::Tally;

pub(super) use settings::PARAMETERS;

/// The largest number of loss curves that one run fits. The others wait for the next run.
const MAX_FITS: usize = 8;
/// A node whose usage is above this is busy with other work, too.
const BUSY: f64 = 0.95;
/// The largest number of ghosts in the virtual system: those with the most work left are kept.
const MAX_GHOSTS: usize = 4096;
/// Jobs that can use this part of their room count as filling it.
const FILLS_ROOM: f64 = 0.98;
/// The smallest share of the node that is planned for training.
const MIN_ROOM: f64 = 0.05;

/// The policy and its state.
#[derive(Debug)]
pub struct Paceline {
    settings: Settings,
    /// In the order of their ids.
    members: Vec<(JobId, Member)>,
    /// The rows of the last run.
    rows: Vec<Row>,
    ghosts: Vec<Ghost>,
    speed: Speed,
    /// The index of the member whose losses are fitted first.
    turn: usize,
    last: Option<Last>,
    orders: Orders,
}

/// Orders of the jobs by several numbers, which change little from run to run.
#[derive(Debug, Default)]
struct Orders {
    sharing: Sharing,
    deadlines: deadlines::Orders,
    by_density: Ranking,
}

/// The previous run.
#[derive(Debug)]
struct Last {
    t: f64,
    /// The node-seconds per second for training, and the share of the node from which they come.
    capacity: f64,
    room: f64,
    /// The share of the services.
    services: f64,
    /// The job that was served first, and whether only that job was served.
    first: Option<JobId>,
    alone: bool,
    /// Whether the served jobs could use the whole share.
    fills: bool,
}

/// What a frame leaves free on the node.
struct Free {
    /// The sum of all limits, and the usage by processes that are not jobs.
    limits: f64,
    others: f64,
    /// The unused part of the node.
    idle: f64,
}

impl Free {
    fn new(frame: &Frame, jobs: &[&Job], others: f64) -> Self {
        let (mut limits, mut used) = (0.0, 0.0);
        for job in jobs {
            limits += Self::limit(job);
            used += job.usage.cpu.unwrap_or(0.0);
        }
        let node = frame.nodes.first().and_then(|node| node.usage.cpu);
        Self { limits, others, idle: 1.0 - node.unwrap_or(used) }
    }

    /// The share that the limits of the others leave for a job, and the unused part.
    fn beside(&self, job: &Job) -> (f64, f64) {
        (1.0 - (self.limits - Self::limit(job)) - self.others, self.idle)
    }

    fn limit(job: &Job) -> f64 {
        job.limit.applied.or(job.limit.cpu).unwrap_or(1.0)
    }
}

/// The results of one run, before the reasons are written.
struct Run<'a> {
    frame: &'a Frame,
    /// The jobs of the frame in the order of the members.
    jobs: Vec<&'a Job>,
    /// Services, by their index among the members.
    claims: Vec<(usize, Claim)>,
    /// Whether services would get more if no job trained.
    bound: bool,
    /// Whether the next loss of some job decides about its end.
    confirms: bool,
    rows: Vec<Row>,
    deadlines: Deadlines,
    served: Served,
    /// Seconds until the planned end of each row.
    ends: Vec<Option<f64>>,
    /// Whether no job reports its work, so that the kernel shares the CPU.
    unstated: bool,
    room: f64,
}

impl Paceline {
    /// Its name.
    pub const NAME: &'static str = "paceline";

    /// Checks the parameters, which are listed in [`policies::ALL`](super::ALL).
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        let settings = Settings::new(Self::NAME, params)?;
        Ok(Self {
            settings,
            members: Vec::new(),
            rows: Vec::new(),
            ghosts: Vec::new(),
            speed: Speed::new(),
            turn: 0,
            last: None,
            orders: Orders::default(),
        })
    }

    /// Whether these are exactly the known jobs.
    fn knows_all(&self, jobs: &[&Job]) -> bool {
        jobs.len() == self.members.len()
            && jobs.iter().zip(&self.members).all(|(job, (id, _))| job.id == *id)
    }

    /// Advances the virtual node by `seconds`, in which it does as much work as the real one did. Returns the
    /// results of the last run's rows. `same` means that these are exactly the known jobs.
    fn advance(&mut self, jobs: &[&Job], seconds: f64, same: bool) -> Vec<Outcome> {
        let Some(last) = &self.last else { return Vec::new() };
        let used = if same {
            self.used_of(jobs, seconds)
        } else {
            self.jobs_of_members(jobs).and_then(|jobs| self.used_of(&jobs, seconds))
        };
        let capacity = used.map_or(last.capacity, |used| used.clamp(MIN_ROOM, last.room));
        let mut participants = Vec::with_capacity(self.rows.len() + self.ghosts.len());
        participants.extend(self.rows.iter().map(Row::participant));
        self.share_virtually(participants, capacity, seconds)
    }

    /// Lets these and the ghosts share the virtual node for `seconds`. It does `capacity` node-seconds in each
    /// second. Returns the results of these.
    fn share_virtually(
        &mut self,
        mut participants: Vec<Participant>,
        capacity: f64,
        seconds: f64,
    ) -> Vec<Outcome> {
        let jobs = participants.len();
        participants.extend(self.ghosts.iter().map(Ghost::participant));
        let mut outcomes = self.orders.sharing.run(&participants, capacity, seconds).outcomes;
        for (ghost, outcome) in self.ghosts.iter_mut().zip(outcomes.iter().skip(jobs)) {
            ghost.left -= outcome.served;
        }
        self.ghosts.retain(|ghost| ghost.left > 1e-9);
        outcomes.truncate(jobs);
        outcomes
    }

    /// The jobs of the members; `None` if one is gone, since the usage of the others says little then.
    fn jobs_of_members<'a>(&self, jobs: &[&'a Job]) -> Option<Vec<&'a Job>> {
        let mut jobs = jobs.iter().copied();
        let mut find = |id: &JobId| jobs.find(|job| job.id >= *id).filter(|job| job.id == *id);
        self.members.iter().map(|(id, _)| find(id)).collect()
    }

    /// The usage of the training jobs, if it shows what the node can do. It does not if the jobs cannot use the
    /// whole node, or over too short a time. CPU used by new jobs before their first frame does not count:
    /// they would use it under equal sharing, too. `jobs` are the jobs of the members.
    fn used_of(&self, jobs: &[&Job], seconds: f64) -> Option<f64> {
        if seconds < speed::MIN_WINDOW {
            return None;
        }
        let (mut used, mut can_use) = (0.0, 0.0);
        for row in &self.rows {
            let usage = jobs.get(row.member)?.usage.cpu;
            used += usage.filter(|used| used.is_finite() && *used >= 0.0)?;
            can_use += row.cap;
        }
        // Jobs that are gone could have used what these cannot use.
        let room = self.last.as_ref().map_or(1.0, |last| last.room);
        (can_use >= FILLS_ROOM * room).then_some(used)
    }

    /// Updates the rows from the frame's jobs, which are exactly the members. With `granted`, they were so in
    /// the last run, too, and are updated first: it is what the last run's rows received in the virtual system.
    fn follow(
        &mut self,
        frame: &Frame,
        jobs: &[&Job],
        window: Window,
        granted: Option<&[Outcome]>,
    ) -> Tally {
        let others = self.speed.others();
        let mut known = granted.map(|granted| (granted.iter(), Free::new(frame, jobs, others)));
        let mut tally = Tally::default();
        let (settings, t) = (&self.settings, window.t);
        self.rows.clear();
        self.rows.reserve(jobs.len());
        for (at, ((_, member), job)) in self.members.iter_mut().zip(jobs).enumerate() {
            if let Some((granted, free)) = &mut known {
                member.credit(granted);
                member.take(job, window, member.served.then(|| free.beside(job)), settings);
            }
            tally.add(at, member);
            self.ghosts.extend(member.leaves());
            member.estimate_work(job, settings);
            if member.trains() {
                self.rows.push(member.row(at, job, t, settings));
            }
        }
        tally
    }

    /// Updates the members for a frame in which jobs came or are gone.
    fn change_members(
        &mut self,
        frame: &Frame,
        jobs: &[&Job],
        window: Window,
        granted: &[Outcome],
    ) {
        let free = Free::new(frame, jobs, self.speed.others());
        let mut granted = granted.iter();
        self.members.iter_mut().for_each(|(_, member)| member.credit(&mut granted));
        let before = mem::replace(&mut self.members, Vec::with_capacity(jobs.len()));
        let mut before = before.into_iter().peekable();
        let mut gone = Vec::new();
        for job in jobs {
            while let Some((_, member)) = before.next_if(|(id, _)| *id < job.id) {
                gone.push(member);
            }
            let member = match before.next_if(|(id, _)| *id == job.id) {
                Some((_, mut member)) => {
                    let free = member.served.then(|| free.beside(job));
                    member.take(job, window, free, &self.settings);
                    member
                }
                None => Member::new(job, window, &self.settings),
            };
            self.members.push((job.id.clone(), member));
        }
        gone.extend(before.map(|(_, member)| member));
        self.add_ghosts(&gone, window);
    }

    /// Adds ghosts for jobs that are gone, and gives the others the virtual service beyond their work.
    fn add_ghosts(&mut self, gone: &[Member], window: Window) {
        self.ghosts.extend(gone.iter().filter_map(|gone| Ghost::from_member(gone, window.seconds)));
        if self.ghosts.len() > MAX_GHOSTS {
            self.ghosts.sort_by(|a, b| b.left.total_cmp(&a.left));
            self.ghosts.truncate(MAX_GHOSTS);
        }
        let excess: f64 = gone.iter().map(|gone| Ghost::excess(gone, window.seconds)).sum();
        if excess > 0.0 {
            let capacity = self.last.as_ref().map_or(1.0, |last| last.capacity);
            let shares = |member: &Member| member.trains() && member.since < window.t;
            let members = self.members.iter().map(|(_, member)| member);
            let participants = members.filter(|member| shares(member)).map(Member::participant);
            let outcomes =
                self.share_virtually(participants.collect(), capacity, excess / capacity);
            let members = self.members.iter_mut().map(|(_, member)| member);
            let mut granted = outcomes.iter();
            members.filter(|member| shares(member)).for_each(|of| of.credit(&mut granted));
        }
    }

    /// Measures the node by what its jobs used. `first` is the member that was served first.
    fn measure(&mut self, frame: &Frame, seconds: f64, tally: &Tally, first: Option<usize>) {
        let Some(last) = &self.last else { return };
        // Unknown usage must not count as usage by other processes.
        if tally.unmeasured {
            return;
        }
        let node = frame.nodes.first().and_then(|node| node.usage.cpu);
        // A job that is served alone and leaves much of the node idle may be unable to use it.
        let first = first.and_then(|at| self.members.get(at));
        let first_uses = first.map_or(1.0, |(_, member)| member.usage.unwrap_or(0.0));
        let idles =
            last.alone && first_uses < self.settings.whole && node.is_none_or(|node| node < BUSY);
        let can_fill = last.fills && !idles;
        let Tally { trained, used, .. } = *tally;
        self.speed.take(Seen { seconds, trained, used, node, services: last.services, can_fill });
    }

    /// Fits some of the loss curves that have changed, and estimates the work of their jobs again.
    fn fit_curves(&mut self, jobs: &[&Job], t: f64) {
        let mut fits = MAX_FITS;
        let number = self.members.len().max(1);
        for turn in 0..number {
            let at = (self.turn + turn) % number;
            let Some(((_, member), job)) = self.members.get_mut(at).zip(jobs.get(at)) else {
                continue;
            };
            if member.curve.refresh() {
                member.estimate_work(job, &self.settings);
                let row = self.rows.binary_search_by_key(&at, |row| row.member).ok();
                if let Some(row) = row.and_then(|row| self.rows.get_mut(row)) {
                    *row = member.row(at, job, t, &self.settings);
                }
                fits -= 1;
                if fits == 0 {
                    self.turn = at + 1;
                    break;
                }
            }
        }
    }

    /// Sets what the rows depend on beside their jobs. `weights` are those of all rows, and `first` is the
    /// member that was served first in the last run.
    fn complete_rows(&mut self, (t, room): (f64, f64), weights: f64, first: Option<usize>) {
        for row in &mut self.rows {
            row.theta = row.may_lag(room * row.weight / weights, t, &self.settings);
        }
        let first = first.and_then(|first| self.rows.iter_mut().find(|row| row.member == first));
        if let Some(first) = first {
            first.was_first = true;
        }
    }

    /// The services with their shares, the sum of these, and whether training limits them.
    fn admit(&mut self, tally: &Tally) -> (Vec<(usize, Claim)>, f64, bool) {
        let (places, all) = (&tally.services, tally.weights);
        let claim = |at: &usize| {
            let (_, member) = self.members.get(*at)?;
            let (target, service) = member.service.as_deref()?;
            Some(service.claim(*target, member.weight / all, member.most, member.weight))
        };
        let mut claims: Vec<Claim> = places.iter().filter_map(claim).collect();
        if claims.is_empty() {
            return (Vec::new(), 0.0, false);
        }
        let room = 1.0 - self.speed.others();
        let kept = room * self.settings.mercy * tally.training / all;
        let mut freely = claims.clone();
        let wanted = service::admit(&mut freely, room);
        let given = service::admit(&mut claims, room - kept);
        for (place, claim) in places.iter().zip(&claims) {
            let member = self.members.get_mut(*place).map(|(_, member)| member);
            if let Some((_, service)) = member.and_then(|member| member.service.as_deref_mut()) {
                service.remember(claim);
            }
        }
        (places.iter().copied().zip(claims).collect(), given, wanted > given + 1e-9)
    }

    fn run<'a>(&mut self, frame: &'a Frame) -> Run<'a> {
        let mut jobs: Vec<&Job> = frame.jobs.iter().collect();
        let mut same = self.knows_all(&jobs);
        if !same && !jobs.is_sorted_by(|a, b| a.id < b.id) {
            jobs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            same = self.knows_all(&jobs);
        }
        let t = frame.t;
        let seconds = self.last.as_ref().map_or(0.0, |last| saturate(t - last.t).max(0.0));
        let cpus = member::positive(frame.nodes.first().and_then(|node| node.cpus));
        let window = Window { t, seconds, cpus };
        let granted = self.advance(&jobs, seconds, same);
        let was_first = self.last.as_ref().and_then(|last| last.first.as_ref());
        let first = was_first.and_then(|first| jobs.binary_search_by(|job| job.id.cmp(first)).ok());
        if !same {
            self.change_members(frame, &jobs, window, &granted);
        }
        let tally = self.follow(frame, &jobs, window, same.then_some(&*granted));
        if same {
            self.measure(frame, seconds, &tally, first);
        }
        self.fit_curves(&jobs, t);
        let (claims, services, bound) = self.admit(&tally);
        let room = (1.0 - self.speed.others() - services).max(MIN_ROOM);
        let capacity = self.speed.value() * room;
        self.complete_rows((t, room), tally.training, first);
        let rows = mem::take(&mut self.rows);
        let orders = &mut self.orders.deadlines;
        let deadlines = Deadlines::new(&rows, &self.ghosts, &self.settings, (capacity, t), orders);
        let unstated = !rows.iter().any(|row| row.left.is_some() || row.states);
        let may_measure = claims.is_empty();
        let served = order::serve(&rows, &deadlines, &self.settings, room, may_measure);
        for (row, share) in rows.iter().zip(&served.shares) {
            if let Some((_, member)) = self.members.get_mut(row.member) {
                member.share = *share;
                member.served = *share > 0.0 && !unstated;
                member.waited = *share <= 0.0 && !unstated;
            }
        }
        let id = |at: usize| self.members.get(rows.get(at)?.member).map(|(id, _)| id.clone());
        self.last = Some(Last {
            t,
            capacity,
            room,
            services,
            first: served.first.filter(|_| !unstated).and_then(id),
            alone: served.shares.iter().filter(|share| **share > 0.0).count() == 1,
            fills: !unstated && served.left < order::MIN_REST && !served.measures,
        });
        let by_density = &mut self.orders.by_density;
        let ends = outlook::ends(&rows, &deadlines, &served, capacity, by_density);
        let confirms = tally.confirms;
        Run { frame, jobs, claims, bound, confirms, rows, deadlines, served, ends, unstated, room }
    }
}

impl Policy for Paceline {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn params(&self) -> BTreeMap<&'static str, f64> {
        self.settings.in_force()
    }

    fn decide(&mut self, frame: &Frame) -> Decision {
        let run = self.run(frame);
        let decision = self.answer(&run);
        self.rows = run.rows;
        decision
    }
}

#[cfg(test)]
mod tests;
