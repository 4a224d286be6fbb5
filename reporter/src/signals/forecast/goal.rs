//! What is waited for.

use paceline_wire::Progress;

use crate::signals::number::finite;
use crate::signals::series::Series;

/// The mean of a window of losses that is waited for. Values are measured in the unit of the
/// series, with their sign turned where larger is better: it is always a fall that is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// 1 where smaller is better, and -1 where larger is.
    pub(crate) sign: f64,
    /// The mean that is waited for.
    pub(crate) target: f64,
    /// How many losses a window holds.
    pub(crate) window: f64,
}

impl Goal {
    /// The loss `target`; `None` if it is no finite number.
    pub(crate) fn new(target: f64, progress: &Progress, series: &Series) -> Option<Self> {
        // True for `Minimize` alone.
        let smaller = progress.eval.direction.better(0.0, 1.0);
        let sign = if smaller { 1.0 } else { -1.0 };
        let target = finite(sign * target / series.unit)?;
        Some(Self { sign, target, window: f64::from(progress.eval.window.max(1)) })
    }

    /// Whether losses and target are all above 0, so that noise may go with the level.
    pub(crate) fn is_positive(&self, series: &Series) -> bool {
        self.sign > 0.0 && self.target > 0.0 && series.points.iter().all(|point| point.y > 0.0)
    }
}
