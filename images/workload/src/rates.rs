//! Learning rates that depend on the step number.

use std::f64::consts::PI;

/// A rate that rises evenly to its highest value and then falls to 0 as half a cosine wave (Loshchilov
/// and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017; the warm-up after Goyal et
/// al., "Accurate, Large Minibatch SGD", 2017).
#[derive(Clone, Copy, Debug)]
pub struct WarmUpCosine {
    highest: f64,
    warm_up: u64,
    steps: u64,
}

impl WarmUpCosine {
    /// Rates for this many steps, of which the first ones warm up.
    pub fn new(highest: f64, warm_up: u64, steps: u64) -> Self {
        Self { highest, warm_up: warm_up.min(steps), steps }
    }

    /// The rate of a step, counted from 1. It is above 0 up to the last one.
    pub fn at(&self, step: u64) -> f64 {
        let Self { highest, warm_up, steps } = *self;
        if step <= warm_up {
            return highest * ratio(step, warm_up);
        }
        let done = ratio((step - 1 - warm_up).min(steps - warm_up), steps - warm_up);
        highest * 0.5 * (1.0 + (PI * done).cos())
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "only their ratio matters")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rate_rises_evenly_and_falls_as_cosine() {
        let rates = WarmUpCosine::new(0.4, 4, 12);
        let near = |step, rate: f64| {
            assert!((rates.at(step) - rate).abs() < 1e-12, "{step}: {}", rates.at(step));
        };
        near(1, 0.1);
        near(4, 0.4);
        near(5, 0.4);
        near(9, 0.2);
        near(13, 0.0);
    }

    proptest! {
        #[test]
        fn every_rate_is_above_zero_and_at_most_highest(
            highest in 1e-6_f64..10.0,
            warm_up in 0_u64..1000,
            steps in 1_u64..1000,
            step in 1_u64..2000,
        ) {
            let rates = WarmUpCosine::new(highest, warm_up, steps);
            prop_assert!((0.0..=highest).contains(&rates.at(step)));
            prop_assert!(step > steps || rates.at(step) > 0.0);
            let rises = step < warm_up.min(steps);
            prop_assert!(rises == (rates.at(step + 1) > rates.at(step)) || step >= steps);
        }
    }
}
