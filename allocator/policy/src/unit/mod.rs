//! Checked units, and the only casts of this crate.

mod job_id;
mod moment;
mod node_name;
mod share;

pub use job_id::{EmptyId, JobId};
pub use moment::Moment;
pub use node_name::NodeName;
pub use share::{NotAShare, Share};

/// A number of things as a factor in arithmetic.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact up to 2^53 things")]
pub fn count(n: usize) -> f64 {
    n as f64
}

/// A counter's value as a factor in arithmetic.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "exact up to 2^53 reports")]
pub fn counter(n: u64) -> f64 {
    n as f64
}

/// `x` if it is a number, its limit if it overflowed, 0 if it is undefined.
pub fn saturate(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(f64::MIN, f64::MAX) }
}

/// The whole number that `x` is, or the nearest one that can be.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is meant to"
)]
pub(crate) fn whole(x: f64) -> u64 {
    x as u64
}
