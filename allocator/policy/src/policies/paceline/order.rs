//! Who is served: an order, and the room that it leaves to each.
//!
//! What the promise asks for comes first, whatever the order: a job that must run at its cap from now on,
//! and the fair part of one whose size is unknown. The rest goes to newcomers, then to the allowed ones
//! by density, then to the others by deadline. All jobs of unknown size are one party of the order, and
//! share equally what it gets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::deadlines::Deadlines;
use super::rank::key;
use super::row::Row;
use super::settings::Settings;
use super::sharing::{Party, level};

/// The density of a job that cannot reach its next milestone within the slack is multiplied by this: it would
/// be stopped half-way.
const HALF_WAY: f64 = 0.8;
/// Less room than this is left over.
pub(super) const REST: f64 = 0.02;
/// A job that uses less than this of a node without a limit is measured beside others.
pub(super) const SMALL: f64 = 0.35;
/// What is kept free for it meanwhile.
const KEPT: f64 = 0.4;

/// What a run decides.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// What each row is to have, 0 where it waits.
    pub(super) shares: Vec<f64>,
    /// Whether the promise lets each be served now.
    pub(super) allowed: Vec<bool>,
    /// The row that is served first.
    pub(super) first: Option<usize>,
    /// What no row can use; 0 while a job is measured.
    pub(super) left: f64,
    /// Whether the first has no limit so that its cap is measured.
    pub(super) measures: bool,
}

/// A party of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Row(usize),
    /// All of unknown size that are allowed, doubted or not.
    Unknown {
        doubted: bool,
    },
}

/// The densest first; of several equal ones, that of the first row. The last says whether it counts what does
/// not fit into the slack.
type ByDensity = BinaryHeap<(u64, Reverse<Turn>, bool)>;
/// The earliest first.
type ByDeadline = BinaryHeap<Reverse<(u64, Turn)>>;

/// One run in the middle of it.
struct Filling<'a> {
    rows: &'a [Row],
    deadlines: &'a Deadlines,
    settings: &'a Settings,
    room: f64,
    /// Whether the promise lets each be served now.
    allowed: Vec<bool>,
    left: f64,
    shares: Vec<f64>,
    first: Option<usize>,
    /// Whether the first is measured beside others.
    measures: bool,
    may_measure: bool,
}

/// Gives out `room` of the node. Where a job can have no limit, its cap `may_measure` be measured.
pub(super) fn serve(
    rows: &[Row],
    deadlines: &Deadlines,
    settings: &Settings,
    room: f64,
    may_measure: bool,
) -> Served {
    let each = 0..rows.len();
    let mut filling = Filling {
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
    filling.musts();
    let musts = filling.shares.clone();
    filling.newcomers();
    filling.rest();
    let Filling { allowed, left, shares, first, measures, .. } = filling;
    let measured = first.filter(|_| !measures).filter(|first| {
        let is_due = rows.get(*first).is_some_and(|row| row.cap_is_due && row.left.is_some());
        let others = |shares: &[f64]| {
            shares.iter().enumerate().any(|(at, share)| at != *first && *share > 0.0)
        };
        may_measure && is_due && others(&shares) && !others(&musts)
    });
    let Some(first) = measured else {
        return Served { shares, allowed, first, left, measures };
    };
    // Nothing is lent while it shows what it can use.
    let own = shares.get(first).copied().unwrap_or(0.0);
    let mut shares = musts;
    if let Some(share) = shares.get_mut(first) {
        *share = own;
    }
    Served { shares, allowed, first: Some(first), left: 0.0, measures: true }
}

impl Filling<'_> {
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

    /// What must run now.
    fn musts(&mut self) {
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
        for (deadline, at, share) in due {
            let kept = if deadline > urgent { reserved } else { 0.0 };
            self.give(at, share.min(self.left - kept));
        }
    }

    /// What others need until the earliest deadline whose slack is used up: jobs that must run for a later
    /// one do not have it.
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
            if self.left < REST {
                return;
            }
            if row.is_new && self.is_allowed(at) {
                self.take(at, row.cap);
            }
        }
    }

    /// A job's turn has come: it takes what it can use.
    fn take(&mut self, at: usize, cap: f64) {
        let is_small = self.rows.get(at).is_some_and(Row::shows_a_small_cap);
        let is_first = self.first.is_none();
        self.measures |= is_first && is_small && self.may_measure;
        let cap = if is_first && self.measures { KEPT } else { cap };
        let has = self.shares.get(at).copied().unwrap_or(0.0);
        self.give(at, cap - has);
        self.first.get_or_insert(at);
    }

    fn rest(&mut self) {
        let (mut allowed, mut others) = self.turns();
        while self.left >= REST {
            let Some((density, Reverse(turn), is_whole)) = allowed.pop() else { break };
            match turn {
                Turn::Row(at) if !is_whole && !self.fits(at) => {
                    let less = HALF_WAY * f64::from_bits(density);
                    allowed.push((key(less), Reverse(turn), true));
                }
                Turn::Row(_) | Turn::Unknown { .. } => self.turn(turn),
            }
        }
        while self.left >= REST {
            let Some(Reverse((_, turn))) = others.pop() else { break };
            self.turn(turn);
        }
    }

    /// The allowed ones by density, and the others by deadline.
    fn turns(&self) -> (ByDensity, ByDeadline) {
        let (mut allowed, mut others) = (Vec::new(), Vec::new());
        let mut groups = [(0.0, 0.0, false), (0.0, 0.0, false)];
        for (at, (row, deadline)) in self.rows.iter().zip(self.deadlines.each()).enumerate() {
            let hold = if row.was_first { self.settings.hold } else { 1.0 };
            if !self.is_allowed(at) {
                others.push(Reverse((key(deadline.due), Turn::Row(at))));
            } else if row.left.is_some() {
                allowed.push((key(row.density * hold), Reverse(Turn::Row(at)), false));
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
                let turn = Turn::Unknown { doubted };
                allowed.push((key(sum / number * hold * part), Reverse(turn), true));
            }
        }
        (allowed.into(), others.into())
    }

    fn turn(&mut self, turn: Turn) {
        match turn {
            Turn::Row(at) => {
                let cap = self.rows.get(at).map_or(0.0, |row| row.cap);
                self.take(at, cap);
            }
            Turn::Unknown { doubted } => self.share(doubted),
        }
    }

    /// Those of unknown size share what is left, with what they have already.
    fn share(&mut self, doubted: bool) {
        let members: Vec<usize> = (0..self.rows.len())
            .filter(|at| {
                self.rows.get(*at).is_some_and(|row| row.left.is_none() && row.doubted == doubted)
                    && self.is_allowed(*at)
            })
            .collect();
        let has = |at: &usize| self.shares.get(*at).copied().unwrap_or(0.0);
        let pool = self.left + members.iter().map(has).sum::<f64>();
        let parties = members.iter().filter_map(|at| self.rows.get(*at));
        let level = level(
            parties.map(|row| Party { weight: row.weight, cap: row.cap, left: f64::INFINITY }),
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
