//! The settings to write, and their order.

use std::fmt;
use std::ops::RangeInclusive;

use super::Why;
use super::weights::{MAX_WEIGHT, MIN_WEIGHT};
use crate::unit::{JobId, Share, counter};

/// A change of at least this fraction of the node is written. Smaller changes accumulate in the
/// policy's own choice, so nothing is lost.
pub const MIN_CHANGE: f64 = 0.01;

/// A smaller change is written if it is at least this part of the setting in force …
const MIN_RELATIVE_CHANGE: f64 = 0.04;
/// … and at least this fraction of the node.
const MIN_RELATIVE_CHANGE_OF_NODE: f64 = 0.002;

/// The CPU weight of a container without a weight: Docker's default.
pub const DEFAULT_WEIGHT: u64 = 1024;

/// The CPU weights that Docker accepts.
pub const WEIGHTS: RangeInclusive<u64> = MIN_WEIGHT..=MAX_WEIGHT;

/// One setting, to be written or in force.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Setting {
    /// A hard cap, as a share of the node; 1 means no cap.
    Cap(Share),
    /// A CPU weight on Docker's scale (`CpuShares`).
    Weight(u64),
}

/// The settings in force for one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InForce {
    /// Its cap.
    pub cap: Share,
    /// Its CPU weight.
    pub weight: u64,
    /// The CPU weight that its owner gave it.
    pub own_weight: u64,
}

/// One setting to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The job.
    pub job: JobId,
    /// The setting in force, of the same kind.
    pub from: Setting,
    /// The setting to write.
    pub to: Setting,
    /// The reason.
    pub why: Why,
}

impl Setting {
    /// The difference to another setting of the same kind: of the node, or of the `total` weight of all
    /// jobs.
    fn distance(self, other: Self, total: u64) -> f64 {
        match (self, other) {
            (Self::Cap(a), Self::Cap(b)) => (a.get() - b.get()).abs(),
            (Self::Weight(a), Self::Weight(b)) => counter(a.abs_diff(b)) / counter(total.max(1)),
            (Self::Cap(_), Self::Weight(_)) | (Self::Weight(_), Self::Cap(_)) => f64::INFINITY,
        }
    }

    /// Whether a change from this setting to `other` is large enough to write.
    pub(crate) fn is_worth_changing_to(self, other: Self, total: u64) -> bool {
        let distance = self.distance(other, total);
        let part = distance / self.fraction(total);
        distance >= MIN_CHANGE
            || distance >= MIN_RELATIVE_CHANGE_OF_NODE && part >= MIN_RELATIVE_CHANGE
    }

    /// As a fraction of the node, or of the `total` weight of all jobs.
    fn fraction(self, total: u64) -> f64 {
        match self {
            Self::Cap(share) => share.get(),
            Self::Weight(weight) => counter(weight) / counter(total.max(1)),
        }
    }
}

impl Change {
    /// Whether the job gets more.
    pub fn grows(&self) -> bool {
        self.to > self.from
    }
}

/// Sorts decreases before increases, so that limits never exceed the node meanwhile (X14).
pub(crate) fn order(changes: &mut [Change]) {
    changes.sort_by(|a, b| a.grows().cmp(&b.grows()).then_with(|| a.job.cmp(&b.job)));
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cap(share) => share.fmt(f),
            Self::Weight(weight) => write!(f, "weight {weight}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_percent_of_the_node_is_far_for_caps_and_weights_alike() {
        let cap = |share| Setting::Cap(Share::nearest(share));
        assert!(
            !cap(0.5).is_worth_changing_to(cap(0.509), 2048)
                && cap(0.5).is_worth_changing_to(cap(0.511), 2048)
        );
        let (from, near, far) =
            (Setting::Weight(1024), Setting::Weight(1044), Setting::Weight(1045));
        assert!(
            !from.is_worth_changing_to(near, 2048) && from.is_worth_changing_to(far, 2048),
            "1 % of 2048 is 20.48"
        );
    }

    #[test]
    fn small_share_moves_by_a_part_of_itself() {
        let far = |from: f64, to: f64| {
            Setting::Cap(Share::nearest(from))
                .is_worth_changing_to(Setting::Cap(Share::nearest(to)), 2048)
        };
        assert!(far(0.02, 0.0225) && far(0.0125, 0.00625) && !far(0.003, 0.0015));
        assert!(far(0.1, 0.1045) && !far(0.1, 0.1035) && !far(0.5, 0.5095));
    }
}
