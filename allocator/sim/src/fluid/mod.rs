//! One node's CPU, shared among its jobs as a fluid.
//!
//! Each job has a weight and a cap. Shares are proportional to weights, up to the caps, like water
//! filled up to one level. A job with a cap of at most its weight times the level has its cap.
//! Every other job has its weight times the level. Between two changes every share is constant.
//!
//! A change touches only the jobs that cross the level. All others go on by one of the node's
//! clocks. One clock ticks with time, for jobs at their caps; one ticks with the level, for jobs
//! that share. A job's next goal is a mark on its clock, which stays where it is when other jobs
//! change. So an event costs O(log n), amortised over the crossings. Only jobs with a pace of their
//! own (by a contention or by a fixed time of batches) are marked again at each change.
//!
//! Both clocks tick with the node's speed, so a speed that varies moves no mark.

mod lists;
mod member;
mod members;

use std::collections::BTreeSet;

use crate::SpeedProfile;
use crate::number::Key;
use member::{Clocks, Member, Side};
use members::Members;

pub(crate) use member::ROUNDING;
pub use member::{Demand, Tally};

/// A job's number in the simulation.
pub type Index = usize;

/// One node.
#[derive(Clone, Debug, Default)]
pub struct Fluid {
    now: f64,
    /// How much a neighbour of equal share slows down the jobs without a contention of their own.
    contention: f64,
    /// The share that no job gets.
    background: f64,
    /// Its speed over time.
    speed_profile: SpeedProfile,
    clocks: Clocks,
    meter: Meter,
    members: Members,
    /// Jobs at their caps, and those that share the rest, by cap over weight.
    capped: BTreeSet<(Key, Index)>,
    sharing: BTreeSet<(Key, Index)>,
    /// The sums of the caps and of the weights, and those of their squares.
    capped_sum: f64,
    sharing_sum: f64,
    capped_squares: f64,
    sharing_squares: f64,
    /// How many jobs are throttled by their limits, and the sum of their shares.
    held: usize,
    held_sum: f64,
    /// Jobs whose pace depends on more than their share: they are marked again at each change.
    paced: BTreeSet<Index>,
    /// The next goals, as marks on the clock of time and on the clock of the level.
    own_goals: BTreeSet<(Key, Index)>,
    shared_goals: BTreeSet<(Key, Index)>,
}

/// The use of a node, and its waste.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// CPU time used by all jobs, and the share of the node in use now.
    used: f64,
    in_use: f64,
    /// CPU time that was idle while a job was throttled by its limit, and the share of the node
    /// that is idle for that reason now.
    wasted: f64,
    stranded: f64,
}

impl Meter {
    fn tick(&mut self, seconds: f64) {
        self.used += seconds * self.in_use;
        self.wasted += seconds * self.stranded;
    }
}

impl Fluid {
    /// An empty node with this contention: each job runs at `1/(1 + contention·n)` of its speed
    /// beside neighbours of weight `n`.
    pub fn new(contention: f64) -> Self {
        Self { contention, ..Self::default() }
    }

    /// The node with this share of it used by others than its jobs.
    #[must_use]
    pub fn with_background(self, background: f64) -> Self {
        Self { background, ..self }
    }

    /// The node with a speed that varies over time.
    #[must_use]
    pub fn with_speed_profile(self, speed_profile: SpeedProfile) -> Self {
        Self { speed_profile, ..self }
    }

    /// Advances time to `to`, in seconds. No goal may be due before `to`: callers check
    /// [`Fluid::next`] first.
    pub fn advance(&mut self, to: f64) {
        let to = to.max(self.now);
        let (seconds, usual) = (to - self.now, self.speed_profile.between(self.now, to));
        self.clocks.tick(seconds, usual, self.level(), self.efficiency());
        self.meter.tick(seconds);
        self.now = to;
    }

    /// Adds a job with no work done, and with its first goal.
    pub fn insert(&mut self, job: Index, demand: Demand, goal: f64) {
        let member = Member::new(demand, goal, self.now, self.clocks);
        self.members.insert(job, member);
        self.enlist(job);
        self.level_out();
    }

    /// Removes a job, and returns what it did and used.
    pub fn remove(&mut self, job: Index) -> Option<Tally> {
        let tally = self.tally(job)?;
        self.detach(job);
        self.members.remove(job);
        self.level_out();
        Some(tally)
    }

    /// Changes the cap, weight or speed of a job.
    pub fn set(&mut self, job: Index, demand: Demand) {
        self.settle(job);
        self.detach(job);
        if let Some(member) = self.members.get_mut(job) {
            (member.demand, member.side) = (demand, Side::Sharing);
            self.enlist(job);
        }
        self.level_out();
    }

    /// Records that a job has reached its goal, and sets its next one.
    pub fn reached(&mut self, job: Index, next: f64) {
        self.settle(job);
        self.unmark(job);
        if let Some(member) = self.members.get_mut(job) {
            // The exact goal, without rounding errors.
            member.work = member.goal;
            member.goal = next;
        }
        self.mark(job);
    }

    /// When the next goal is reached, and by which job.
    pub fn next(&self) -> Option<(f64, Index)> {
        let efficiency = self.efficiency();
        let due = |goals: &BTreeSet<(Key, Index)>, clock: f64, pace: f64| {
            let (mark, job) = *goals.first()?;
            let usual = ((mark.0 - clock) / pace).max(0.0);
            (mark.0 < f64::INFINITY && pace > 0.0)
                .then(|| (self.speed_profile.end(self.now, usual), job))
        };
        let own = due(&self.own_goals, self.clocks.own, efficiency);
        let shared = due(&self.shared_goals, self.clocks.shared, efficiency * self.level());
        [own, shared].into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
    }

    /// What a job has done and used so far.
    pub fn tally(&mut self, job: Index) -> Option<Tally> {
        self.settle(job);
        self.members.get(job).map(Member::tally)
    }

    /// What each job here has done and used so far, in no order.
    pub fn tallies(&mut self) -> impl Iterator<Item = (Index, Tally)> {
        let (now, clocks) = (self.now, self.clocks);
        self.members.iter_mut().map(move |(job, member)| {
            member.settle(now, clocks);
            (job, member.tally())
        })
    }

    /// The share of the node that a job has now.
    pub fn share_of(&self, job: Index) -> f64 {
        self.members.get(job).map_or(0.0, |member| member.share(self.level()))
    }

    /// The sum of the shares of the jobs that are throttled by their limits.
    pub fn held(&self) -> f64 {
        self.held_sum
    }

    /// The share of this job if its limit throttles it, else 0.
    pub fn held_by(&self, job: Index) -> f64 {
        let held = |member: &&Member| member.side == Side::Capped && member.demand.limited;
        self.members.get(job).filter(held).map_or(0.0, |member| member.demand.cap)
    }

    /// A job's demand on the node.
    pub fn demand(&self, job: Index) -> Option<Demand> {
        self.members.get(job).map(|member| member.demand)
    }

    /// The current work per second of a job.
    pub fn rate_of(&self, job: Index) -> f64 {
        let rate = |member: &Member| {
            member.demand.rate(member.share(self.level())) * self.beside_neighbours(member.demand)
        };
        self.speed_profile.at(self.now) * self.members.get(job).map_or(0.0, rate)
    }

    /// The share of the node that is in use.
    pub fn in_use(&self) -> f64 {
        self.capped_sum + self.sharing_sum * self.level()
    }

    /// CPU time that was used since the start, as seconds of the whole node.
    pub fn used(&self) -> f64 {
        self.meter.used
    }

    /// CPU time that was idle while a job was throttled by its limit, in the same unit.
    pub fn wasted(&self) -> f64 {
        self.meter.wasted
    }

    /// The jobs here, by number.
    pub fn jobs(&self) -> impl Iterator<Item = Index> {
        self.members.numbers()
    }

    /// How many jobs there are here.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.len() == 0
    }

    /// The share of a sharing job of weight 1.
    fn level(&self) -> f64 {
        if self.sharing.is_empty() {
            0.0
        } else {
            (self.room() - self.capped_sum) / self.sharing_sum
        }
    }

    /// The share of the node available to jobs.
    fn room(&self) -> f64 {
        1.0 - self.background
    }

    /// The part of its speed that neighbours leave to a job with the node's contention.
    fn efficiency(&self) -> f64 {
        self.left_by_neighbours(self.contention)
    }

    /// The same for a job that may have a contention of its own.
    fn beside_neighbours(&self, demand: Demand) -> f64 {
        self.left_by_neighbours(demand.contention.unwrap_or(self.contention))
    }

    fn left_by_neighbours(&self, contention: f64) -> f64 {
        let squares = self.capped_squares + self.sharing_squares * self.level().powi(2);
        1.0 / (1.0 + contention * neighbours(self.in_use(), squares))
    }

    /// Moves jobs over the level until it is consistent. Each move raises it, so this ends.
    fn level_out(&mut self) {
        while let Some((cap, job)) = self.capped.last().copied() {
            let alone = self.sharing.is_empty();
            let fits = if alone { self.capped_sum <= self.room() } else { cap.0 <= self.level() };
            if fits {
                break;
            }
            self.change_side(job, Side::Sharing);
        }
        while let Some((cap, job)) = self.sharing.first().copied() {
            if cap.0 > self.level() {
                break;
            }
            self.change_side(job, Side::Capped);
        }
        for job in self.paced.clone() {
            self.settle(job);
            self.unmark(job);
            self.mark(job);
        }
        let in_use = self.in_use();
        let stranded = if self.held > 0 { (self.room() - in_use).max(0.0) } else { 0.0 };
        (self.meter.in_use, self.meter.stranded) = (in_use, stranded);
    }
}

/// The weight of each job's neighbours, from the sum of all shares and the sum of their squares. It
/// is 1 beside one job of equal share, and never more than 2. It is twice the probability
/// (Simpson's) that two random moments of the node's busy time belong to different jobs. What slows
/// a job down is that any other job used the caches and CPUs before it. Measured on 2 CPUs: beside
/// one neighbour `mnist` took 1.2 times the CPU time that it takes alone, and beside three 1.4
/// times; `vae` took 1.1 and 1.2 times.
pub(crate) fn neighbours(sum: f64, squares: f64) -> f64 {
    if squares > 0.0 { (2.0 - 2.0 * squares / (sum * sum)).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
