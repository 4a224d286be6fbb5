//! The number of steps that a job states.

use serde::Deserialize;

use super::rules::{Checked, require};
use crate::number::floor;
use crate::random::Stream;

/// The number of steps that jobs state, `stated_total` in a scenario's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stated {
    /// The true number.
    #[default]
    Truthful,
    /// A multiple of the number: `{ factor = 0.1 }`.
    Factor(f64),
    /// The number times a factor that is drawn for each job. The factor's logarithm is normal, of
    /// mean 0 and this deviation: `{ error = 0.7 }`.
    Error(f64),
    /// No number with this probability, decided for each job; else the true number:
    /// `{ silent = 0.5 }`.
    Silent(f64),
    /// Always one step more than taken: `"one-more"`.
    OneMore,
}

/// The number of steps that one job states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// This number.
    Steps(u64),
    /// One more than it has taken.
    OneMore,
    /// No number.
    Silent,
}

impl Stated {
    pub(super) fn check(self, field: &str) -> Checked<()> {
        match self {
            Self::Truthful | Self::OneMore => Ok(()),
            Self::Factor(factor) => {
                require(format!("{field}.factor"), factor, "must be above 0", factor > 0.0)
            }
            Self::Error(deviation) => {
                require(format!("{field}.error"), deviation, "must be at least 0", deviation >= 0.0)
            }
            Self::Silent(part) => {
                let fits = (0.0..=1.0).contains(&part);
                let rule = "must be a probability, from 0 to 1";
                require(format!("{field}.silent"), part, rule, fits)
            }
        }
    }

    /// The statement of a job of this many steps: none if it never ends.
    pub(super) fn total(self, steps: f64, mut random: Stream) -> Total {
        if !steps.is_finite() {
            return Total::Silent;
        }
        let times = |factor: f64| Total::Steps(floor((steps * factor).round()).max(1));
        match self {
            Self::Factor(factor) => times(factor),
            Self::Error(deviation) => times((deviation * random.normal()).exp()),
            Self::Silent(part) if random.uniform() < part => Total::Silent,
            Self::Truthful | Self::Silent(_) => times(1.0),
            Self::OneMore => Total::OneMore,
        }
    }
}

impl Total {
    /// The number that it states after `taken` steps.
    pub(crate) fn after(self, taken: u64) -> Option<u64> {
        match self {
            Self::Steps(total) => Some(total),
            Self::OneMore => Some(taken.saturating_add(1)),
            Self::Silent => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use paceline_policy::unit::{count, counter};

    use super::*;
    use crate::random::Purpose;

    const DRAWS: usize = 4000;

    fn totals(stated: Stated) -> Vec<Total> {
        let stream = |index| Stream::new(1, Purpose::Work, index);
        (0..DRAWS).map(|index| stated.total(1000.0, stream(index))).collect()
    }

    #[test]
    fn fixed_totals_are_as_stated() {
        for (stated, expected) in [
            (Stated::Truthful, Total::Steps(1000)),
            (Stated::Factor(0.1), Total::Steps(100)),
            (Stated::Factor(1e-9), Total::Steps(1)),
            (Stated::Silent(1.0), Total::Silent),
            (Stated::Silent(0.0), Total::Steps(1000)),
            (Stated::OneMore, Total::OneMore),
        ] {
            assert!(totals(stated).iter().all(|total| *total == expected), "{stated:?}");
        }
        assert_eq!(Total::OneMore.after(7), Some(8));
    }

    #[test]
    fn drawn_totals_have_the_deviation_and_the_part_of_the_file() {
        let logs: Vec<f64> = totals(Stated::Error(0.7))
            .into_iter()
            .filter_map(|total| total.after(0))
            .map(|steps| (counter(steps) / 1000.0).ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / count(logs.len());
        let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count(logs.len());
        assert!(mean.abs() < 0.05 && (variance.sqrt() - 0.7).abs() < 0.05, "{mean} {variance}");
        let silent = totals(Stated::Silent(0.3));
        let part = count(silent.iter().filter(|total| **total == Total::Silent).count());
        assert!((part / count(DRAWS) - 0.3).abs() < 0.03, "{part}");
    }

    #[test]
    fn job_that_never_ends_states_no_total() {
        let stream = Stream::new(1, Purpose::Work, 0);
        assert_eq!(Stated::Truthful.total(f64::INFINITY, stream), Total::Silent);
    }
}
