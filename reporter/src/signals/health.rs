//! Whether a loss is still a loss.
//!
//! A loss may rise for many reasons that mend themselves: noise, a spike, a learning rate that goes
//! in circles, a policy that explores. So a rise counts as divergence only if it has taken away
//! half of all that was learned, has lasted for a twentieth of the run, is far beyond the noise,
//! and is twice as large as any rise that was made good: a loss that has come back from there
//! before may do so again.

use paceline_wire::{Direction, Health, Progress};

use super::history::History;
use super::series::{Point, Series};

/// The run is cut into so many blocks of equally many steps.
const BLOCKS: f64 = 40.0;
/// With fewer, nothing is said.
const FEWEST: usize = 10;
/// A rise has to last for so many blocks...
const LASTING: usize = 2;
/// ...and so many losses.
const LOSSES: f64 = 20.0;
/// A rise has to be so many times the usual difference of two blocks.
const BEYOND_NOISE: f64 = 6.0;
/// A rise has to take away so much of the best gain.
const LOST: f64 = 0.5;
/// A rise has to be so many times any other one, before the best time, or any fall since.
const BEYOND_SWINGS: f64 = 2.0;
/// Where nothing was ever learned, a rise to so many times the first loss counts.
const RUNAWAY: f64 = 10.0;

/// The health of the loss so far.
pub(crate) fn health(history: &History, series: Option<&Series>, progress: &Progress) -> Health {
    let levels = || blocks(series?, progress.eval.direction);
    if last_is_nonfinite(history, progress) {
        Health::Nonfinite
    } else if levels().is_some_and(|levels| diverges(&levels)) {
        Health::Diverging
    } else {
        Health::Fine
    }
}

/// Whether most of what came since the last sample, or with it, was no finite number: which of them
/// came last is not known.
fn last_is_nonfinite(history: &History, progress: &Progress) -> bool {
    let last = history.last().unwrap_or_default();
    let finite = progress.eval.count.saturating_sub(last.count);
    let rejected = progress.rejected.saturating_sub(last.rejected);
    if finite.saturating_add(rejected) > 0 { rejected > finite } else { history.nonfinite() }
}

/// A part of the run.
#[derive(Clone, Copy, Debug)]
struct Block {
    count: f64,
    /// The mean loss, with its sign turned where larger is better.
    level: f64,
}

/// The blocks with losses, oldest first; `None` while they are too few.
fn blocks(series: &Series, direction: Direction) -> Option<Vec<Block>> {
    let sign = match direction {
        Direction::Minimize => 1.0,
        Direction::Maximize => -1.0,
    };
    let of = |point: &Point| (point.x / series.end * BLOCKS).ceil();
    let together = |a: &Point, b: &Point| (of(a) - of(b)).abs() < 0.5;
    let blocks: Vec<Block> = series
        .points
        .chunk_by(together)
        .map(|points| {
            let count: f64 = points.iter().map(|point| point.count).sum();
            let sum: f64 = points.iter().map(|point| point.count / count * point.y).sum();
            Block { count, level: sign * sum }
        })
        .collect();
    (series.end > 0.0 && blocks.len() >= FEWEST).then_some(blocks)
}

fn diverges(blocks: &[Block]) -> bool {
    let Some((before, lasting)) = split(blocks) else { return false };
    let Some(first) = before.first().map(|block| block.level) else { return false };
    let Some((best_at, best)) =
        before.iter().map(|block| block.level).enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b))
    else {
        return false;
    };
    let lowest = lasting.iter().map(|block| block.level).fold(f64::INFINITY, f64::min);
    let rise = lowest - best;
    let gain = first - best;
    if rise <= BEYOND_NOISE * usual_difference(blocks) {
        return false;
    }
    let scale = first.abs().max(best.abs());
    // What lies above the first loss is all the same: everything is lost there.
    let levels = blocks.iter().map(|block| block.level.min(first));
    let rises = largest_rise(levels.clone().take(best_at + 1));
    let falls = largest_rise(levels.skip(best_at).map(|level| -level));
    let lost = rise > LOST * gain
        && gain > BEYOND_NOISE * usual_difference(blocks)
        && rise.min(gain) > BEYOND_SWINGS * rises.max(falls);
    lost || (scale > 0.0 && rise > RUNAWAY * scale)
}

/// The blocks before a rise that has lasted long enough, and those in which it has to stand.
fn split(blocks: &[Block]) -> Option<(&[Block], &[Block])> {
    let mut losses = 0.0;
    let needed = blocks.iter().rev().position(|block| {
        losses += block.count;
        losses >= LOSSES
    })?;
    blocks.split_at_checked(blocks.len().checked_sub(LASTING.max(needed + 1))?)
}

/// The median difference of a block from the next one.
fn usual_difference(blocks: &[Block]) -> f64 {
    let mut differences: Vec<f64> = blocks
        .windows(2)
        .filter_map(|pair| Some((pair.last()?.level - pair.first()?.level).abs()))
        .collect();
    differences.sort_by(f64::total_cmp);
    differences.get(differences.len() / 2).copied().unwrap_or(0.0)
}

/// By how much the levels rose at most, from any of them to a later one.
fn largest_rise(levels: impl Iterator<Item = f64>) -> f64 {
    let (mut lowest, mut rise) = (f64::INFINITY, 0.0_f64);
    for level in levels {
        lowest = lowest.min(level);
        rise = rise.max(level - lowest);
    }
    rise
}

#[cfg(test)]
mod tests;
