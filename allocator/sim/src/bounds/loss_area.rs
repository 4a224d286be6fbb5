//! The least area under the loss.

use std::collections::BinaryHeap;

use super::pieces::{Chain, Piece};
use crate::number::Key;

/// A lower bound on `machines` nodes of the sum over jobs of the area under the remaining fall of
/// their losses. Areas count from each job's arrival until `until`, in seconds.
///
/// The larger of two bounds. First, no job's loss falls faster than alone. Second, all nodes are
/// one fast node whose work always goes where the loss falls most. A convex loss is a chain of
/// pieces, the steeper ones first, so each piece may count as a job that is worth its drop. The
/// densest of these first leaves the least remaining fall at every moment. (It has done the most
/// possible work above any given density by then, and the total drop is the sum over all
/// densities.) On one node that every job can fill, this is exact but for the pieces.
///
/// Source: density first is optimal for fractional weighted flow time: Becchetti, Leonardi,
/// Marchetti-Spaccamela and Pruhs, "Online weighted flow time and deadline scheduling", Journal of
/// Discrete Algorithms 4(3), 2006. Zhang, Stafman, Or and Freedman, "SLAQ: quality-driven scheduling
/// for distributed machine learning", ACM Symposium on Cloud Computing 2017, gives resources by the same rule, epoch by epoch.
pub(super) fn loss_area(chains: &[Chain], machines: f64, until: f64) -> f64 {
    let alone: f64 = chains.iter().map(|chain| densest_first(&[chain], chain.cap, until)).sum();
    densest_first(&chains.iter().collect::<Vec<_>>(), machines, until).max(alone)
}

/// The area if a machine of this speed always works on the densest piece, ignoring the jobs' caps.
fn densest_first(chains: &[&Chain], speed: f64, until: f64) -> f64 {
    let mut arrivals: Vec<&&Chain> = chains.iter().filter(|chain| chain.release < until).collect();
    arrivals.sort_by(|a, b| a.release.total_cmp(&b.release));
    // The pieces of each job, the next one last. The queue orders them by density.
    let mut left: Vec<Vec<Piece>> =
        arrivals.iter().map(|chain| chain.pieces.iter().rev().copied().collect()).collect();
    let mut arrivals = arrivals.into_iter().enumerate().peekable();
    let mut queue: BinaryHeap<(Key, usize)> = BinaryHeap::new();
    let next_of = |left: &[Vec<Piece>], number: usize| {
        let piece = left.get(number).and_then(|pieces| pieces.last());
        piece.map(|piece| (Key(piece.density()), number))
    };
    let (mut now, mut to_come, mut area) = (0.0_f64, 0.0, 0.0);
    while now < until {
        while let Some((number, chain)) = arrivals.next_if(|(_, chain)| chain.release <= now) {
            to_come += chain.pieces.iter().map(|piece| piece.drop).sum::<f64>();
            queue.extend(next_of(&left, number));
        }
        let next = arrivals.peek().map_or(until, |(_, chain)| chain.release);
        let Some((density, number)) = queue.pop() else {
            now = next;
            continue;
        };
        let Some(piece) = left.get_mut(number).and_then(|pieces| pieces.last_mut()) else {
            continue;
        };
        let whole = piece.work / speed;
        let seconds = whole.min(next - now);
        let drop = density.0 * seconds * speed;
        area += seconds * (to_come - drop / 2.0);
        to_come -= drop;
        now += seconds;
        if whole <= seconds {
            left.get_mut(number).and_then(Vec::pop);
        } else {
            piece.work -= seconds * speed;
            piece.drop -= drop;
        }
        queue.extend(next_of(&left, number));
    }
    area
}
