use crate::unit::saturate;
use crate::variant::Variant;

/// Below this, a sum of qualities has not grown (E5).
const EPSILON: f64 = 1e-9;
/// This many frames in a row without a step back make the interval longer (E6).
const CALM_RUNS: u32 = 3;

/// Algorithm 3: when `DQoES` runs next. The interval grows while the qualities settle, and shrinks
/// when a satisfied job no longer is.
///
/// In print, the interval has no bounds (E7), the comparison of `Q_B` says that the slow jobs get
/// worse (E4), and a set that stays empty keeps the interval from ever growing (E5).
#[derive(Debug)]
pub(super) struct Listener {
    variant: Variant,
    base: f64,
    interval: f64,
    calm: u32,
    last: Qualities,
}

/// The sums of one run (lines 2 to 11; empty sets count as 0, E2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Qualities {
    /// `Q_G`: the sum of q over the jobs that are faster than asked.
    pub(super) ahead: f64,
    /// `Q_B`: the same over those that are slower.
    pub(super) behind: f64,
    /// `Q_S`: how many jobs are as asked.
    pub(super) satisfied: usize,
}

impl Listener {
    pub(super) fn new(variant: Variant, base: f64) -> Self {
        Self { variant, base, interval: base, calm: 0, last: Qualities::default() }
    }

    /// The initial interval, to which it returns.
    pub(super) fn base(&self) -> f64 {
        self.base
    }

    /// Records the sums of a run and returns the seconds until the next. `disturbed` means that jobs or
    /// targets differ from the previous run (E8).
    pub(super) fn next_interval(&mut self, disturbed: bool, now: Qualities) -> f64 {
        if disturbed {
            (self.interval, self.calm) = (self.base, 0);
        } else if now.satisfied < self.last.satisfied {
            // E11: both this condition and the next may hold; this one is safer.
            (self.interval, self.calm) = ((self.interval / 2.0).max(self.base / 4.0), 0);
        } else if self.settles(now) {
            self.calm += 1;
            if self.calm == CALM_RUNS {
                let longer = (2.0 * self.interval).min(16.0 * self.base);
                (self.interval, self.calm) = (saturate(longer), 0);
            }
        } else {
            self.calm = 0;
        }
        self.last = now;
        self.interval
    }

    /// Line 12.
    fn settles(&self, now: Qualities) -> bool {
        let approaches = |now: f64, last: f64| match self.variant {
            Variant::Resolved => now.abs() <= last.abs() + EPSILON,
            Variant::Published => now.abs() < last.abs(),
        };
        approaches(now.ahead, self.last.ahead) && approaches(now.behind, self.last.behind)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A listener that has heard these, undisturbed but for the first, and what it said.
    fn after(variant: Variant, runs: &[(f64, f64, usize)]) -> (Listener, Vec<f64>) {
        let mut listener = Listener::new(variant, 15.0);
        let intervals = runs.iter().enumerate().map(|(at, run)| {
            let (ahead, behind, satisfied) = *run;
            listener.next_interval(at == 0, Qualities { ahead, behind, satisfied })
        });
        let intervals = intervals.collect();
        (listener, intervals)
    }

    const SETTLING: [(f64, f64, usize); 4] =
        [(30.0, -40.0, 0), (20.0, -30.0, 2), (10.0, -20.0, 3), (5.0, -10.0, 4)];

    /// The same, and then four runs that do not differ.
    fn settled() -> Vec<(f64, f64, usize)> {
        SETTLING.into_iter().chain([(0.0, -8.0, 6); 4]).collect()
    }

    #[test]
    fn three_improving_runs_in_a_row_double_the_interval() {
        for variant in [Variant::Resolved, Variant::Published] {
            assert_eq!(after(variant, &SETTLING).1, [15.0, 15.0, 15.0, 30.0]);
        }
    }

    #[test]
    fn a_settled_system_backs_off_further_except_in_print() {
        // E5: no job is ahead, and what does not change is not strictly below.
        let resolved = after(Variant::Resolved, &settled()).1;
        assert_eq!(resolved[4..], [30.0, 30.0, 60.0, 60.0]);
        let published = after(Variant::Published, &settled()).1;
        assert_eq!(published[4..], [30.0; 4]);
    }

    #[test]
    fn a_satisfied_job_that_no_longer_is_halves_the_interval() {
        let (mut listener, _) = after(Variant::Resolved, &settled());
        // E11: Q_G and Q_B have not grown, but the test of S comes first.
        let less = Qualities { ahead: 0.0, behind: -8.0, satisfied: 5 };
        assert!((listener.next_interval(false, less) - 30.0).abs() < 1e-12);
        assert_eq!(listener.calm, 0);
    }

    #[test]
    fn a_job_that_ends_brings_back_the_base_interval() {
        // E8: there are fewer satisfied jobs, but none has been disturbed.
        let (mut listener, _) = after(Variant::Resolved, &settled());
        let less = Qualities { ahead: 0.0, behind: -8.0, satisfied: 5 };
        assert!((listener.next_interval(true, less) - 15.0).abs() < 1e-12);
    }

    #[test]
    fn setback_restarts_the_count() {
        let runs = [(9.0, -9.0, 0), (8.0, -8.0, 0), (7.0, -7.0, 0), (7.1, -6.0, 0)];
        for variant in [Variant::Resolved, Variant::Published] {
            let (listener, intervals) = after(variant, &runs);
            assert_eq!((listener.calm, intervals), (0, vec![15.0; 4]));
        }
    }

    #[test]
    fn noise_below_epsilon_does_not_count_as_a_setback() {
        let runs = [(1.0, 0.0, 1), (1.0 + 5e-10, 0.0, 1), (1.0, -5e-10, 1), (1.0, 0.0, 1)];
        assert_eq!(after(Variant::Resolved, &runs).1[3..], [30.0]);
        assert_eq!(after(Variant::Published, &runs).1[3..], [15.0]);
    }

    #[test]
    fn interval_stays_within_a_quarter_and_16_times_its_base() {
        let (listener, _) = after(Variant::Resolved, &[(0.0, 0.0, 0); 40]);
        assert!((listener.interval - 240.0).abs() < 1e-12);
        let falling: Vec<_> = (0..10).rev().map(|satisfied| (0.0, 0.0, satisfied)).collect();
        let (listener, _) = after(Variant::Resolved, &falling);
        assert!((listener.interval - 3.75).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn every_interval_is_finite_and_bounded(
            base in prop_oneof![0.1..100.0, Just(f64::MAX), Just(f64::MIN_POSITIVE)],
            runs in prop::collection::vec((any::<bool>(), any::<f64>(), any::<f64>(), 0..5_usize), 0..40)
        ) {
            let mut listener = Listener::new(Variant::Resolved, base);
            for (disturbed, ahead, behind, satisfied) in runs {
                let (ahead, behind) = (saturate(ahead), saturate(behind));
                let interval = listener.next_interval(disturbed, Qualities { ahead, behind, satisfied });
                prop_assert!(interval.is_finite() && interval > 0.0);
                prop_assert!((base / 4.0..=16.0 * base).contains(&interval));
            }
        }
    }
}
