//! Shares become CPU weights.
//!
//! Containers that did not opt in compete with the jobs by weight, too. So the weights of all jobs add
//! up to what the weights of their owners added up to: the others keep their part exactly. The jobs
//! divide their own part by their shares.

use crate::unit::{counter, whole};

/// The smallest and the largest weight that Docker accepts.
pub(super) const MIN_WEIGHT: u64 = 2;
pub(super) const MAX_WEIGHT: u64 = 262_144;

/// The weights for `shares`, in proportion to them. They add up to `total`, as far as each of them may
/// be small or large enough.
pub(super) fn divide(total: u64, shares: &[f64]) -> Vec<u64> {
    let mut weights = vec![None; shares.len()];
    // What a job cannot take or give is divided among the others.
    loop {
        let (rest, of) = free(total, shares, &weights);
        let bound = |(at, share): (usize, &f64)| {
            weights.get(at).filter(|weight| weight.is_none())?;
            let wanted = rest * share / of;
            let bounded = wanted.clamp(counter(MIN_WEIGHT), counter(MAX_WEIGHT));
            ((wanted - bounded).abs() > 0.0).then(|| (at, whole(bounded)))
        };
        let bounds: Vec<(usize, u64)> = shares.iter().enumerate().filter_map(bound).collect();
        // The smallest first: with them, no other one's part grows.
        let small = bounds.iter().any(|(_, weight)| *weight == MIN_WEIGHT);
        let now = bounds.iter().filter(|(_, weight)| !small || *weight == MIN_WEIGHT);
        for (at, weight) in now {
            if let Some(place) = weights.get_mut(*at) {
                *place = Some(*weight);
            }
        }
        if bounds.is_empty() {
            break;
        }
    }
    round(total, shares, &weights)
}

/// The part of the total that is not fixed yet, and the sum of the shares that divide it.
fn free(total: u64, shares: &[f64], weights: &[Option<u64>]) -> (f64, f64) {
    let fixed: u64 = weights.iter().flatten().sum();
    let free = shares.iter().zip(weights).filter(|(_, weight)| weight.is_none());
    (counter(total.saturating_sub(fixed)), free.map(|(share, _)| share).sum())
}

/// Rounds down, and gives the rest of the total to the largest remainders.
fn round(total: u64, shares: &[f64], weights: &[Option<u64>]) -> Vec<u64> {
    let (rest, of) = free(total, shares, weights);
    let mut remainders = Vec::new();
    let mut rounded = Vec::with_capacity(shares.len());
    for (at, (share, weight)) in shares.iter().zip(weights).enumerate() {
        rounded.push(weight.unwrap_or_else(|| {
            let wanted = rest * share / of;
            remainders.push((wanted.fract(), at));
            whole(wanted)
        }));
    }
    remainders.sort_by(|a, b| b.0.total_cmp(&a.0));
    let missing = total.saturating_sub(rounded.iter().sum());
    let places = remainders.iter().take(usize::try_from(missing).unwrap_or(usize::MAX));
    for (_, at) in places {
        if let Some(weight) = rounded.get_mut(*at) {
            *weight = (*weight + 1).min(MAX_WEIGHT);
        }
    }
    rounded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn weights_follow_the_shares_and_keep_their_sum() {
        assert_eq!(divide(2048, &[0.25, 0.25]), [1024, 1024]);
        assert_eq!(divide(3072, &[0.5, 0.25, 0.25]), [1536, 768, 768]);
        // The choice "no limit" for all jobs changes nothing for the others.
        assert_eq!(divide(3072, &[1.0, 1.0, 1.0]), [1024, 1024, 1024]);
        assert_eq!(divide(1000, &[1.0, 1.0, 1.0]), [334, 333, 333]);
        assert_eq!(divide(512, &[0.1]), [512], "one job has its own weight");
        assert!(divide(0, &[]).is_empty());
    }

    #[test]
    fn weights_stay_within_what_docker_accepts() {
        assert_eq!(divide(1024, &[1e-9, 1.0]), [2, 1022]);
        assert_eq!(divide(300_000, &[1.0, 0.01]), [262_144, 37_856]);
        assert_eq!(divide(600_000, &[1.0, 1.0]), [262_144, 262_144]);
        assert_eq!(divide(4, &[1.0, 0.5]), [2, 2]);
    }

    proptest! {
        #[test]
        fn sum_is_kept_whatever_the_shares(
            shares in prop::collection::vec(1e-9..=1.0, 1..20),
            own in prop::collection::vec(2_u64..20_000, 20),
        ) {
            let total: u64 = own.iter().take(shares.len()).sum();
            let weights = divide(total, &shares);
            prop_assert!(weights.iter().all(|weight| (MIN_WEIGHT..=MAX_WEIGHT).contains(weight)));
            let most = MAX_WEIGHT * u64::try_from(shares.len()).unwrap();
            prop_assert_eq!(weights.iter().sum::<u64>(), total.min(most));
        }

        #[test]
        fn larger_share_never_has_the_smaller_weight(
            shares in prop::collection::vec(1e-6..=1.0, 2..12),
            total in 1000_u64..100_000,
        ) {
            let weights = divide(total, &shares);
            for a in 0..shares.len() {
                for b in 0..shares.len() {
                    prop_assert!(shares[a] <= shares[b] || weights[a] + 1 >= weights[b]);
                }
            }
        }
    }
}
