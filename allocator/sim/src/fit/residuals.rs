//! What a job's reports have beside the curve of its loss in each of its runs alike.
//!
//! Where several recordings have the same beside the curve at the same places, it is no noise: the job
//! draws its batches by a seed. What is at which place follows from overlapping means as an image does
//! from projections: the least that gives each of them, found one after the other in rounds (Kaczmarz,
//! Bull. Int. Acad. Polon. Sci. A 35, 1937).

use paceline_policy::unit::count;

use super::learning::Piece;
use super::model::Learning;
use crate::number::position;
use crate::residuals::Residuals;

/// The work is told in so many parts at most.
const MOST_PARTS: f64 = 200.0;
/// After so many rounds …
const ROUNDS: u32 = 32;
/// … each of which takes up this part of what a mean is still off, means that contradict each other have
/// found their middle.
const TAKEN_UP: f64 = 0.5;
/// Other runs must tell of a run's losses this much better than the curve alone: chance does not.
const WORTH: f64 = 0.8;
/// The deviation of a normal distribution over the median of its absolute values.
const NORMAL: f64 = 1.4826;

/// What is learned, with the residuals of these runs where each is told by the others.
pub(super) fn beside(learning: Learning, runs: &[Vec<Piece>]) -> Learning {
    let off = |piece: &Piece| Piece { loss: piece.loss - piece.mean(&learning.curve), ..*piece };
    let runs = runs.iter().filter(|run| !run.is_empty());
    let runs: Vec<Vec<Piece>> = runs.map(|run| run.iter().map(off).collect()).collect();
    let most = runs.iter().flatten().map(|piece| piece.batches / (piece.to - piece.from));
    let parts = position(most.fold(1.0, f64::max).min(MOST_PARTS));
    let alone = deviation(runs.iter().flatten().map(|piece| (piece, 0.0)));
    let mut told = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let others = runs.iter().enumerate().filter(|(other, _)| *other != at);
        let others = reconstructed(others.flat_map(|(_, other)| other), parts);
        let others = Residuals::new(&others);
        told.extend(run.iter().map(|piece| (piece, others.mean(piece.from, piece.to))));
    }
    let told = deviation(told.into_iter());
    if runs.len() < 2 || told >= WORTH * alone {
        return learning;
    }
    let fall = learning.curve.fall();
    let noise = told / (fall.first - fall.last).abs();
    Learning { noise, residuals: reconstructed(runs.iter().flatten(), parts), ..learning }
}

/// The deviation of one report from what is said of it, by the pieces in the middle: where the loss falls
/// steeply, a few are far off.
fn deviation<'a>(pieces: impl Iterator<Item = (&'a Piece, f64)>) -> f64 {
    let mut off: Vec<f64> =
        pieces.map(|(piece, said)| (piece.loss - said).abs() * piece.batches.sqrt()).collect();
    off.sort_by(f64::total_cmp);
    off.get(off.len() / 2).map_or(0.0, |middle| NORMAL * middle)
}

/// The means of so many equal parts that give these of the pieces.
fn reconstructed<'a>(pieces: impl Iterator<Item = &'a Piece>, parts: usize) -> Vec<f64> {
    let pieces: Vec<&Piece> = pieces.collect();
    let mut means = vec![0.0; parts];
    for _ in 0..ROUNDS {
        for piece in &pieces {
            let covered = covered(piece, parts);
            let said: f64 =
                covered.iter().filter_map(|(at, part)| Some(part * means.get(*at)?)).sum();
            let squares: f64 = covered.iter().map(|(_, part)| part * part).sum();
            let step = TAKEN_UP * (piece.loss - said) / squares;
            for (at, part) in covered {
                if let Some(mean) = means.get_mut(at) {
                    *mean += step * part;
                }
            }
        }
    }
    means
}

/// Which parts a piece has a share in, and what part of the piece each is.
fn covered(piece: &Piece, parts: usize) -> Vec<(usize, f64)> {
    let [from, to] = [piece.from, piece.to].map(|at| at.clamp(0.0, 1.0) * count(parts));
    let width = to - from;
    let share = |at: usize| (to.min(count(at + 1)) - from.max(count(at))).max(0.0) / width;
    let all = position(from)..=position(to).min(parts.saturating_sub(1));
    all.map(|at| (at, share(at))).filter(|(_, share)| *share > 0.0).collect()
}
