//! Turns shares into limits.

use super::order::Served;
use crate::unit::count;

/// Beside others, the limit of a served job is its share times this, plus the following. So its usage can
/// show that it needs more.
const MORE: f64 = 1.25;
const MIN_MORE: f64 = 0.02;

/// A job that the promise does not allow to run gets this part of a waiting job's limit.
const KEPT_BACK: f64 = 0.125;

/// What a served job may have beyond its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// Nothing.
    Nothing,
    /// A little, so that its use can show that it needs more.
    Little,
    /// All that others leave, since its cap is not measured yet.
    All,
}

/// The limit of each row. Waiting rows have `wait` of the node together. It is divided by the next power of
/// two, so that one more waiting job does not change all limits.
pub(super) fn limits(
    served: &Served,
    beyond: &[Beyond],
    wait: f64,
    beside_services: bool,
) -> Vec<f64> {
    let running = served.shares.iter().filter(|share| **share > 0.0).count();
    let waiting = served.shares.len() - running;
    let waits = wait / count(waiting.next_power_of_two());
    let alone = running == 1 && !beside_services;
    let limit = |(at, ((share, allowed), beyond)): (usize, ((&f64, &bool), &Beyond))| {
        if served.measures && served.first == Some(at) {
            1.0
        } else if *share <= 0.0 {
            if *allowed { waits } else { KEPT_BACK * waits }
        } else if alone {
            1.0
        } else if beside_services || served.measures {
            *share
        } else {
            match beyond {
                Beyond::Nothing => *share,
                Beyond::Little => (MORE * share + MIN_MORE).min(1.0),
                Beyond::All => 1.0,
            }
        }
    };
    served.shares.iter().zip(&served.allowed).zip(beyond).enumerate().map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits_of(shares: &[f64], beside_services: bool) -> Vec<f64> {
        limits_for(&all(shares, true), beside_services)
    }

    fn limits_for(served: &Served, beside_services: bool) -> Vec<f64> {
        limits(served, &vec![Beyond::Little; served.shares.len()], 0.05, beside_services)
    }

    fn all(shares: &[f64], allowed: bool) -> Served {
        let allowed = vec![allowed; shares.len()];
        Served { shares: shares.to_vec(), allowed, first: Some(0), left: 0.0, measures: false }
    }

    #[test]
    fn job_held_back_by_the_promise_gets_less_than_a_waiting_one() {
        let kept_back = all(&[1.0, 0.0, 0.0], false);
        assert_eq!(limits_for(&kept_back, false), [1.0, 0.003_125, 0.003_125]);
    }

    #[test]
    fn job_that_is_served_alone_has_no_limit() {
        assert_eq!(limits_of(&[1.0, 0.0, 0.0], false), [1.0, 0.025, 0.025]);
        assert_eq!(limits_of(&[0.4, 0.0], true), [0.4, 0.05]);
    }

    #[test]
    fn job_that_is_measured_has_no_limit_beside_others() {
        let served = Served { measures: true, ..all(&[0.4, 0.6, 0.0], true) };
        assert_eq!(limits_for(&served, false), [1.0, 0.6, 0.05]);
    }

    #[test]
    fn jobs_that_wait_share_a_part_that_arrivals_seldom_change() {
        for (waiting, expected) in [(5, 0.05 / 8.0), (8, 0.05 / 8.0), (9, 0.05 / 16.0)] {
            let mut shares = vec![1.0];
            shares.extend(vec![0.0; waiting]);
            let limits = limits_of(&shares, false);
            assert!(limits[1..].iter().all(|limit| (limit - expected).abs() < 1e-12));
        }
    }

    #[test]
    fn job_may_have_nothing_or_all_beyond_its_share() {
        let served = all(&[0.2, 0.6], true);
        let beyond = [Beyond::Nothing, Beyond::All];
        assert_eq!(limits(&served, &beyond, 0.05, false), [0.2, 1.0]);
    }

    #[test]
    fn job_beside_others_may_have_more_than_its_share() {
        let limits = limits_of(&[0.2, 0.8, 0.0], false);
        assert!((limits[0] - 0.27).abs() < 1e-12 && (limits[1] - 1.0).abs() < 1e-12);
    }
}
