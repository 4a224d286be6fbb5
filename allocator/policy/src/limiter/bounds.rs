//! The minimum and maximum of a job's share.

use super::View;
use crate::unit::Share;

/// The default minimum of a job's share, unless its labels set another. With it, a job can still
/// report, and so be given more again.
pub const DEFAULT_FLOOR: f64 = 0.05;

/// The smallest limit that Docker accepts, in CPUs: 1000 µs of a 100 ms period.
pub const MIN_CPUS: f64 = 0.01;

/// [`MIN_CPUS`] as a share of a node with `cpus` CPUs.
pub(super) fn least(cpus: f64) -> f64 {
    if cpus > 0.0 { (MIN_CPUS / cpus).min(1.0) } else { MIN_CPUS }
}

/// The bounds of one job's share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) floor: f64,
    pub(super) ceiling: f64,
}

impl Bounds {
    /// The bounds that the job's owner and Docker set; Docker accepts nothing below `least`. If they
    /// conflict, the maximum takes precedence. The default minimum does not apply to a job that `waits` on
    /// purpose.
    pub(super) fn new(view: &View, least: f64, waits: bool) -> Self {
        let ceiling = view.max.map_or(1.0, Share::get).max(least);
        let floor = if waits { least } else { DEFAULT_FLOOR };
        let floor = view.min.map_or(floor, Share::get).max(least).min(ceiling);
        Self { floor, ceiling }
    }

    pub(super) fn clamp(self, share: f64) -> f64 {
        share.clamp(self.floor, self.ceiling)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limiter::tests::view;

    #[test]
    fn the_labels_of_a_job_bound_its_share() {
        let bounds = |min: Option<f64>, max: Option<f64>| {
            let (min, max) = (min.map(Share::nearest), max.map(Share::nearest));
            Bounds::new(&View { min, max, ..view("a", 1.0) }, 0.005, false)
        };
        assert_eq!(bounds(Some(0.3), None), Bounds { floor: 0.3, ceiling: 1.0 });
        assert_eq!(bounds(None, Some(0.5)), Bounds { floor: DEFAULT_FLOOR, ceiling: 0.5 });
        assert_eq!(bounds(None, Some(0.02)), Bounds { floor: 0.02, ceiling: 0.02 });
        assert_eq!(bounds(None, Some(0.001)), Bounds { floor: 0.005, ceiling: 0.005 });
    }

    #[test]
    fn job_that_waits_has_only_the_floors_of_owner_and_docker() {
        let floor = |min: Option<f64>| {
            Bounds::new(&View { min: min.map(Share::nearest), ..view("a", 1.0) }, 0.005, true).floor
        };
        for (min, expected) in [(None, 0.005), (Some(0.03), 0.03), (Some(0.001), 0.005)] {
            assert!((floor(min) - expected).abs() < 1e-12, "{min:?}");
        }
    }

    proptest! {
        #[test]
        fn no_job_starves(share in 0.0..=1.0, cpus in 0.5..256.0) {
            let given = Bounds::new(&view("a", 1.0), least(cpus), false).clamp(share);
            prop_assert!((DEFAULT_FLOOR..=1.0).contains(&given) && given * cpus >= MIN_CPUS);
        }
    }
}
