//! From step counts to a rate.

/// Seconds from the first step until measuring begins: first steps are slower, while caches and
/// thread pools fill.
const WARM_UP: f64 = 5.0;

/// Seconds over which the rate is measured, if there are enough steps.
const MIN_SPAN: f64 = 10.0;

/// With this many steps, counting whole steps errs by at most 5 %.
const MIN_STEPS: u64 = 20;

/// After this many seconds the rate of a job with slow steps is accepted as it is.
const MAX_SPAN: f64 = 90.0;

/// Measures a rate of steps.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// When the first step was seen.
    warm_from: Option<f64>,
    /// Where measuring began: the time and the steps until then.
    from: Option<(f64, u64)>,
}

impl Meter {
    /// Takes the count of `steps` at `t` seconds; returns steps per second once known.
    pub(super) fn read(&mut self, t: f64, steps: u64) -> Option<f64> {
        if steps == 0 {
            return None;
        }
        if t - *self.warm_from.get_or_insert(t) < WARM_UP {
            return None;
        }
        let (began, before) = *self.from.get_or_insert((t, steps));
        let (span, done) = (t - began, steps.saturating_sub(before));
        let enough = done >= MIN_STEPS || (done > 0 && span >= MAX_SPAN);
        // A count below 2^32 is exact; a job does not do more steps in 90 s.
        let done = f64::from(u32::try_from(done).unwrap_or(u32::MAX));
        (span >= MIN_SPAN && enough).then_some(done / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate and the second at which it was known, of a job with `steps(t)` steps after `t` seconds.
    fn measure(steps: impl Fn(u32) -> u64) -> Option<(f64, u32)> {
        let mut meter = Meter::default();
        (0..200).find_map(|t| meter.read(f64::from(t), steps(t)).map(|rate| (rate, t)))
    }

    #[test]
    fn warm_up_is_left_out() {
        let slow_at_first = |t: u32| u64::from(t.saturating_sub(3) * 100 + u32::from(t < 5));
        let (rate, at) = measure(slow_at_first).expect("a rate");
        assert!((rate - 100.0).abs() < 1e-9, "{rate}");
        assert_eq!(at, 15, "5 s of warm-up and 10 s of measuring");
    }

    #[test]
    fn slow_steps_are_measured_for_longer() {
        let one_in_four_seconds = |t: u32| u64::from(t / 4);
        let (rate, at) = measure(one_in_four_seconds).expect("a rate");
        assert!((rate - 0.25).abs() < 0.02, "{rate}");
        assert!(at > 80, "{at}");
    }

    #[test]
    fn job_without_steps_has_no_rate() {
        assert_eq!(measure(|_| 0), None);
        assert_eq!(measure(|_| 1), None);
    }
}
