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
use row::Row;
use service::Claim;
use settings::Settings;
use ranking::Ranking;
use sharing::{Participant, Sharing};
use speed::{Seen, Speed};

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

/// The results of one run, before the reasons are written.
struct Run<'a> {
    frame: &'a Frame,
    /// The jobs of the frame in the order of the members.
    jobs: Vec<&'a Job>,
    /// Services, by their index among the members.
    claims: Vec<(usize, Claim)>,
    /// Whether services would get more if no job trained.
    bound: bool,
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

    /// Advances the virtual node by `seconds`, in which it does as much work as the real one did.
    fn advance(&mut self, jobs: &[&Job], seconds: f64) {
        let used = self.used_of(jobs, seconds);
        let Some(last) = &self.last else { return };
        let capacity = used.map_or(last.capacity, |used| used.clamp(MIN_ROOM, last.room));
        self.share_virtually(capacity, seconds, f64::INFINITY);
    }

    /// Advances the virtual node by `seconds` for the jobs first seen before the time `before`. It does
    /// `capacity` node-seconds in each second.
    fn share_virtually(&mut self, capacity: f64, seconds: f64, before: f64) {
        let trains = |(_, member): &&mut (JobId, Member)| member.trains() && member.since < before;
        let mut members: Vec<&mut Member> = Vec::with_capacity(self.members.len());
        members.extend(self.members.iter_mut().filter(trains).map(|(_, member)| member));
        let participant = |member: &&mut Member| Participant {
            weight: member.weight,
            cap: member.can_use(),
            left: member.virtual_left(),
        };
        let ghosts = self.ghosts.iter().map(|of| Participant {
            weight: of.weight,
            cap: of.cap,
            left: of.left,
        });
        let mut participants = Vec::with_capacity(members.len() + self.ghosts.len());
        participants.extend(members.iter().map(participant).chain(ghosts));
        let trajectory = self.orders.sharing.run(&participants, capacity, seconds);
        let mut outcomes = trajectory.outcomes.into_iter();
        for (member, outcome) in members.into_iter().zip(&mut outcomes) {
            member.fair = saturate(member.fair + outcome.served);
        }
        for (ghost, outcome) in self.ghosts.iter_mut().zip(outcomes) {
            ghost.left -= outcome.served;
        }
        self.ghosts.retain(|ghost| ghost.left > 1e-9);
    }

    /// The usage of the known training jobs, if it shows what the node can do. It does not if a job is
    /// gone, if the jobs cannot use the whole node, or over too short a time. CPU used by new jobs before
    /// their first frame does not count: they would use it under equal sharing, too.
    fn used_of(&self, jobs: &[&Job], seconds: f64) -> Option<f64> {
        if seconds < speed::MIN_WINDOW {
            return None;
        }
        let (mut used, mut can_use) = (0.0, 0.0);
        let mut jobs = jobs.iter();
        for (id, member) in &self.members {
            let job = jobs.find(|job| job.id >= *id).filter(|job| job.id == *id)?;
            if member.trains() {
                used += job.usage.cpu.filter(|used| used.is_finite() && *used >= 0.0)?;
                can_use += member.can_use();
            }
        }
        // Jobs that are gone could have used what these cannot use.
        let room = self.last.as_ref().map_or(1.0, |last| last.room);
        (can_use >= FILLS_ROOM * room).then_some(used)
    }

    /// Updates the members from the frame's jobs. `same` means that these are exactly the known jobs.
    fn follow(&mut self, frame: &Frame, jobs: &[&Job], window: Window, same: bool) {
        let limits: f64 =
            jobs.iter().map(|job| job.limit.applied.or(job.limit.cpu).unwrap_or(1.0)).sum();
        let others = self.speed.others();
        let used = || jobs.iter().map(|job| job.usage.cpu.unwrap_or(0.0)).sum();
        let node = frame.nodes.first().and_then(|node| node.usage.cpu);
        let idle = 1.0 - node.unwrap_or_else(used);
        let settings = &self.settings;
        let take = |member: &mut Member, job: &Job| {
            let limit = job.limit.applied.or(job.limit.cpu).unwrap_or(1.0);
            let free = 1.0 - (limits - limit) - others;
            member.take(job, window, member.served.then_some((free, idle)), settings);
        };
        if same {
            for ((_, member), job) in self.members.iter_mut().zip(jobs) {
                take(member, job);
            }
            return;
        }
        let mut before = mem::take(&mut self.members).into_iter().peekable();
        let mut gone = Vec::new();
        for job in jobs {
            while let Some((_, member)) = before.next_if(|(id, _)| *id < job.id) {
                gone.push(member);
            }
            let member = match before.next_if(|(id, _)| *id == job.id) {
                Some((_, mut member)) => {
                    take(&mut member, job);
                    member
                }
                None => Member::new(job, window, settings),
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
            self.share_virtually(capacity, excess / capacity, window.t);
        }
    }

    /// Measures the node by what its jobs used.
    fn measure(&mut self, frame: &Frame, seconds: f64) {
        let Some(last) = &self.last else { return };
        // Unknown usage must not count as usage by other processes.
        if self.members.iter().any(|(_, member)| member.usage.is_none()) {
            return;
        }
        let use_of = |(_, member): &(JobId, Member)| member.usage.unwrap_or(0.0);
        let used: f64 = self.members.iter().map(use_of).sum();
        let trains = self.members.iter().filter(|(_, member)| member.service.is_none());
        let trained: f64 = trains.map(use_of).sum();
        let node = frame.nodes.first().and_then(|node| node.usage.cpu);
        // A job that is served alone and leaves much of the node idle may be unable to use it.
        let of_first = self.members.iter().find(|(id, _)| last.first.as_ref() == Some(id));
        let first_uses = of_first.map_or(1.0, use_of);
        let idles =
            last.alone && first_uses < self.settings.whole && node.is_none_or(|node| node < BUSY);
        let can_fill = last.fills && !idles;
        self.speed.take(Seen { seconds, trained, used, node, services: last.services, can_fill });
    }

    /// Estimates the work left of each job, and finds those that have reached their objective.
    fn estimate_work(&mut self, jobs: &[&Job]) {
        let mut fits = MAX_FITS;
        let number = self.members.len().max(1);
        for turn in 0..number {
            let at = (self.turn + turn) % number;
            let Some((_, member)) = self.members.get_mut(at) else { continue };
            if member.curve.refresh() {
                fits -= 1;
                if fits == 0 {
                    self.turn = at + 1;
                    break;
                }
            }
        }
        for ((_, member), job) in self.members.iter_mut().zip(jobs) {
            let ends = member.ending.ended().is_some();
            if ends && !member.is_over {
                self.ghosts.extend(Ghost::from_member(member, 0.0));
                member.is_over = true;
            }
            member.estimate_work(job, &self.settings);
        }
    }

    /// The services with their shares, the sum of these, and whether training limits them.
    fn admit(&mut self) -> (Vec<(usize, Claim)>, f64, bool) {
        let running = || self.members.iter().filter(|(_, member)| member.ending.ended().is_none());
        let all: f64 = running().map(|(_, member)| member.weight).sum();
        let training: f64 =
            running().filter(|(_, member)| member.trains()).map(|(_, member)| member.weight).sum();
        let mut places = Vec::new();
        let mut claims = Vec::new();
        for (at, (_, member)) in self.members.iter().enumerate() {
            let running = member.ending.ended().is_none();
            if let Some((target, service)) = member.service.as_ref().filter(|_| running) {
                places.push(at);
                let equal = member.weight / all;
                claims.push(service.claim(*target, equal, member.most, member.weight));
            }
        }
        if claims.is_empty() {
            return (Vec::new(), 0.0, false);
        }
        let room = 1.0 - self.speed.others();
        let kept = room * self.settings.mercy * training / all;
        let mut freely = claims.clone();
        let wanted = service::admit(&mut freely, room);
        let given = service::admit(&mut claims, room - kept);
        for (place, claim) in places.iter().zip(&claims) {
            let member = self.members.get_mut(*place).map(|(_, member)| member);
            if let Some((_, service)) = member.and_then(|member| member.service.as_mut()) {
                service.remember(claim);
            }
        }
        (places.into_iter().zip(claims).collect(), given, wanted > given + 1e-9)
    }

    /// The training jobs.
    fn rows(&self, jobs: &[&Job], t: f64, room: f64) -> Vec<Row> {
        let trains = |(_, member): &&(JobId, Member)| member.trains();
        let weights: f64 =
            self.members.iter().filter(trains).map(|(_, member)| member.weight).sum();
        let first = self.last.as_ref().and_then(|last| last.first.as_ref());
        let row = |(at, ((id, member), job)): (usize, (&(JobId, Member), &&Job))| {
            let used = member.used();
            let guess = member.left.unwrap_or(used.max(self.settings.prior));
            let milestones = member.milestones(job, guess, &self.settings);
            let (density, aim) = row::density(member.weight, guess, milestones);
            Row {
                member: at,
                weight: member.weight,
                cap: member.can_use(),
                left: member.left,
                used,
                fair: member.fair,
                theta: member.may_lag(room * member.weight / weights, t, &self.settings),
                since: member.since,
                is_new: member.newcomer.is_new(),
                states: member.work.states_total(),
                doubted: member.work.is_doubted(),
                density,
                aim,
                was_first: first == Some(id),
                cap_is_known: member.cap.is_known() || member.is_capped(&self.settings),
                cap_is_due: member.cap.is_due(t),
                open_use: member.open_use,
            }
        };
        let all = self.members.iter().zip(jobs).enumerate();
        let mut rows = Vec::with_capacity(self.members.len());
        rows.extend(all.filter(|(_, ((_, member), _))| member.trains()).map(row));
        rows
    }

    fn run<'a>(&mut self, frame: &'a Frame) -> Run<'a> {
        let mut jobs: Vec<&Job> = frame.jobs.iter().collect();
        if !jobs.is_sorted_by(|a, b| a.id < b.id) {
            jobs.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        }
        let t = frame.t;
        let seconds = self.last.as_ref().map_or(0.0, |last| saturate(t - last.t).max(0.0));
        let cpus = frame.nodes.first().and_then(|node| node.cpus);
        let same = self.knows_all(&jobs);
        self.advance(&jobs, seconds);
        self.follow(frame, &jobs, Window { t, seconds, cpus }, same);
        if same {
            self.measure(frame, seconds);
        }
        self.estimate_work(&jobs);
        let (claims, services, bound) = self.admit();
        let room = (1.0 - self.speed.others() - services).max(MIN_ROOM);
        let capacity = self.speed.value() * room;
        let rows = self.rows(&jobs, t, room);
        let orders = &mut self.orders.deadlines;
        let deadlines =
            Deadlines::new(&rows, &self.ghosts, &self.settings, (capacity, t), orders);
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
        Run { frame, jobs, claims, bound, rows, deadlines, served, ends, unstated, room }
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
        self.answer(&run)
    }
}

#[cfg(test)]
mod tests;
