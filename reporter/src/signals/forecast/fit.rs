//! Fits curves to the losses so far, each with its probability.
//!
//! For a given shape, the level and the size of the fall are found by weighted linear least
//! squares; the shapes share the probability by how well they fit, as in Bayesian model averaging
//! (Hoeting et al., Statistical Science 14, 1999). Domhan, Speeling and Hutter, Speeding up
//! automatic hyperparameter optimization by extrapolation of learning curves, IJCAI 2015, average
//! shapes of this kind.

use super::data::Datum;
use super::shape::{Clock, Shape};

/// The share of the evidence that counts: all shapes are somewhat wrong.
const BELIEVED: f64 = 0.8;
/// The factor by which the variance of a fit is larger than computed, for the same reason.
const WIDER: f64 = 2.5;
/// A fit with a lower probability is omitted.
const UNLIKELY: f64 = 5e-3;
/// The largest autocorrelation that is assumed of neighbouring residuals.
const ALIKE: f64 = 0.9;
/// The number of fitted parameters: level, size, and shape.
const FOUND: f64 = 3.0;

/// A fitted curve: losses are `level + size · shape.above_present(x)` above the target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) shape: Shape,
    /// Its probability among all fits.
    pub(crate) weight: f64,
    pub(crate) level: f64,
    pub(crate) size: f64,
    /// The Cholesky factor of the covariance of level and size, row by row.
    pub(crate) spread: [f64; 3],
}

/// All fits of the losses.
#[derive(Debug)]
pub(crate) struct Fits {
    pub(crate) fits: Vec<Fit>,
    /// The variance of a loss around the best fit, as a multiple of the variance from its scatter.
    pub(crate) variance: f64,
}

/// One shape fitted by least squares.
#[derive(Clone, Copy, Debug)]
struct Laid {
    shape: Shape,
    level: f64,
    size: f64,
    /// The inverse of the normal matrix: variance of the level, covariance, variance of the size.
    inverse: [f64; 3],
    /// The weighted sum of squared residuals.
    squares: f64,
    /// The lag-1 autocorrelation of the residuals.
    alike: f64,
}

impl Fits {
    /// Fits all shapes to the data; `None` if none can be fitted.
    pub(crate) fn new(data: &[Datum]) -> Option<Self> {
        let laid: Vec<Laid> =
            Clock::ALL.into_iter().flat_map(|clock| lay_all(data, clock)).collect();
        let best = laid.iter().min_by(|a, b| a.squares.total_cmp(&b.squares)).copied()?;

        let recency: f64 = data.iter().map(|datum| datum.recency).sum();
        let points = effective(data.iter().map(|datum| datum.recency));
        let alike = best.alike.clamp(0.0, ALIKE);
        // The equivalent number of independent residuals: Bartlett's formula.
        let independent =
            effective(data.iter().map(|datum| datum.weight)) * (1.0 - alike) / (1.0 + alike);
        let freedom = (independent - 2.0).max(1.0);

        let variance = best.squares / recency * points / (points - FOUND).max(1.0);
        let mut fits: Vec<Fit> = laid
            .iter()
            .map(|laid| {
                let ratio = finite_or(laid.squares / best.squares, 1.0);
                let weight = laid.shape.prior() * ratio.powf(-0.5 * BELIEVED * freedom);
                // The normal matrix assumes independent points and correct weights. This is the
                // variance of a point of weight 1 from the residuals.
                let point = laid.squares / freedom * WIDER;
                let spread = cholesky(laid.inverse.map(|entry| entry * point));
                Fit { shape: laid.shape, weight, level: laid.level, size: laid.size, spread }
            })
            .collect();
        let total: f64 = fits.iter().map(|fit| fit.weight).sum();
        for fit in &mut fits {
            fit.weight /= total;
        }
        fits.retain(|fit| fit.weight > UNLIKELY);
        (!fits.is_empty()).then_some(Self { fits, variance })
    }
}

/// The equivalent number of equal weights (Kish, Survey Sampling, 1965).
fn effective(weights: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = weights.clone().fold(0.0, f64::max);
    let scaled = weights.map(|weight| weight / largest);
    let (sum, squares) =
        scaled.fold((0.0, 0.0), |(sum, squares), weight| (sum + weight, squares + weight * weight));
    sum * sum / squares
}

fn finite_or(value: f64, otherwise: f64) -> f64 {
    if value.is_finite() { value } else { otherwise }
}

/// The lower triangle of the Cholesky factor of a covariance.
fn cholesky([a, b, c]: [f64; 3]) -> [f64; 3] {
    let first = a.max(0.0).sqrt();
    let second = finite_or(b / first, 0.0);
    [first, second, (c - second * second).max(0.0).sqrt()]
}

/// Fits all shapes of one clock to the data.
fn lay_all(data: &[Datum], clock: Clock) -> impl Iterator<Item = Laid> {
    let clocks: Vec<f64> = data.iter().map(|datum| clock.at(datum.x)).collect();
    clock.shapes().filter_map(move |shape| lay(data, &clocks, shape))
}

/// Fits one shape to the data.
fn lay(data: &[Datum], clocks: &[f64], shape: Shape) -> Option<Laid> {
    let values: Vec<f64> = clocks.iter().map(|clock| shape.by_clock(*clock)).collect();
    let (mut w, mut wf, mut wff, mut wy, mut wfy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (Datum { y, weight, .. }, value) in data.iter().zip(&values) {
        w += weight;
        wf += weight * value;
        wff += weight * value * value;
        wy += weight * y;
        wfy += weight * value * y;
    }
    let determinant = w * wff - wf * wf;
    let level = (wff * wy - wf * wfy) / determinant;
    let size = (w * wfy - wf * wy) / determinant;
    let (mut squares, mut products, mut before) = (0.0, 0.0, None);
    for (Datum { y, weight, .. }, value) in data.iter().zip(&values) {
        let off = (y - level - size * value) * weight.sqrt();
        squares += off * off;
        products += off * before.replace(off).unwrap_or(0.0);
    }
    let inverse = [wff / determinant, -wf / determinant, w / determinant];
    let sound = determinant > 1e-12 * w * wff && (level + size + squares).is_finite();
    let alike = finite_or(products / squares, 0.0);
    sound.then_some(Laid { shape, level, size, inverse, squares, alike })
}
