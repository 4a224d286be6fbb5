//! The noise of a loss: how much it differs from its neighbours.

use super::bucket::Bucket;

/// The mean absolute value of a normal variable is its standard deviation divided by this.
const OF_NORMAL: f64 = 1.253_314_137_315_500_1;

/// Compares the mean of each sample with the line through its two neighbours, which removes any
/// linear trend.
///
/// Gasser, Sroka and Jennen-Steinmetz, Residual variance and residual pattern in nonlinear
/// regression, Biometrika 73 (1986). Absolute values replace squares, so that an outlier counts less
/// and no loss is too large.
#[derive(Debug, Default)]
pub(crate) struct Scatter {
    before: Option<Bucket>,
    last: Option<Bucket>,
}

impl Scatter {
    /// The standard deviation of one loss from the last three samples; `None` before the third.
    pub(crate) fn next(&mut self, bucket: &Bucket) -> Option<f64> {
        if bucket.count <= 0.0 {
            return None;
        }
        let before = self.before;
        let middle = self.last.replace(*bucket);
        self.before = middle;
        let (a, b, c) = (before?, middle?, *bucket);
        let part = (b.middle() - a.middle()) / (c.middle() - a.middle());
        let part = if part.is_finite() { part } else { 0.5 };
        let off = b.mean - (a.mean * (1.0 - part) + c.mean * part);
        let variance = 1.0 / b.count + (1.0 - part).powi(2) / a.count + part.powi(2) / c.count;
        let scatter = OF_NORMAL * off.abs() / variance.sqrt();
        scatter.is_finite().then_some(scatter)
    }
}
