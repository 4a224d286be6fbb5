//! Checked units, and the crate's only numeric casts.

mod job_id;
mod moment;
mod node_name;
mod share;

pub use job_id::{EmptyId, JobId};
pub use moment::Moment;
pub use node_name::NodeName;
pub use share::{NotAShare, Share};

/// A count as a float.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact up to 2^53 things")]
pub fn count(n: usize) -> f64 {
    n as f64
}

/// A counter's value as a float.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact up to 2^53 reports")]
pub fn counter(n: u64) -> f64 {
    n as f64
}

/// `x`, with infinities replaced by the largest finite values and NaN by 0.
pub fn saturate(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(f64::MIN, f64::MAX) }
}

/// `x` rounded towards 0 and clamped to the range of `u64`.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is meant to"
)]
pub(crate) fn whole(x: f64) -> u64 {
    x as u64
}
