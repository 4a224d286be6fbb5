//! One figure of an arm over its repeats.

use paceline_sim::metrics::Interval;
use serde::{Deserialize, Serialize};

use super::course::mean;

/// A figure, and what it is held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The mean over the repeats that count, and half of the interval that holds the true mean with
    /// 95 % probability.
    #[serde(flatten)]
    pub(crate) measured: Interval,
    /// By how much the farthest repeat is off the mean; `None` of one repeat.
    pub(crate) spread: Option<f64>,
    /// What it differs by from `none`, repeat by repeat: what both have in common is no part of it.
    pub(crate) difference: Option<Interval>,
    /// The mean of `none` over those repeats.
    pub(crate) without: Option<f64>,
    /// What the simulator says of it, fitted without this arm.
    pub(crate) predicted: Option<f64>,
    /// The figure over the best arm's that knows the future.
    pub(crate) over_oracle: Option<f64>,
    /// The figure over what no policy can beat.
    pub(crate) over_bound: Option<f64>,
}

impl Figure {
    /// Of one arm's repeats, each with its number; `baseline` are those of `none`.
    pub(crate) fn of(own: &[(u32, f64)], baseline: &[(u32, f64)]) -> Option<Self> {
        let values: Vec<f64> = own.iter().map(|(_, value)| *value).collect();
        let measured = Interval::of(&values)?;
        let off = values.iter().map(|value| (value - measured.mean).abs()).fold(0.0, f64::max);
        let pair = |(repeat, value): &(u32, f64)| {
            let other = baseline.iter().find(|(other, _)| other == repeat)?;
            Some((value - other.1, other.1))
        };
        let (pairs, without): (Vec<f64>, Vec<f64>) = own.iter().filter_map(pair).unzip();
        Some(Self {
            measured,
            spread: (values.len() > 1).then_some(off),
            difference: Interval::of(&pairs),
            without: mean(&without),
            predicted: None,
            over_oracle: None,
            over_bound: None,
        })
    }

    /// In percent of what it is under `none` in the same repeats; below 0 is less.
    pub(crate) fn change(&self) -> Option<f64> {
        let difference = self.difference?.mean;
        let without = self.without.filter(|without| without.abs() > 0.0)?;
        Some(100.0 * difference / without)
    }

    /// Whether the whole interval of the difference is on one side of 0.
    pub(crate) fn certain(&self) -> bool {
        let certain = |it: Interval| it.half.is_some_and(|half| it.mean.abs() > half);
        self.difference.is_some_and(certain)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn differences_are_of_the_same_repeat() {
        let figure = Figure::of(&[(1, 90.0), (3, 110.0)], &[(1, 100.0), (2, 500.0), (3, 120.0)]);
        let figure = figure.unwrap();
        assert_eq!((figure.measured.mean, figure.spread), (100.0, Some(10.0)));
        assert_eq!(figure.difference, Some(Interval { mean: -10.0, half: Some(0.0) }));
        assert!(figure.certain());
        let change = figure.change().unwrap();
        assert!((change + 100.0 * 10.0 / 110.0).abs() < 1e-9, "{change}");
    }

    #[test]
    fn a_change_is_of_the_repeats_that_are_compared() {
        let figure = Figure::of(&[(1, 90.0), (2, 200.0)], &[(1, 100.0)]).unwrap();
        assert_eq!((figure.measured.mean, figure.without), (145.0, Some(100.0)));
        assert_eq!(figure.change(), Some(-10.0));
    }

    #[test]
    fn one_repeat_has_no_interval_and_is_never_certain() {
        let figure = Figure::of(&[(1, 90.0)], &[(1, 100.0)]).unwrap();
        assert_eq!((figure.measured.half, figure.spread), (None, None));
        assert!(!figure.certain());
        assert_eq!(Figure::of(&[], &[(1, 100.0)]), None);
        assert_eq!(Figure::of(&[(1, 9.0)], &[]).unwrap().change(), None);
    }

    proptest! {
        #[test]
        fn what_all_runs_have_in_common_is_no_part_of_a_difference(
            repeats in prop::collection::vec((1.0..100.0, -5.0..5.0), 2..6),
            common in -50.0..50.0,
        ) {
            let numbered = || (1_u32..).zip(&repeats);
            let none: Vec<_> = numbered().map(|(at, (base, _))| (at, *base)).collect();
            let own: Vec<_> = numbered().map(|(at, (base, more))| (at, base + more)).collect();
            let add = |all: &[(u32, f64)]| all.iter().map(|(at, x)| (*at, x + common)).collect::<Vec<_>>();
            let one = Figure::of(&own, &none).unwrap().difference.unwrap();
            let other = Figure::of(&add(&own), &add(&none)).unwrap().difference.unwrap();
            prop_assert!((one.mean - other.mean).abs() < 1e-9);
            prop_assert!((one.half.unwrap() - other.half.unwrap()).abs() < 1e-6);
        }
    }
}
