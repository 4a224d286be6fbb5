//! What is to be written, and in which order.

use std::fmt;
use std::ops::RangeInclusive;

use super::Why;
use crate::unit::{JobId, Share, count, whole};

/// A change of this fraction of the node is worth a write. Of a smaller one, the policy's own choice
/// goes on adding up, so nothing is lost by leaving it.
pub const LEAST_CHANGE: f64 = 0.01;

/// So is a smaller one that is this part of what is in force …
const LEAST_PART: f64 = 0.04;
/// … and this fraction of the node.
const LEAST_OF_PART: f64 = 0.002;

/// The CPU weight of an equal share, and of a container that asked for none: Docker's default.
pub const DEFAULT_WEIGHT: u64 = 1024;

/// The CPU weights that Docker accepts.
pub const WEIGHTS: RangeInclusive<u64> = 2..=262_144;

/// One value to be written, or in force.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Setting {
    /// A hard cap, as a share of the node: 1 is no cap.
    Cap(Share),
    /// A CPU weight on Docker's scale (`CpuShares`).
    Weight(u64),
}

/// What is in force for one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InForce {
    /// Its cap.
    pub cap: Share,
    /// Its CPU weight.
    pub weight: u64,
}

/// One setting to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The job.
    pub job: JobId,
    /// What is in force, of the same kind.
    pub from: Setting,
    /// What is to be.
    pub to: Setting,
    /// Why.
    pub why: Why,
}

impl Setting {
    /// The weight of `share` among `jobs` jobs: an equal share has the default weight.
    pub(super) fn weight(share: Share, jobs: usize) -> Self {
        let weight = share.get() * default_weight() * count(jobs);
        Self::Weight(whole(weight.round()).clamp(*WEIGHTS.start(), *WEIGHTS.end()))
    }

    /// The difference to another setting of the same kind, as a fraction of the node, where `jobs`
    /// jobs share it.
    fn distance(self, other: Self, jobs: usize) -> f64 {
        match (self, other) {
            (Self::Cap(a), Self::Cap(b)) => (a.get() - b.get()).abs(),
            (Self::Weight(a), Self::Weight(b)) => {
                crate::unit::counter(a.abs_diff(b)) / (default_weight() * count(jobs.max(1)))
            }
            (Self::Cap(_), Self::Weight(_)) | (Self::Weight(_), Self::Cap(_)) => f64::INFINITY,
        }
    }

    /// Whether going from here to `other` is worth a write.
    pub(crate) fn is_far_from(self, other: Self, jobs: usize) -> bool {
        let distance = self.distance(other, jobs);
        let part = distance / self.of_node(jobs);
        distance >= LEAST_CHANGE || distance >= LEAST_OF_PART && part >= LEAST_PART
    }

    /// As a fraction of the node, where `jobs` jobs share it.
    fn of_node(self, jobs: usize) -> f64 {
        match self {
            Self::Cap(share) => share.get(),
            Self::Weight(weight) => {
                crate::unit::counter(weight) / (default_weight() * count(jobs.max(1)))
            }
        }
    }
}

fn default_weight() -> f64 {
    crate::unit::counter(DEFAULT_WEIGHT)
}

impl Change {
    /// Whether the job gets more.
    pub fn grows(&self) -> bool {
        self.to > self.from
    }
}

/// Decreases before increases, so that the node is never promised twice (X14).
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
    fn an_equal_share_has_the_default_weight() {
        assert_eq!(Setting::weight(Share::nearest(0.25), 4), Setting::Weight(DEFAULT_WEIGHT));
        assert_eq!(Setting::weight(Share::nearest(0.5), 3), Setting::Weight(1536));
    }

    #[test]
    fn a_weight_stays_within_what_docker_accepts() {
        assert_eq!(Setting::weight(Share::nearest(1e-9), 2), Setting::Weight(2));
        assert_eq!(Setting::weight(Share::ALL, 1000), Setting::Weight(262_144));
    }

    #[test]
    fn one_percent_of_the_node_is_far_for_caps_and_weights_alike() {
        let cap = |share| Setting::Cap(Share::nearest(share));
        assert!(!cap(0.5).is_far_from(cap(0.509), 2) && cap(0.5).is_far_from(cap(0.511), 2));
        let (from, near, far) =
            (Setting::Weight(1024), Setting::Weight(1044), Setting::Weight(1045));
        assert!(!from.is_far_from(near, 2) && from.is_far_from(far, 2), "1 % of 2048 is 20.48");
    }

    #[test]
    fn small_share_moves_by_a_part_of_itself() {
        let far = |from: f64, to: f64| {
            Setting::Cap(Share::nearest(from)).is_far_from(Setting::Cap(Share::nearest(to)), 2)
        };
        assert!(far(0.02, 0.0225) && far(0.0125, 0.00625) && !far(0.003, 0.0015));
        assert!(far(0.1, 0.1045) && !far(0.1, 0.1035) && !far(0.5, 0.5095));
    }
}
