//! How a job's loss falls with its work.
//!
//! Both forms are linear in the loss at the start and in the loss at the end. For each value of
//! their other parameters (tau; scale and exponent) these two follow by least squares. A frame has
//! the mean of its losses, which is compared with the mean of the curve over the same work. Frames
//! are weighted by their batches, since a mean of more reports is more exact.
//!
//! The windows between frames do not resolve the steep fall at the start. The largest loss in the
//! first frames does: for a falling loss, it is the first report.

use paceline_policy::unit::count;
use paceline_wire::Direction;

use super::model::{Fitted, Learning, Why};
use super::numeric::{Equation, Solution, criterion, least_point, least_squares};
use crate::curve::Curve;

/// A curve of three parameters and its noise need this many frames.
pub(super) const MIN_FRAMES: usize = 5;
/// More frames than these are merged: they add nothing about so smooth a curve.
const MAX_FRAMES: usize = 200;
/// A smaller change, relative to the level of the loss, does not count as learning.
const MIN_FALL: f64 = 1e-5;

/// Bounds of the curves' parameters, as powers of ten. Outside of them a curve is a straight line
/// or a step.
const TAU: (f64, f64) = (-3.0, 1.0);
const SCALE: (f64, f64) = (-3.0, 1.0);
const EXPONENT: (f64, f64) = (-1.0, 1.0);

/// The mean loss over a part of a job's work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Where it begins and ends, as fractions of the job's work.
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) loss: f64,
    /// How many batches it has.
    pub(super) batches: f64,
}

impl Piece {
    /// The mean of a curve over it: a batch's loss is that at its end.
    pub(super) fn mean(&self, curve: &Curve) -> f64 {
        let half = (self.to - self.from) / self.batches / 2.0;
        curve.mean(self.from + half, self.to + half)
    }
}

/// A fitted form, and its number of parameters.
struct Candidate {
    curve: Curve,
    parameters: usize,
    squares: f64,
}

/// Fits the better of the two forms. `first` is the first report, where it is known.
pub(super) fn learning(
    pieces: &[Piece],
    first: Option<Piece>,
    direction: Direction,
) -> Fitted<Learning> {
    if pieces.is_empty() {
        return Err(Why::NoLoss);
    }
    if pieces.len() < MIN_FRAMES {
        return Err(Why::TooFewFrames { of: "its loss", have: pieces.len(), need: MIN_FRAMES });
    }
    let merged: Vec<Piece> = first.into_iter().chain(merged(pieces)).collect();
    let all = [exponential(&merged), power(&merged)];
    let batches: f64 = merged.iter().map(|piece| piece.batches).sum();
    let spread = spread(&merged, batches);
    let score = |candidate: &Candidate| {
        criterion(candidate.squares / spread, merged.len(), candidate.parameters)
    };
    let best = all.into_iter().flatten().filter(|one| improves(&one.curve, direction));
    let best = best.min_by(|a, b| score(a).total_cmp(&score(b))).ok_or(Why::NotLearning)?;
    let fall = (best.curve.at(0.0) - best.curve.at(1.0)).abs();
    let free = count(merged.len().saturating_sub(best.parameters).max(1));
    Ok(Learning {
        error: (best.squares / batches).sqrt() / fall,
        // The mean of n reports has a variance of one n-th.
        noise: (best.squares / free).sqrt() / fall,
        residuals: Vec::new(),
        curve: best.curve,
        frames: pieces.len(),
    })
}

fn exponential(pieces: &[Piece]) -> Option<Candidate> {
    let form = |tau: f64| Curve::Exponential { start: 1.0, end: 0.0, tau };
    let squares = |power: f64| squares(pieces, &form(10_f64.powf(power)));
    let tau = 10_f64.powf(least_point(TAU.0, TAU.1, squares).0);
    let (start, end, squares) = scaled(pieces, &form(tau))?;
    Some(Candidate { curve: Curve::Exponential { start, end, tau }, parameters: 3, squares })
}

fn power(pieces: &[Piece]) -> Option<Candidate> {
    let form = |scale: f64, exponent: f64| {
        let (scale, exponent) = (10_f64.powf(scale), 10_f64.powf(exponent));
        Curve::Power { start: 1.0, end: 0.0, scale, exponent }
    };
    let best_scale = |exponent: f64| {
        least_point(SCALE.0, SCALE.1, |scale| squares(pieces, &form(scale, exponent)))
    };
    let (exponent, _) = least_point(EXPONENT.0, EXPONENT.1, |exponent| best_scale(exponent).1);
    let (scale, _) = best_scale(exponent);
    let (start, end, squares) = scaled(pieces, &form(scale, exponent))?;
    let (scale, exponent) = (10_f64.powf(scale), 10_f64.powf(exponent));
    Some(Candidate { curve: Curve::Power { start, end, scale, exponent }, parameters: 4, squares })
}

/// The squares that remain when a form that falls from 1 to 0 is scaled and shifted to fit best.
fn squares(pieces: &[Piece], form: &Curve) -> f64 {
    solve(pieces, form).map_or(f64::INFINITY, |solution| solution.squares)
}

fn scaled(pieces: &[Piece], form: &Curve) -> Option<(f64, f64, f64)> {
    let Solution { first: end, second: fall, squares } = solve(pieces, form)?;
    squares.is_finite().then_some((end + fall, end, squares))
}

fn solve(pieces: &[Piece], form: &Curve) -> Option<Solution> {
    let equation = |piece: &Piece| Equation {
        first: 1.0,
        second: piece.mean(form),
        target: piece.loss,
        weight: piece.batches,
    };
    least_squares(&pieces.iter().map(equation).collect::<Vec<_>>())
}

/// The weighted squares of the losses around their mean, at least the rounding.
fn spread(pieces: &[Piece], batches: f64) -> f64 {
    let sum =
        |term: &dyn Fn(&Piece) -> f64| pieces.iter().map(|p| p.batches * term(p)).sum::<f64>();
    let mean = sum(&|piece| piece.loss) / batches;
    sum(&|piece| (piece.loss - mean).powi(2)).max(f64::MIN_POSITIVE)
}

/// Whether a curve is valid and changes in the direction that the job wants.
fn improves(curve: &Curve, direction: Direction) -> bool {
    let (first, last) = (curve.at(0.0), curve.at(1.0));
    let falls = first - last > MIN_FALL * first.abs().max(last.abs());
    let rises = last - first > MIN_FALL * first.abs().max(last.abs());
    let improves = match direction {
        Direction::Minimize => falls,
        Direction::Maximize => rises,
    };
    improves && curve.problem().is_none()
}

/// Merges neighbouring pieces until there are few enough.
fn merged(pieces: &[Piece]) -> Vec<Piece> {
    let together = pieces.len().div_ceil(MAX_FRAMES).max(1);
    let merge = |some: &[Piece]| {
        let (first, last) = some.first().zip(some.last())?;
        let batches: f64 = some.iter().map(|piece| piece.batches).sum();
        let sum: f64 = some.iter().map(|piece| piece.batches * piece.loss).sum();
        Some(Piece { from: first.from, to: last.to, loss: sum / batches, batches })
    };
    pieces.chunks(together).filter_map(merge).collect()
}
