//! The ordered lists of a node: its jobs by their side of the level, and their next goals.

use super::member::{Member, Side};
use super::{Fluid, Index};

impl Fluid {
    pub(super) fn change_side(&mut self, job: Index, side: Side) {
        self.settle(job);
        self.detach(job);
        if let Some(member) = self.members.get_mut(job) {
            member.side = side;
        }
        self.enlist(job);
    }

    /// Adds a job to the lists of its side.
    pub(super) fn enlist(&mut self, job: Index) {
        let Some(member) = self.members.get(job) else { return };
        let Member { demand, side, .. } = member;
        let key = (demand.threshold(), job);
        match side {
            Side::Sharing => {
                self.sharing.insert(key);
                self.sharing_sum += demand.weight;
                self.sharing_squares += demand.weight.powi(2);
                if !demand.is_plain() {
                    self.paced.insert(job);
                }
            }
            Side::Capped => {
                self.capped.insert(key);
                self.capped_sum += demand.cap;
                self.capped_squares += demand.cap.powi(2);
                if demand.limited {
                    self.held += 1;
                    self.held_sum += demand.cap;
                }
                if demand.contention.is_some() {
                    self.paced.insert(job);
                }
            }
        }
        self.mark(job);
    }

    pub(super) fn detach(&mut self, job: Index) {
        self.unmark(job);
        self.paced.remove(&job);
        let Some(member) = self.members.get(job) else { return };
        let key = (member.demand.threshold(), job);
        match member.side {
            Side::Sharing => {
                self.sharing.remove(&key);
                self.sharing_sum -= member.demand.weight;
                self.sharing_squares -= member.demand.weight.powi(2);
            }
            Side::Capped => {
                self.capped.remove(&key);
                self.capped_sum -= member.demand.cap;
                self.capped_squares -= member.demand.cap.powi(2);
                if member.demand.limited {
                    self.held -= 1;
                    self.held_sum -= member.demand.cap;
                }
            }
        }
        // Without this, rounding errors would accumulate.
        if self.sharing.is_empty() {
            (self.sharing_sum, self.sharing_squares) = (0.0, 0.0);
        }
        if self.capped.is_empty() {
            (self.capped_sum, self.capped_squares) = (0.0, 0.0);
        }
        if self.held == 0 {
            self.held_sum = 0.0;
        }
    }

    /// Updates a job's tally to now.
    pub(super) fn settle(&mut self, job: Index) {
        if let Some(member) = self.members.get_mut(job) {
            member.settle(self.now, self.clocks);
        }
    }

    pub(super) fn unmark(&mut self, job: Index) {
        let Some(member) = self.members.get(job) else { return };
        let key = (member.marked, job);
        self.own_goals.remove(&key);
        self.shared_goals.remove(&key);
    }

    pub(super) fn mark(&mut self, job: Index) {
        let level = self.level();
        let contention = self.members.get(job).and_then(|member| member.demand.contention);
        let own = contention.map_or(1.0, |own| self.left_by_neighbours(own) / self.efficiency());
        let Some(member) = self.members.get_mut(job) else { return };
        member.marked = member.mark(level, own);
        let key = (member.marked, job);
        if member.runs_by_level() {
            self.shared_goals.insert(key);
        } else {
            self.own_goals.insert(key);
        }
    }
}
