//! A job's past: the body of `GET /v1/history`.

use serde::{Deserialize, Serialize};

/// A job's past in a bounded number of points, oldest first. Each list has one entry for each point.
///
/// A point is what was reported in a stretch of time. When there are too many, neighbours are merged,
/// so a run of any length fits. Values have six significant digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct History {
    /// [`SCHEMA`](crate::SCHEMA).
    pub schema: u32,
    /// As in [`Progress::instance`](crate::Progress::instance): a new one begins with an empty past.
    pub instance: String,
    /// Start of the reporting, in Unix seconds.
    pub started_at: f64,
    /// Start of the stretch, in Unix seconds.
    pub from: Vec<f64>,
    /// Its end. The last point may still grow: its end is then later in the next answer.
    pub to: Vec<f64>,
    /// The step at its end.
    pub step: Vec<Option<u64>>,
    /// Mean of the losses.
    pub loss: Vec<Option<f64>>,
    /// The smallest mean of a moment within it.
    pub loss_low: Vec<Option<f64>>,
    /// The largest mean of a moment within it.
    pub loss_high: Vec<Option<f64>>,
    /// As in [`Signals::loss_smoothed`](crate::Signals::loss_smoothed), at its end.
    pub loss_smoothed: Vec<Option<f64>>,
    /// The last loss on held-out data that was reported in it.
    pub validation: Vec<Option<f64>>,
    /// Median duration of a batch, in seconds: of a merged point, the mean of its parts.
    pub batch_p50: Vec<Option<f64>>,
    /// 95th percentile of the durations: of a merged point, the largest of its parts.
    pub batch_p95: Vec<Option<f64>>,
    /// The same for the 99th percentile.
    pub batch_p99: Vec<Option<f64>>,
}
