//! Lending: with hard caps, a job may be at its cap while others leave their shares unused.
//!
//! A job keeps the right to its own share, and lending never lowers a cap below that. The unused part,
//! except for some headroom, goes to the jobs that press on their caps, by weighted water-filling. A
//! loan harms the lender no more than the kernel's fair sharing does. As soon as the lender uses up its
//! headroom, its whole share is reserved for it again.
//!
//! CPU taken from a job by a decision is not lent back to it at once. Borrowers run in bursts, and a
//! lender whose threads wait for each other cannot make up for those, so its demand stays hidden. So
//! nothing is lent until one sample without loans has been measured.

use super::fill::{Taker, fill};

/// The share of the node that is not lent: each job's headroom is proportional to its own share.
const HEADROOM: f64 = 0.04;
/// Additional headroom, as a fraction of a job's usage, since usage fluctuates. It must be larger than
/// 1/0.95 − 1: otherwise a job with satisfied demand would press on its cap again.
const HEADROOM_OF_USAGE: f64 = 0.1;
/// Loans are withdrawn when the jobs' own shares fall by more than this share of the node.
const WITHDRAWAL: f64 = HEADROOM;
/// Weights are limited to this factor above and below 1.
const MAX_WEIGHT: f64 = 1e6;

/// How much of the node a job wants, according to its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Demand {
    /// Not known, or growing again: its own share is reserved for it.
    #[default]
    Own,
    /// It presses on its cap: it wants as much as it may have.
    More,
    /// About its current usage.
    Known {
        /// The share to reserve for it or to lend to it.
        reserve: f64,
        /// A usage above this counts as growing demand.
        wake: f64,
    },
}

/// One job's part in the lending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Borrower {
    /// Its recent usage.
    pub(super) usage: Option<f64>,
    /// Whether it pressed on its cap.
    pub(super) pressed: bool,
    /// Its own share.
    pub(super) own: f64,
    /// The reduction of its own share since the previous moment.
    pub(super) cut: f64,
    /// The largest share that it may have.
    pub(super) ceiling: f64,
    /// Its weight relative to other jobs.
    pub(super) weight: f64,
    /// Its demand before this tick.
    pub(super) demand: Demand,
}

/// The cap of each job (its own share plus a loan), and its demand after this tick. All jobs together
/// have `room` of the node.
pub(super) fn lend(borrowers: &[Borrower], room: f64) -> Vec<(f64, Demand)> {
    let all_own: f64 = borrowers.iter().map(|borrower| borrower.own).sum();
    let is_cut = borrowers.iter().map(|borrower| borrower.cut).sum::<f64>() > WITHDRAWAL;
    let after = |borrower: &Borrower| {
        if is_cut { Demand::Own } else { borrower.demand_after(HEADROOM * borrower.own / all_own) }
    };
    let demands: Vec<Demand> = borrowers.iter().map(after).collect();
    let share = |(borrower, demand): (&Borrower, &Demand)| borrower.wanted_share(*demand);
    let wanted: Vec<f64> = borrowers.iter().zip(&demands).map(share).collect();
    let caps = caps(borrowers, &wanted, room);
    caps.into_iter().zip(demands).collect()
}

/// The cap of each job, from the shares that they want.
fn caps(borrowers: &[Borrower], wanted: &[f64], room: f64) -> Vec<f64> {
    let kept: f64 =
        borrowers.iter().zip(wanted).map(|(borrower, wanted)| borrower.own.min(*wanted)).sum();
    let taker = |(borrower, wanted): (&Borrower, &f64)| Taker {
        room: (wanted - borrower.own).max(0.0),
        weight: borrower.weight.clamp(1.0 / MAX_WEIGHT, MAX_WEIGHT),
    };
    let takers: Vec<Taker> = borrowers.iter().zip(wanted).map(taker).collect();
    let lent = fill((room - kept).max(0.0), &takers);
    // Rounding may exceed the ceiling.
    borrowers
        .iter()
        .zip(lent)
        .map(|(borrower, lent)| (borrower.own + lent).min(borrower.ceiling))
        .collect()
}

impl Borrower {
    /// The job's demand after this tick; `head` is its part of the headroom.
    fn demand_after(&self, head: f64) -> Demand {
        if self.pressed {
            return Demand::More;
        }
        let Some(usage) = self.usage else { return self.demand };
        let head = head + HEADROOM_OF_USAGE * usage;
        match self.demand {
            Demand::Known { wake, .. } if usage > wake => {
                if usage > self.own {
                    Demand::More
                } else {
                    Demand::Own
                }
            }
            // A slightly large reserve is kept, so that limits do not follow noise.
            kept @ Demand::Known { reserve, .. } if reserve <= usage + 2.0 * head => kept,
            Demand::Known { .. } | Demand::Own | Demand::More => {
                Demand::Known { reserve: usage + head, wake: usage + head / 2.0 }
            }
        }
    }

    fn wanted_share(&self, demand: Demand) -> f64 {
        match demand {
            Demand::Own => self.own,
            Demand::More => self.ceiling,
            Demand::Known { reserve, .. } => reserve.min(self.ceiling),
        }
    }
}

#[cfg(test)]
mod tests;
