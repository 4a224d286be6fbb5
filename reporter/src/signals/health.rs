//! Whether a loss diverges or is not a number.
//!
//! A loss may rise temporarily for many reasons: noise, a spike, a cyclic learning rate, a policy
//! that explores. So a rise counts as divergence only if all of this holds. It has undone half of
//! what was learned, has lasted for a twentieth of the run, and is far beyond the noise. It is also
//! twice as large as any earlier rise from which the loss recovered.

use paceline_wire::{Direction, Health, Progress};

use super::history::History;
use super::series::{Point, Series};

/// The number of blocks of equally many steps into which the run is cut.
const BLOCKS: f64 = 40.0;
/// The fewest blocks with losses for a verdict.
const FEWEST: usize = 10;
/// A rise must last for this many blocks...
const LASTING: usize = 2;
/// ...and this many losses.
const LOSSES: f64 = 20.0;
/// A rise must be this many times the usual difference of two blocks.
const BEYOND_NOISE: f64 = 6.0;
/// A rise must undo so much of the best gain.
const LOST: f64 = 0.5;
/// A rise must be this many times any rise before the best block, and any fall after it.
const BEYOND_SWINGS: f64 = 2.0;
/// If nothing was ever learned, a rise to this many times the first loss counts.
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

/// Whether most reports since the last sample, or else in it, were not finite. Which of them came
/// last is not known.
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
    /// The mean loss, with its sign turned if larger is better.
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
    // Levels above the first loss are equivalent: everything learned is lost there.
    let levels = blocks.iter().map(|block| block.level.min(first));
    let rises = largest_rise(levels.clone().take(best_at + 1));
    let falls = largest_rise(levels.skip(best_at).map(|level| -level));
    let lost = rise > LOST * gain
        && gain > BEYOND_NOISE * usual_difference(blocks)
        && rise.min(gain) > BEYOND_SWINGS * rises.max(falls);
    lost || (scale > 0.0 && rise > RUNAWAY * scale)
}

/// The blocks before a rise that has lasted long enough, and those in which it must last.
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

/// The largest rise from any level to a later one.
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
