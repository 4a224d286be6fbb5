//! One figure of an arm over its repeats.

use paceline_sim::metrics::Interval;
use serde::{Deserialize, Serialize};

use super::trajectory::mean;

/// One run's value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunValue {
    pub(crate) repeat: u32,
    pub(crate) value: f64,
    /// Whether other work disturbed the run.
    pub(crate) disturbed: bool,
}

/// A figure, and what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The mean over the repeats, and half of the interval that contains the true mean with 95 %
    /// probability. Disturbed runs have no interval.
    #[serde(flatten)]
    pub(crate) measured: Interval,
    /// Whether the mean is over disturbed runs, because the arm has no others.
    #[serde(default)]
    pub(crate) disturbed: bool,
    /// Whether the mean leaves out runs that lack the figure, for example because a job did not end.
    #[serde(default)]
    pub(crate) partial: bool,
    /// The largest distance of a repeat from the mean; `None` for one repeat and for disturbed runs.
    pub(crate) spread: Option<f64>,
    /// The difference from `none`, repeat by repeat, so that effects on both cancel out.
    pub(crate) difference: Option<Interval>,
    /// Whether that difference involves a disturbed run. Then it has no interval.
    #[serde(default)]
    pub(crate) difference_disturbed: bool,
    /// The mean of `none` over those repeats.
    pub(crate) without: Option<f64>,
    /// The simulator's prediction, fitted without this arm.
    pub(crate) predicted: Option<f64>,
    /// The figure divided by the oracle's.
    pub(crate) over_oracle: Option<f64>,
    /// The figure divided by the bound that no policy can beat.
    pub(crate) over_bound: Option<f64>,
}

impl Figure {
    /// The figure over an arm's `own` runs, compared with those of `none` in the same repeats. Disturbed
    /// runs of `none` are used only if no repeat has an undisturbed one.
    pub(crate) fn new(own: &[RunValue], baseline: &[RunValue]) -> Option<Self> {
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
            partial: false,
            spread: (values.len() > 1 && !disturbed).then_some(off),
            difference: interval(&differences, difference_disturbed),
            difference_disturbed,
            without: mean(&without),
            predicted: None,
            over_oracle: None,
            over_bound: None,
        })
    }

    /// The difference in percent of the figure of `none` in the same repeats.
    pub(crate) fn change(&self) -> Option<f64> {
        let difference = self.difference?.mean;
        let without = self.without.filter(|without| without.abs() > 0.0)?;
        Some(100.0 * difference / without)
    }

    /// Whether the interval of the difference excludes 0.
    pub(crate) fn certain(&self) -> bool {
        let certain = |it: Interval| it.half.is_some_and(|half| it.mean.abs() > half);
        self.difference.is_some_and(certain)
    }
}

/// For each run of `own`, its difference from the run of `none` of the same repeat, and the latter's
/// value. Only disturbed, or only undisturbed, runs of `none` are used.
fn differences(own: &[RunValue], none: &[RunValue], disturbed: bool) -> Vec<(f64, f64)> {
    let pair = |its: &RunValue| {
        let same = |other: &&RunValue| other.repeat == its.repeat && other.disturbed == disturbed;
        let other = none.iter().find(same)?.value;
        Some((its.value - other, other))
    };
    own.iter().filter_map(pair).collect()
}

/// The mean with its interval; without the interval for disturbed runs.
fn interval(values: &[f64], disturbed: bool) -> Option<Interval> {
    let found = Interval::from_values(values)?;
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
        Figure::new(&values(own), &values(none))
    }

    fn run(repeat: u32, value: f64, disturbed: bool) -> RunValue {
        RunValue { repeat, value, disturbed }
    }

    #[test]
    fn disturbed_runs_have_a_mean_without_an_interval() {
        let own = [run(1, 90.0, true), run(2, 110.0, true)];
        let none = [run(1, 80.0, true), run(2, 100.0, false)];
        let figure = Figure::new(&own, &none).unwrap();
        assert_eq!(figure.measured, Interval { mean: 100.0, half: None });
        assert_eq!((figure.disturbed, figure.spread), (true, None));
        assert_eq!(figure.difference, Some(Interval { mean: 10.0, half: None }));
        assert_eq!((figure.without, figure.difference_disturbed), (Some(100.0), true));
        assert!(!figure.certain());
    }

    #[test]
    fn difference_from_disturbed_runs_has_no_interval() {
        let own = [run(1, 90.0, false), run(2, 92.0, false)];
        let none = [run(1, 100.0, true), run(2, 100.0, true)];
        let figure = Figure::new(&own, &none).unwrap();
        assert!(!figure.disturbed && figure.measured.half.is_some(), "{figure:?}");
        assert_eq!(figure.difference, Some(Interval { mean: -9.0, half: None }));
        assert!(figure.difference_disturbed && !figure.certain());
    }

    #[test]
    fn difference_skips_disturbed_runs_of_none_if_it_can() {
        let own = [run(1, 90.0, false), run(2, 92.0, false)];
        let none = [run(1, 100.0, false), run(2, 500.0, true)];
        let figure = Figure::new(&own, &none).unwrap();
        assert_eq!((figure.without, figure.change()), (Some(100.0), Some(-10.0)));
        assert!(!figure.difference_disturbed);
        let alone = Figure::new(&own, &[run(3, 100.0, true)]).unwrap();
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
    fn change_uses_the_compared_repeats_only() {
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
        fn common_offset_of_all_runs_does_not_change_a_difference(
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
