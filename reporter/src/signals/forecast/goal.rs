//! The target of a forecast.

use paceline_wire::Progress;

use crate::signals::number::finite;
use crate::signals::series::Series;

/// The target for the mean of a window of losses. Values are in the unit of the series, with their
/// sign turned if larger is better, so that the target is always reached by a fall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// 1 if smaller is better, and -1 if larger is.
    pub(crate) sign: f64,
    /// The mean to reach.
    pub(crate) target: f64,
    /// How many losses a window holds.
    pub(crate) window: f64,
}

impl Goal {
    /// The goal for the loss `target`; `None` if that is not finite.
    pub(crate) fn new(target: f64, progress: &Progress, series: &Series) -> Option<Self> {
        // True for `Minimize` alone.
        let smaller = progress.eval.direction.better(0.0, 1.0);
        let sign = if smaller { 1.0 } else { -1.0 };
        let target = finite(sign * target / series.unit)?;
        Some(Self { sign, target, window: f64::from(progress.eval.window.max(1)) })
    }

    /// Whether losses and target are all above 0, so that noise may be in proportion to the level.
    pub(crate) fn is_positive(&self, series: &Series) -> bool {
        self.sign > 0.0 && self.target > 0.0 && series.points.iter().all(|point| point.y > 0.0)
    }
}
