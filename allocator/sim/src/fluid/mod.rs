//! One node's CPU, shared among its jobs as a fluid.
//!
//! Each job has a weight and a cap, and all are to have as much as their caps allow in proportion
//! to their weights: water is filled up to one level, under which a job has its cap and over which
//! it has its weight times the level. Between two changes every share is constant.
//!
//! A change touches only the jobs that cross the level. All others go on by one of the node's
//! clocks: one that ticks with time for those at their caps, one that ticks with the level for those
//! that share. A job's next goal is a mark on its clock that stays where it is whatever happens to
//! others, so an event costs O(log n), amortised over the crossings. Only jobs whose pace is their own
//! (a contention, a part of a batch that takes its time whatever the share) are marked anew each time.

mod lists;
mod member;
mod members;

use std::collections::BTreeSet;

use crate::Tempo;
use crate::number::Key;
use member::{Clocks, Member, Side};
use members::Members;

pub(crate) use member::ROUNDING;
pub use member::{Party, Tally};

/// A job's number in the simulation.
pub type Index = usize;

/// One node.
#[derive(Clone, Debug, Default)]
pub struct Fluid {
    now: f64,
    /// How much a neighbour of equal share slows those down that have no contention of their own.
    contention: f64,
    /// The share that no job gets.
    background: f64,
    /// How fast it is over time.
    tempo: Tempo,
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
    /// How many are held back by their limits, and what these let them have together.
    held: usize,
    held_sum: f64,
    /// Jobs whose pace depends on what others do beside their share: they are marked anew at each change.
    paced: BTreeSet<Index>,
    /// Next goals, as marks on the clock of time and on that of the level.
    own_goals: BTreeSet<(Key, Index)>,
    shared_goals: BTreeSet<(Key, Index)>,
}

/// What is used of a node, and what is not.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// CPU time used by all, and the share of the node in use now.
    used: f64,
    in_use: f64,
    /// CPU time that nobody used while somebody was held back, and its share of the node now.
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
    /// An empty node on which jobs slow each other down: each runs at `1/(1 + contention·n)` of its speed
    /// beside neighbours that count for `n`.
    pub fn new(contention: f64) -> Self {
        Self { contention, ..Self::default() }
    }

    /// The same node with this share of it in use by others than its jobs.
    #[must_use]
    pub fn beside(self, background: f64) -> Self {
        Self { background, ..self }
    }

    /// The same node with a speed that goes up and down.
    #[must_use]
    pub fn going_by(self, tempo: Tempo) -> Self {
        Self { tempo, ..self }
    }

    /// Lets time pass. No goal may lie before `to`: whoever drives asks [`Fluid::next`] first.
    pub fn advance(&mut self, to: f64) {
        let to = to.max(self.now);
        let (seconds, usual) = (to - self.now, self.tempo.between(self.now, to));
        self.clocks.tick(seconds, usual, self.level(), self.efficiency());
        self.meter.tick(seconds);
        self.now = to;
    }

    /// A job begins to run here, at work 0 and with its first goal.
    pub fn insert(&mut self, job: Index, party: Party, goal: f64) {
        let member = Member::new(party, goal, self.now, self.clocks);
        self.members.insert(job, member);
        self.enlist(job);
        self.level_out();
    }

    /// A job runs here no longer: what it did and used.
    pub fn remove(&mut self, job: Index) -> Option<Tally> {
        let tally = self.tally(job)?;
        self.detach(job);
        self.members.remove(job);
        self.level_out();
        Some(tally)
    }

    /// Gives a job another cap, weight or speed.
    pub fn set(&mut self, job: Index, party: Party) {
        self.settle(job);
        self.detach(job);
        if let Some(member) = self.members.get_mut(job) {
            (member.party, member.side) = (party, Side::Sharing);
            self.enlist(job);
        }
        self.level_out();
    }

    /// A job has reached its goal, and this is its next one.
    pub fn reached(&mut self, job: Index, next: f64) {
        self.settle(job);
        self.unmark(job);
        if let Some(member) = self.members.get_mut(job) {
            // The goal itself, not what rounding made of it.
            member.work = member.goal;
            member.goal = next;
        }
        self.mark(job);
    }

    /// When the next goal is reached, and by whom.
    pub fn next(&self) -> Option<(f64, Index)> {
        let efficiency = self.efficiency();
        let due = |goals: &BTreeSet<(Key, Index)>, clock: f64, pace: f64| {
            let (mark, job) = *goals.first()?;
            let usual = ((mark.0 - clock) / pace).max(0.0);
            (mark.0 < f64::INFINITY && pace > 0.0).then(|| (self.tempo.end(self.now, usual), job))
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

    /// The share of the node that those have together who are held back by their limits.
    pub fn held(&self) -> f64 {
        self.held_sum
    }

    /// The part of that which is this job's: 0 if its limit does not hold it back.
    pub fn held_by(&self, job: Index) -> f64 {
        let held = |member: &&Member| member.side == Side::Capped && member.party.limited;
        self.members.get(job).filter(held).map_or(0.0, |member| member.party.cap)
    }

    /// What a job asks of the node.
    pub fn party(&self, job: Index) -> Option<Party> {
        self.members.get(job).map(|member| member.party)
    }

    /// The work that a job does per second now.
    pub fn rate_of(&self, job: Index) -> f64 {
        let rate = |member: &Member| {
            member.party.rate(member.share(self.level())) * self.beside_neighbours(member.party)
        };
        self.tempo.at(self.now) * self.members.get(job).map_or(0.0, rate)
    }

    /// The share of the node that is in use.
    pub fn in_use(&self) -> f64 {
        self.capped_sum + self.sharing_sum * self.level()
    }

    /// CPU time that was used since the start, as seconds of the whole node.
    pub fn used(&self) -> f64 {
        self.meter.used
    }

    /// CPU time that nobody used while a job was held back by its limit, in the same measure.
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

    /// The share that there is for jobs.
    fn room(&self) -> f64 {
        1.0 - self.background
    }

    /// The part of its speed that neighbours leave to a job that feels the node's contention.
    fn efficiency(&self) -> f64 {
        self.left_by_neighbours(self.contention)
    }

    /// The same of a job that may have its own.
    fn beside_neighbours(&self, party: Party) -> f64 {
        self.left_by_neighbours(party.contention.unwrap_or(self.contention))
    }

    fn left_by_neighbours(&self, contention: f64) -> f64 {
        let squares = self.capped_squares + self.sharing_squares * self.level().powi(2);
        1.0 / (1.0 + contention * neighbours(self.in_use(), squares))
    }

    /// Moves jobs over the level until it is where it belongs. Each move raises it, so this ends.
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

/// What each job's neighbours count for, from the sum of all shares and that of their squares: 1 beside one
/// of equal share, and never more than 2. It is twice the probability (Simpson's) that of two moments of the
/// node's time one job had the first and another the second: what slows a job down is that another had the
/// caches and the CPUs before it, whoever that was. Beside one neighbour the same work took `mnist` 1.2 times
/// the CPU time that it takes alone, and beside three 1.4 times; `vae` 1.1 and 1.2 times (2 CPUs).
pub(crate) fn neighbours(sum: f64, squares: f64) -> f64 {
    if squares > 0.0 { (2.0 - 2.0 * squares / (sum * sum)).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
