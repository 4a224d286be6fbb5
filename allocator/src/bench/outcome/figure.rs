//! One figure of an arm over its repeats.

use paceline_sim::metrics::Interval;
use serde::{Deserialize, Serialize};

use super::course::mean;

/// One run's value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunValue {
    pub(crate) repeat: u32,
    pub(crate) value: f64,
    /// Whether other work disturbed the run.
    pub(crate) disturbed: bool,
}

/// A figure, and what it is held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The mean over the repeats, and half of the interval that holds the true mean with 95 %
    /// probability; of disturbed runs there is no interval.
    #[serde(flatten)]
    pub(crate) measured: Interval,
    /// Whether the mean is over disturbed runs: the arm has no others.
    #[serde(default)]
    pub(crate) disturbed: bool,
    /// By how much the farthest repeat is off the mean; `None` of one repeat, and of disturbed runs.
    pub(crate) spread: Option<f64>,
    /// What it differs by from `none`, repeat by repeat: what both have in common is no part of it.
    pub(crate) difference: Option<Interval>,
    /// Whether a disturbed run is on either side of that difference, which then has no interval.
    #[serde(default)]
    pub(crate) difference_disturbed: bool,
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
    /// Of the runs that an arm's figures are means of, beside all runs of `none`. An undisturbed run
    /// of `none` is compared where there is one of the same repeat, else a disturbed one.
    pub(crate) fn of(own: &[RunValue], baseline: &[RunValue]) -> Option<Self> {
        let disturbed = own.iter().any(|its| its.disturbed);
        let values: Vec<f64> = own.iter().map(|its| its.value).collect();
        let measured = interval(&values, disturbed)?;
        let off = values.iter().map(|value| (value - measured.mean).abs()).fold(0.0, f64::max);
        let clean = differences(own, baseline, false);
        let beside_disturbed = clean.is_empty();
        let pairs = if beside_disturbed { differences(own, baseline, true) } else { clean };
        let difference_disturbed = !pairs.is_empty() && (disturbed || beside_disturbed);
        let (differences, without): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        Some(Self {
            measured,
            disturbed,
            spread: (values.len() > 1 && !disturbed).then_some(off),
            difference: interval(&differences, difference_disturbed),
            difference_disturbed,
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

/// What each run of `own` differs by from that of `none` of the same repeat, and the latter's value;
/// of disturbed or of undisturbed runs of `none` alone.
fn differences(own: &[RunValue], none: &[RunValue], disturbed: bool) -> Vec<(f64, f64)> {
    let pair = |its: &RunValue| {
        let same = |other: &&RunValue| other.repeat == its.repeat && other.disturbed == disturbed;
        let other = none.iter().find(same)?.value;
        Some((its.value - other, other))
    };
    own.iter().filter_map(pair).collect()
}

/// The mean with its interval, which disturbed runs do not have.
fn interval(values: &[f64], disturbed: bool) -> Option<Interval> {
    let found = Interval::of(values)?;
    Some(Interval { half: found.half.filter(|_| !disturbed), ..found })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The figure of undisturbed runs, each with its repeat.
    fn clean(own: &[(u32, f64)], none: &[(u32, f64)]) -> Option<Figure> {
        let values = |all: &[(u32, f64)]| -> Vec<RunValue> {
            let value = |(repeat, value): &(u32, f64)| run(*repeat, *value, false);
            all.iter().map(value).collect()
        };
        Figure::of(&values(own), &values(none))
    }

    fn run(repeat: u32, value: f64, disturbed: bool) -> RunValue {
        RunValue { repeat, value, disturbed }
    }

    #[test]
    fn disturbed_runs_have_a_mean_without_an_interval() {
        let own = [run(1, 90.0, true), run(2, 110.0, true)];
        let none = [run(1, 80.0, true), run(2, 100.0, false)];
        let figure = Figure::of(&own, &none).unwrap();
        assert_eq!(figure.measured, Interval { mean: 100.0, half: None });
        assert_eq!((figure.disturbed, figure.spread), (true, None));
        assert_eq!(figure.difference, Some(Interval { mean: 10.0, half: None }));
        assert_eq!((figure.without, figure.difference_disturbed), (Some(100.0), true));
        assert!(!figure.certain());
    }

    #[test]
    fn a_difference_from_disturbed_runs_of_none_has_no_interval() {
        let own = [run(1, 90.0, false), run(2, 92.0, false)];
        let none = [run(1, 100.0, true), run(2, 100.0, true)];
        let figure = Figure::of(&own, &none).unwrap();
        assert!(!figure.disturbed && figure.measured.half.is_some(), "{figure:?}");
        assert_eq!(figure.difference, Some(Interval { mean: -9.0, half: None }));
        assert!(figure.difference_disturbed && !figure.certain());
    }

    #[test]
    fn a_difference_leaves_disturbed_runs_of_none_out_where_it_can() {
        let own = [run(1, 90.0, false), run(2, 92.0, false)];
        let none = [run(1, 100.0, false), run(2, 500.0, true)];
        let figure = Figure::of(&own, &none).unwrap();
        assert_eq!((figure.without, figure.change()), (Some(100.0), Some(-10.0)));
        assert!(!figure.difference_disturbed);
        let alone = Figure::of(&own, &[run(3, 100.0, true)]).unwrap();
        assert_eq!((alone.difference, alone.difference_disturbed), (None, false));
    }

    #[test]
    fn differences_are_of_the_same_repeat() {
        let figure = clean(&[(1, 90.0), (3, 110.0)], &[(1, 100.0), (2, 500.0), (3, 120.0)]);
        let figure = figure.unwrap();
        assert_eq!((figure.measured.mean, figure.spread), (100.0, Some(10.0)));
        assert_eq!(figure.difference, Some(Interval { mean: -10.0, half: Some(0.0) }));
        assert!(figure.certain());
        let change = figure.change().unwrap();
        assert!((change + 100.0 * 10.0 / 110.0).abs() < 1e-9, "{change}");
    }

    #[test]
    fn a_change_is_of_the_repeats_that_are_compared() {
        let figure = clean(&[(1, 90.0), (2, 200.0)], &[(1, 100.0)]).unwrap();
        assert_eq!((figure.measured.mean, figure.without), (145.0, Some(100.0)));
        assert_eq!(figure.change(), Some(-10.0));
    }

    #[test]
    fn one_repeat_has_no_interval_and_is_never_certain() {
        let figure = clean(&[(1, 90.0)], &[(1, 100.0)]).unwrap();
        assert_eq!((figure.measured.half, figure.spread), (None, None));
        assert!(!figure.certain());
        assert_eq!(clean(&[], &[(1, 100.0)]), None);
        assert_eq!(clean(&[(1, 9.0)], &[]).unwrap().change(), None);
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
            let one = clean(&own, &none).unwrap().difference.unwrap();
            let other = clean(&add(&own), &add(&none)).unwrap().difference.unwrap();
            prop_assert!((one.mean - other.mean).abs() < 1e-9);
            prop_assert!((one.half.unwrap() - other.half.unwrap()).abs() < 1e-6);
        }
    }
}
