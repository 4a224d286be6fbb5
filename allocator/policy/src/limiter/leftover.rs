//! Lending what hard caps strand: one job stands at its cap while others leave their share unused.
//!
//! A job keeps the right to its own share, and its own cap is never lowered for another's sake.
//! What it leaves unused, a head-room aside, goes to the jobs that press on their caps, by weighted
//! water-filling. A loan harms its owner no more than the kernel's fair sharing does, and not for
//! long: as soon as the owner begins to use its head-room up, its whole share is kept for it again.
//!
//! Beside jobs at their caps an owner may not be able to show that it wants more: they run in bursts,
//! and where its threads wait for each other it cannot make up for those. So what is taken from a job
//! is not lent back to it at once: all are first asked anew what they want, while nothing is lent.

use super::fill::{Taker, fill};

/// The share of the node that stays unlent: each job's part is by its own share.
const HEAD: f64 = 0.04;
/// On top of that, this fraction of a job's use: use is never quite steady. It must be larger than
/// 1/0.95 − 1, or else a job that got what it wants would press on its cap again.
const HEAD_OF_USE: f64 = 0.1;
/// What is taken from jobs at one moment is of account to others if it is more of the node than this.
const CUT: f64 = HEAD;
/// Weights further apart than this factor from 1 make no difference.
const LARGEST_WEIGHT: f64 = 1e6;

/// How much of the node a job wants, as far as its use shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Appetite {
    /// Not known, or it grows again: its own share, and nothing is lent of it.
    #[default]
    Own,
    /// It presses on its cap: as much as it may have.
    More,
    /// About what it uses.
    Known {
        /// What is kept for it, or it is to be lent.
        reserve: f64,
        /// Using more than this, it grows.
        wake: f64,
    },
}

/// One job's part in the lending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Party {
    /// What it used of late.
    pub(super) usage: Option<f64>,
    /// Whether it pressed on its cap then.
    pub(super) pressed: bool,
    /// Its own share.
    pub(super) own: f64,
    /// What was taken from that since the moment before.
    pub(super) cut: f64,
    /// The most that it may have.
    pub(super) ceiling: f64,
    /// Its weight beside others.
    pub(super) weight: f64,
    /// How it stood before.
    pub(super) appetite: Appetite,
}

/// The cap of each job, its own share and a loan together, and how it stands now. All of them
/// share `room` of the node.
pub(super) fn lend(parties: &[Party], room: f64) -> Vec<(f64, Appetite)> {
    let all_own: f64 = parties.iter().map(|party| party.own).sum();
    let is_cut = parties.iter().map(|party| party.cut).sum::<f64>() > CUT;
    let after = |party: &Party| {
        if is_cut { Appetite::Own } else { party.appetite_after(HEAD * party.own / all_own) }
    };
    let appetites: Vec<Appetite> = parties.iter().map(after).collect();
    let wants = |(party, appetite): (&Party, &Appetite)| party.demand(*appetite);
    let demands: Vec<f64> = parties.iter().zip(&appetites).map(wants).collect();
    let caps = caps(parties, &demands, room);
    caps.into_iter().zip(appetites).collect()
}

/// The cap of each job when its demand is known.
fn caps(parties: &[Party], demands: &[f64], room: f64) -> Vec<f64> {
    let kept: f64 = parties.iter().zip(demands).map(|(party, demand)| party.own.min(*demand)).sum();
    let taker = |(party, demand): (&Party, &f64)| Taker {
        room: (demand - party.own).max(0.0),
        weight: party.weight.clamp(1.0 / LARGEST_WEIGHT, LARGEST_WEIGHT),
    };
    let takers: Vec<Taker> = parties.iter().zip(demands).map(taker).collect();
    let lent = fill((room - kept).max(0.0), &takers);
    // The room ends at the ceiling but for rounding.
    parties.iter().zip(lent).map(|(party, lent)| (party.own + lent).min(party.ceiling)).collect()
}

impl Party {
    /// How the job stands after this look; `head` is its part of the head-room.
    fn appetite_after(&self, head: f64) -> Appetite {
        if self.pressed {
            return Appetite::More;
        }
        let Some(usage) = self.usage else { return self.appetite };
        let head = head + HEAD_OF_USE * usage;
        match self.appetite {
            Appetite::Known { wake, .. } if usage > wake => {
                if usage > self.own {
                    Appetite::More
                } else {
                    Appetite::Own
                }
            }
            // A reserve that is a little large is left alone: limits are not to follow noise.
            kept @ Appetite::Known { reserve, .. } if reserve <= usage + 2.0 * head => kept,
            Appetite::Known { .. } | Appetite::Own | Appetite::More => {
                Appetite::Known { reserve: usage + head, wake: usage + head / 2.0 }
            }
        }
    }

    fn demand(&self, appetite: Appetite) -> f64 {
        match appetite {
            Appetite::Own => self.own,
            Appetite::More => self.ceiling,
            Appetite::Known { reserve, .. } => reserve.min(self.ceiling),
        }
    }
}

#[cfg(test)]
mod tests;
