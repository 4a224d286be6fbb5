//! Which jobs are served: the order, and the share of each.
//!
//! The promise comes first: jobs that must run at their caps from now on, and the fair part of jobs whose
//! size is unknown. The rest goes to newcomers, then to the allowed jobs by density, then to the others by
//! deadline. All jobs of unknown size are one entry of the order, and share its part equally.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::deadlines::Deadlines;
use super::rank::key;
use super::row::Row;
use super::settings::Settings;
use super::sharing::{Participant, level};

/// The factor on the density of a job that cannot reach its next milestone within the slack, since it would
/// be stopped before it.
const PREEMPTION_FACTOR: f64 = 0.8;
/// A rest of the node below this is not given out.
pub(super) const MIN_REST: f64 = 0.02;

/// The decisions of a run.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// The share of each row; 0 if it waits.
    pub(super) shares: Vec<f64>,
    /// Whether the promise allows each row to be served now.
    pub(super) allowed: Vec<bool>,
    /// The row that is served first.
    pub(super) first: Option<usize>,
    /// The share that no row can use; 0 while a job is measured.
    pub(super) left: f64,
    /// Whether the first has no limit so that its cap is measured.
    pub(super) measures: bool,
}

/// An entry of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Row(usize),
    /// All allowed jobs of unknown size, either doubted or not.
    Unknown {
        doubted: bool,
    },
}

/// The highest density first; of equal ones, the first row. The flag tells whether the entry was already
/// checked against the slack.
type ByDensity = BinaryHeap<(u64, Reverse<Entry>, bool)>;
/// The earliest deadline first.
type ByDeadline = BinaryHeap<Reverse<(u64, Entry)>>;

/// The state while shares are given out.
struct Allocation<'a> {
    rows: &'a [Row],
    deadlines: &'a Deadlines,
    settings: &'a Settings,
    room: f64,
    /// Whether the promise allows each row to be served now.
    allowed: Vec<bool>,
    left: f64,
    shares: Vec<f64>,
    first: Option<usize>,
    /// Whether the first is measured beside others.
    measures: bool,
    may_measure: bool,
}

/// Gives out `room` of the node. `may_measure` tells whether a job may run without a limit so that its cap is
/// measured.
pub(super) fn serve(
    rows: &[Row],
    deadlines: &Deadlines,
    settings: &Settings,
    room: f64,
    may_measure: bool,
) -> Served {
    let each = 0..rows.len();
    let mut allocation = Allocation {
        rows,
        deadlines,
        settings,
        room,
        allowed: each.map(|at| deadlines.allows(at, settings.least)).collect(),
        left: room,
        shares: vec![0.0; rows.len()],
        first: None,
        measures: false,
        may_measure,
    };
    allocation.must_run();
    let must_run = allocation.shares.clone();
    allocation.newcomers();
    allocation.rest();
    let Allocation { allowed, left, shares, first, measures, .. } = allocation;
    let measured = first.filter(|_| !measures).filter(|first| {
        let is_due = rows.get(*first).is_some_and(|row| row.cap_is_due && row.left.is_some());
        let others = |shares: &[f64]| {
            shares.iter().enumerate().any(|(at, share)| at != *first && *share > 0.0)
        };
        may_measure && is_due && others(&shares) && !others(&must_run)
    });
    let Some(first) = measured else {
        return Served { shares, allowed, first, left, measures };
    };
    // Nothing is lent while its cap is measured.
    let own = shares.get(first).copied().unwrap_or(0.0);
    let mut shares = must_run;
    if let Some(share) = shares.get_mut(first) {
        *share = own;
    }
    Served { shares, allowed, first: Some(first), left: 0.0, measures: true }
}

impl Allocation<'_> {
    fn give(&mut self, at: usize, share: f64) {
        let share = share.min(self.left);
        if share <= 0.0 {
            return;
        }
        if let Some(has) = self.shares.get_mut(at) {
            *has += share;
            self.left -= share;
        }
    }

    fn is_allowed(&self, at: usize) -> bool {
        self.allowed.get(at).copied().unwrap_or(false)
    }

    /// Whether a row reaches its next milestone within the slack.
    fn fits(&self, at: usize) -> bool {
        self.rows.get(at).is_some_and(|row| self.deadlines.fits(at, row.aim))
    }

    /// Serves the jobs that must run now.
    fn must_run(&mut self) {
        let weights: f64 = self.rows.iter().map(|row| row.weight).sum();
        let mut due: Vec<(u64, usize, f64)> = Vec::new();
        for (at, (row, deadline)) in self.rows.iter().zip(self.deadlines.each()).enumerate() {
            let is_behind = row.left.is_none() && row.used < (1.0 - row.theta) * row.fair;
            let share = if deadline.must {
                row.cap
            } else if is_behind {
                (self.room * row.weight / weights).min(row.cap)
            } else {
                0.0
            };
            if share > 0.0 {
                due.push((key(deadline.due), at, share));
            }
        }
        due.sort_unstable_by_key(|(due, at, _)| (*due, *at));
        let (urgent, reserved) = (key(self.deadlines.exhausted()), self.reserved());
        let later: f64 = due.iter().filter(|due| due.0 > urgent).map(|due| due.2).sum();
        for (deadline, at, share) in due {
            // If not all deadlines can be met, all jobs are late alike.
            let part =
                if deadline > urgent { (self.room / (reserved + later)).min(1.0) } else { 1.0 };
            self.give(at, part * share);
        }
    }

    /// The share that other jobs need until the earliest deadline whose slack is used up. Jobs that must run for
    /// a later deadline do not get it.
    fn reserved(&self) -> f64 {
        let until = self.deadlines.exhausted();
        if until.is_infinite() {
            return 0.0;
        }
        let each = self.rows.iter().zip(self.deadlines.each());
        let others = each.filter(|(_, claimant)| !claimant.must && claimant.due <= until);
        let work: f64 = others.filter_map(|(row, _)| row.left).sum();
        work / until.max(self.settings.least)
    }

    fn newcomers(&mut self) {
        for (at, row) in self.rows.iter().enumerate() {
            if self.left < MIN_REST {
                return;
            }
            if row.is_new && self.is_allowed(at) {
                self.take(at, row.cap);
            }
        }
    }

    /// Whether it is measured beside others, which get what is not kept free for it.
    fn is_measured(&self, at: usize) -> bool {
        self.measures && self.first == Some(at)
    }

    /// Gives a job what it can use.
    fn take(&mut self, at: usize, cap: f64) {
        let is_measured = self.first.is_none() && self.may_measure;
        // Beside jobs that must run, a job without a limit would take what the promise gives them.
        let is_free = |kept: &f64| *kept <= self.left || self.left >= self.room;
        let kept = self.rows.get(at).filter(|_| is_measured).and_then(Row::kept).filter(is_free);
        self.measures |= kept.is_some();
        let cap = kept.unwrap_or(cap);
        let has = self.shares.get(at).copied().unwrap_or(0.0);
        self.give(at, cap - has);
        self.first.get_or_insert(at);
    }

    fn rest(&mut self) {
        let (mut allowed, mut others) = self.turns();
        while self.left >= MIN_REST {
            let Some((density, Reverse(turn), is_whole)) = allowed.pop() else { break };
            match turn {
                Entry::Row(at) if !is_whole && !self.fits(at) => {
                    let less = PREEMPTION_FACTOR * f64::from_bits(density);
                    allowed.push((key(less), Reverse(turn), true));
                }
                Entry::Row(_) | Entry::Unknown { .. } => self.turn(turn),
            }
        }
        while self.left >= MIN_REST {
            let Some(Reverse((_, turn))) = others.pop() else { break };
            self.turn(turn);
        }
    }

    /// The allowed jobs by density, and the others by deadline.
    fn turns(&self) -> (ByDensity, ByDeadline) {
        let (mut allowed, mut others) = (Vec::with_capacity(self.rows.len()), Vec::new());
        let mut groups = [(0.0, 0.0, false), (0.0, 0.0, false)];
        for (at, (row, deadline)) in self.rows.iter().zip(self.deadlines.each()).enumerate() {
            let hold = if row.was_first { self.settings.hold } else { 1.0 };
            if !self.is_allowed(at) {
                others.push(Reverse((key(deadline.due), Entry::Row(at))));
            } else if row.left.is_some() {
                allowed.push((key(row.density * hold), Reverse(Entry::Row(at)), false));
            } else {
                let [plain, doubted] = &mut groups;
                let group = if row.doubted { doubted } else { plain };
                group.0 += row.density;
                group.1 += 1.0;
                group.2 |= row.was_first;
            }
        }
        for ((sum, number, held), doubted) in groups.into_iter().zip([false, true]) {
            if number > 0.0 {
                let hold = if held { self.settings.hold } else { 1.0 };
                let part = if doubted { self.settings.doubt } else { 1.0 };
                let turn = Entry::Unknown { doubted };
                allowed.push((key(sum / number * hold * part), Reverse(turn), true));
            }
        }
        (allowed.into(), others.into())
    }

    fn turn(&mut self, turn: Entry) {
        match turn {
            Entry::Row(at) if self.is_measured(at) => {}
            Entry::Row(at) => {
                let cap = self.rows.get(at).map_or(0.0, |row| row.cap);
                self.take(at, cap);
            }
            Entry::Unknown { doubted } => self.share(doubted),
        }
    }

    /// Shares the rest among the jobs of unknown size, together with what they have already.
    fn share(&mut self, doubted: bool) {
        let members: Vec<usize> = (0..self.rows.len())
            .filter(|at| {
                self.rows.get(*at).is_some_and(|row| row.left.is_none() && row.doubted == doubted)
                    && self.is_allowed(*at)
                    && !self.is_measured(*at)
            })
            .collect();
        let has = |at: &usize| self.shares.get(*at).copied().unwrap_or(0.0);
        let pool = self.left + members.iter().map(has).sum::<f64>();
        let participants = members.iter().filter_map(|at| self.rows.get(*at));
        let level = level(
            participants.map(|row| Participant {
                weight: row.weight,
                cap: row.cap,
                left: f64::INFINITY,
            }),
            pool,
        );
        for at in members {
            let Some(row) = self.rows.get(at) else { continue };
            let has = self.shares.get(at).copied().unwrap_or(0.0);
            self.give(at, row.cap.min(row.weight * level) - has);
            self.first.get_or_insert(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::deadlines::Orders;
    use super::super::row::tests::ROW;
    use super::*;
    use crate::params::Params;

    #[test]
    fn jobs_that_cannot_all_be_in_time_are_late_alike() {
        let settings = Settings::new("paceline", &Params::default()).unwrap();
        // The first must end in 9.9 s with 10 s of work, the second in 50 s with 50 s of work.
        let behind = Row { fair: 2.1, ..ROW };
        let small = Row { member: 1, cap: 0.2, ..ROW };
        let rows = [behind, small];
        let deadlines = Deadlines::new(&rows, &[], &settings, (1.0, 0.0), &mut Orders::default());
        let shares = serve(&rows, &deadlines, &settings, 1.0, true).shares;
        let part = 1.0 / (10.0 / 9.875 + 0.2);
        assert!((shares[1] - 0.2 * part).abs() < 1e-9, "{shares:?}");
        assert!((shares[0] - (1.0 - 0.2 * part)).abs() < 1e-9, "{shares:?}");
    }
}
