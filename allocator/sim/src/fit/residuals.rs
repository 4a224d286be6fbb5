//! The deviations of a job's reports from its loss curve that all of its runs share.
//!
//! If several recordings deviate from the curve alike at the same places, that is not noise: the
//! job draws its batches by a seed. Frames have overlapping means of these deviations. They are
//! reconstructed as an image is from its projections: the least values that give each mean, found
//! one after the other in rounds (Kaczmarz, Bull. Int. Acad. Polon. Sci. A 35, 1937).

use paceline_policy::unit::count;

use super::learning::Piece;
use super::model::Learning;
use crate::number::position;
use crate::residuals::Residuals;

/// The work is divided into at most so many parts.
const MAX_PARTS: f64 = 200.0;
/// After so many rounds …
const ROUNDS: u32 = 32;
/// … each of which corrects this part of the remaining error, means that contradict each
/// other have settled in the middle.
const RELAXATION: f64 = 0.5;
/// Residuals from the other runs must reduce the deviation to this part of the curve's alone:
/// chance does not.
const WORTHWHILE_RATIO: f64 = 0.8;
/// The deviation of a normal distribution over the median of its absolute values.
const DEVIATION_PER_MEDIAN: f64 = 1.4826;

/// Adds the residuals of these runs to the fit, if each run is predicted well by the others.
pub(super) fn beside(learning: Learning, runs: &[Vec<Piece>]) -> Learning {
    let off = |piece: &Piece| Piece { loss: piece.loss - piece.mean(&learning.curve), ..*piece };
    let runs = runs.iter().filter(|run| !run.is_empty());
    let runs: Vec<Vec<Piece>> = runs.map(|run| run.iter().map(off).collect()).collect();
    let most = runs.iter().flatten().map(|piece| piece.batches / (piece.to - piece.from));
    let parts = position(most.fold(1.0, f64::max).min(MAX_PARTS));
    let alone = deviation(runs.iter().flatten().map(|piece| (piece, 0.0)));
    let mut predicted = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let others = runs.iter().enumerate().filter(|(other, _)| *other != at);
        let others = reconstructed(others.flat_map(|(_, other)| other), parts);
        let others = Residuals::new(&others);
        predicted.extend(run.iter().map(|piece| (piece, others.mean(piece.from, piece.to))));
    }
    let remaining = deviation(predicted.into_iter());
    if runs.len() < 2 || remaining >= WORTHWHILE_RATIO * alone {
        return learning;
    }
    let fall = learning.curve.fall();
    let noise = remaining / (fall.first - fall.last).abs();
    Learning { noise, residuals: reconstructed(runs.iter().flatten(), parts), ..learning }
}

/// The deviation of one report from its prediction. It follows from the median, since a few pieces
/// are far off where the loss falls steeply.
fn deviation<'a>(pieces: impl Iterator<Item = (&'a Piece, f64)>) -> f64 {
    let mut off: Vec<f64> =
        pieces.map(|(piece, said)| (piece.loss - said).abs() * piece.batches.sqrt()).collect();
    off.sort_by(f64::total_cmp);
    off.get(off.len() / 2).map_or(0.0, |middle| DEVIATION_PER_MEDIAN * middle)
}

/// The values of equal parts of the work whose means match these pieces.
fn reconstructed<'a>(pieces: impl Iterator<Item = &'a Piece>, parts: usize) -> Vec<f64> {
    let pieces: Vec<&Piece> = pieces.collect();
    let mut means = vec![0.0; parts];
    for _ in 0..ROUNDS {
        for piece in &pieces {
            let covered = covered(piece, parts);
            let said: f64 =
                covered.iter().filter_map(|(at, part)| Some(part * means.get(*at)?)).sum();
            let squares: f64 = covered.iter().map(|(_, part)| part * part).sum();
            let step = RELAXATION * (piece.loss - said) / squares;
            for (at, part) in covered {
                if let Some(mean) = means.get_mut(at) {
                    *mean += step * part;
                }
            }
        }
    }
    means
}

/// The parts that a piece covers, and which part of the piece lies in each.
fn covered(piece: &Piece, parts: usize) -> Vec<(usize, f64)> {
    let [from, to] = [piece.from, piece.to].map(|at| at.clamp(0.0, 1.0) * count(parts));
    let width = to - from;
    let share = |at: usize| (to.min(count(at + 1)) - from.max(count(at))).max(0.0) / width;
    let all = position(from)..=position(to).min(parts.saturating_sub(1));
    all.map(|at| (at, share(at))).filter(|(_, share)| *share > 0.0).collect()
}
