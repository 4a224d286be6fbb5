use std::fmt;

use serde::{Deserialize, Serialize};

/// A fraction of one node's CPU capacity: above 0, at most 1. A share of 1 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        description = "A fraction of one node's CPU capacity; 1 means no limit.",
        extend("exclusiveMinimum" = 0, "maximum" = 1)
    )
)]
pub struct Share(f64);

/// A number that is not a valid share.
#[derive(Debug, thiserror::Error)]
#[error("invalid share \"{0}\": expected a number above 0 and at most 1, for example 0.5")]
pub struct NotAShare(f64);

impl Share {
    /// The whole node: no limit.
    pub const ALL: Self = Self(1.0);

    /// Checks and wraps `fraction`.
    pub fn new(fraction: f64) -> Result<Self, NotAShare> {
        if fraction > 0.0 && fraction <= 1.0 {
            Ok(Self(fraction))
        } else {
            Err(NotAShare(fraction))
        }
    }

    /// The share nearest to `fraction`. NaN gives the whole node, which limits no job.
    pub fn nearest(fraction: f64) -> Self {
        if fraction.is_nan() { Self::ALL } else { Self(fraction.clamp(f64::MIN_POSITIVE, 1.0)) }
    }

    /// As a fraction of the node.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Whether this is the whole node.
    pub fn is_all(self) -> bool {
        self.0 >= 1.0
    }
}

impl TryFrom<f64> for Share {
    type Error = NotAShare;

    fn try_from(fraction: f64) -> Result<Self, NotAShare> {
        Self::new(fraction)
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.0 * 100.0)
    }
}
