//! `paceline`: soonest done first, none later than under equal sharing.
//!
//! Source: this project. Beside the real node runs a virtual one on which the same jobs share equally
//! by weight (FSP: Friedman and Henderson, SIGMETRICS 2003; Dell'Amico et al., arXiv 1506.09158). A job's
//! end there is its deadline here. The real node serves jobs in the order of the work that they have left
//! (Schrage 1968), or of the work until their loss is acceptable, but only within the slack that the
//! deadlines leave. Jobs that say nothing of their work get what equal sharing gives them.
//!
//! Work is in *node-seconds*: CPU seconds over the node's CPUs. One run:
//!
//! 1. `sharing`: the virtual node runs on from the last frame to this one. A job that has gone goes on
//!    there as a `ghost` until its virtual end.
//! 2. `member`: each job is followed: its service (`received`), the most that it can use (`cap`),
//!    the work of a step and the work left (`work`), and when its loss reaches its targets (`curve`).
//!    `speed` says how much of the node jobs really get.
//! 3. `ending`: jobs that have reached their objective end. `service`: jobs with a target for their
//!    batches are given what they need; training shares the rest.
//! 4. `deadlines`, `claimant` and `slack`: who may be served. `order`: who is. `limits`: what is written.
//! 5. `timing`: when to look again. `outlook`: when each job is expected to end.

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
mod received;
mod row;
mod service;
mod settings;
mod sharing;
mod slack;
mod speed;
mod timing;
mod why;
mod work;

use std::collections::BTreeMap;
use std::mem;

use crate::decision::Decision;
use crate::frame::{Frame, Job};
use crate::params::{ParamError, Params};
use crate::policy::Policy;
use crate::unit::{JobId, saturate};
use deadlines::Deadlines;
use ghost::Ghost;
use member::{Member, Window};
use order::Served;
use row::Row;
use service::Claim;
use settings::Settings;
use sharing::Party;
use speed::{Seen, Speed};

pub use ending::End;
pub use why::Why;

pub(super) use settings::PARAMETERS;

/// Losses of so many jobs are fitted in one run at the most: the others wait for the next.
const FITS: usize = 8;
/// Above this part of its use, a node is busy with other work, too.
const BUSY: f64 = 0.95;
/// So many jobs that have gone are kept in the virtual system: those with the most work left.
const MOST_GHOSTS: usize = 4096;
/// Jobs that can use so much of their room can fill it.
const FULL: f64 = 0.98;
/// Training is never planned with less of the node than this.
const LEAST_ROOM: f64 = 0.05;

/// The policy and its state.
#[derive(Debug)]
pub struct Paceline {
    settings: Settings,
    /// In the order of their ids.
    members: Vec<(JobId, Member)>,
    ghosts: Vec<Ghost>,
    speed: Speed,
    /// The place of the member whose losses are fitted first.
    turn: usize,
    last: Option<Last>,
}

/// The run before.
#[derive(Debug)]
struct Last {
    t: f64,
    /// The node-seconds a second that training has, and the share of the node that these come from.
    capacity: f64,
    room: f64,
    /// The share of services.
    services: f64,
    /// The job that was served first, and whether it was alone.
    first: Option<JobId>,
    alone: bool,
    /// Whether those that were served could use all.
    fills: bool,
}

/// What one run comes to, before it is put into words.
struct Run<'a> {
    frame: &'a Frame,
    /// The jobs of the frame in the order of the members.
    jobs: Vec<&'a Job>,
    /// Services by their place among the members.
    claims: Vec<(usize, Claim)>,
    /// Whether services would be given more if no job trained.
    bound: bool,
    rows: Vec<Row>,
    deadlines: Deadlines,
    served: Served,
    /// Whether no job says anything of its work, so that the engine shares by itself.
    unstated: bool,
    room: f64,
    /// What training does in a second, in node-seconds.
    capacity: f64,
}

impl Paceline {
    /// Its name.
    pub const NAME: &'static str = "paceline";

    /// Checks the parameters, whose list [`policies::ALL`](super::ALL) gives.
    pub fn new(params: &Params) -> Result<Self, ParamError> {
        let settings = Settings::new(Self::NAME, params)?;
        Ok(Self {
            settings,
            members: Vec::new(),
            ghosts: Vec::new(),
            speed: Speed::new(),
            turn: 0,
            last: None,
        })
    }

    /// Whether these are the jobs that are known.
    fn knows_all(&self, jobs: &[&Job]) -> bool {
        jobs.len() == self.members.len()
            && jobs.iter().zip(&self.members).all(|(job, (id, _))| job.id == *id)
    }

    /// Lets the virtual node run for so many seconds, in which it did as much as the real one.
    fn advance(&mut self, jobs: &[&Job], seconds: f64) {
        let used = self.used_of(jobs, seconds);
        let Some(last) = &self.last else { return };
        let capacity = used.map_or(last.capacity, |used| used.clamp(LEAST_ROOM, last.room));
        self.share_virtually(capacity, seconds, f64::INFINITY);
    }

    /// Lets the virtual node run for so many seconds, in each of which it does `capacity` node-seconds, for the
    /// jobs that came before a moment.
    fn share_virtually(&mut self, capacity: f64, seconds: f64, before: f64) {
        let trains = |(_, member): &&mut (JobId, Member)| member.trains() && member.since < before;
        let members: Vec<&mut Member> =
            self.members.iter_mut().filter(trains).map(|(_, member)| member).collect();
        let party = |member: &&mut Member| Party {
            weight: member.weight,
            cap: member.can_use(),
            left: member.virtual_left(),
        };
        let ghosts =
            self.ghosts.iter().map(|of| Party { weight: of.weight, cap: of.cap, left: of.left });
        let parties: Vec<Party> = members.iter().map(party).chain(ghosts).collect();
        let course = sharing::run(&parties, capacity, seconds);
        let mut fates = course.fates.into_iter();
        for (member, fate) in members.into_iter().zip(&mut fates) {
            member.fair = saturate(member.fair + fate.served);
        }
        for (ghost, fate) in self.ghosts.iter_mut().zip(fates) {
            ghost.left -= fate.served;
        }
        self.ghosts.retain(|ghost| ghost.left > 1e-9);
    }

    /// What the training jobs that are known used of the node, if that says what it can do: not if one has
    /// gone, if they cannot use all, or of so short a time. What newcomers take while they begin, before their
    /// first frame, they would take under equal sharing, too.
    fn used_of(&self, jobs: &[&Job], seconds: f64) -> Option<f64> {
        if seconds < speed::LEAST_WINDOW {
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
        // What they cannot use, jobs that have gone could have used.
        let room = self.last.as_ref().map_or(1.0, |last| last.room);
        (can_use >= FULL * room).then_some(used)
    }

    /// Reads the frame's jobs. `same` says that all of them are known, and no other is.
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
        self.outlive(&gone, window);
    }

    /// Jobs that have gone leave ghosts, and what they had beyond their work.
    fn outlive(&mut self, gone: &[Member], window: Window) {
        self.ghosts.extend(gone.iter().filter_map(|gone| Ghost::of(gone, window.seconds)));
        if self.ghosts.len() > MOST_GHOSTS {
            self.ghosts.sort_by(|a, b| b.left.total_cmp(&a.left));
            self.ghosts.truncate(MOST_GHOSTS);
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
        // An unknown use is not the use of other processes.
        if self.members.iter().any(|(_, member)| member.usage.is_none()) {
            return;
        }
        let use_of = |(_, member): &(JobId, Member)| member.usage.unwrap_or(0.0);
        let used: f64 = self.members.iter().map(use_of).sum();
        let trains = self.members.iter().filter(|(_, member)| member.service.is_none());
        let trained: f64 = trains.map(use_of).sum();
        let node = frame.nodes.first().and_then(|node| node.usage.cpu);
        // One that is served alone and leaves much of a node idle may be unable to use it.
        let of_first = self.members.iter().find(|(id, _)| last.first.as_ref() == Some(id));
        let first_uses = of_first.map_or(1.0, use_of);
        let idles =
            last.alone && first_uses < self.settings.whole && node.is_none_or(|node| node < BUSY);
        let can_fill = last.fills && !idles;
        self.speed.take(Seen { seconds, trained, used, node, services: last.services, can_fill });
    }

    /// Works out what is left of each job, and which have reached their objective.
    fn reckon(&mut self, jobs: &[&Job]) {
        let mut fits = FITS;
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
                self.ghosts.extend(Ghost::of(member, 0.0));
                member.is_over = true;
            }
            member.reckon(job, &self.settings);
        }
    }

    /// What services are given, by their place among the members, and whether training keeps them from
    /// more.
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

    /// The jobs that train.
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
                used_much: member.used_much,
            }
        };
        let all = self.members.iter().zip(jobs).enumerate();
        all.filter(|(_, ((_, member), _))| member.trains()).map(row).collect()
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
        self.reckon(&jobs);
        let (claims, services, bound) = self.admit();
        let room = (1.0 - self.speed.others() - services).max(LEAST_ROOM);
        let capacity = self.speed.value() * room;
        let rows = self.rows(&jobs, t, room);
        let deadlines = Deadlines::new(&rows, &self.ghosts, &self.settings, capacity, t);
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
            fills: !unstated && served.left < order::REST && !served.measures,
        });
        Run { frame, jobs, claims, bound, rows, deadlines, served, unstated, room, capacity }
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
