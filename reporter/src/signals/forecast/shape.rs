//! The shapes that a loss may take as a function of steps.
//!
//! Steps are in units of the run so far, so the present is 1. Every shape is 1 there and falls; a
//! loss is a constant plus a multiple of it.

/// The variable of a shape, which is `exp(−rate · clock)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Clock {
    /// The steps, `x − 1`: the shape is an exponential towards a floor, as close to a minimum.
    Steps,
    /// Their logarithm, `ln((x + shift) / (1 + shift))`: the shape is a power of `x + shift`, which
    /// falls ever more slowly, as most learning curves do.
    Logarithm {
        /// Added to the steps.
        shift: f64,
    },
}

/// The form of a loss curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    clock: Clock,
    rate: f64,
}

/// With powers that start at the first step, up to a start well before it.
const CLOCKS: [Clock; 5] = [
    Clock::Steps,
    Clock::Logarithm { shift: 0.005 },
    Clock::Logarithm { shift: 0.03 },
    Clock::Logarithm { shift: 0.1 },
    Clock::Logarithm { shift: 0.3 },
];
/// The rates of exponentials.
const RATES: [f64; 5] = [0.8, 1.5, 2.3, 3.5, 6.0];
/// The powers: from nearly a logarithm to one that soon reaches its floor.
const POWERS: [f64; 7] = [0.1, 0.3, 0.5, 0.75, 1.1, 1.6, 2.4];

/// The prior probability of an exponential, relative to that of a power.
const EXPONENTIALS: f64 = 0.2;
/// The median of [`Shape::bend`], and the standard deviation of its logarithm.
const BEND: (f64, f64) = (1.6, 0.3);

impl Clock {
    /// The clocks of all shapes.
    pub(crate) const ALL: [Self; 5] = CLOCKS;

    /// Its value; 0 at present.
    pub(crate) fn at(self, x: f64) -> f64 {
        match self {
            Self::Steps => x - 1.0,
            Self::Logarithm { shift } => ((x + shift) / (1.0 + shift)).ln(),
        }
    }

    /// The shapes with this clock.
    pub(crate) fn shapes(self) -> impl Iterator<Item = Shape> {
        let rates: &[f64] = match self {
            Self::Steps => &RATES,
            Self::Logarithm { .. } => &POWERS,
        };
        rates.iter().map(move |rate| Shape { clock: self, rate: *rate })
    }
}

impl Shape {
    /// How far it is above its present value when its clock is `clock`.
    pub(crate) fn by_clock(self, clock: f64) -> f64 {
        (-self.rate * clock).exp() - 1.0
    }

    /// How far it is above its present value at step `x`.
    pub(crate) fn above_present(self, x: f64) -> f64 {
        self.by_clock(self.clock.at(x))
    }

    /// Its prior probability, relative to the likeliest.
    ///
    /// Both widths and the preference for powers come from the loss curves that the method was tuned
    /// on: extrapolated to twice the steps, shapes with a smaller bend were too optimistic.
    pub(crate) fn prior(self) -> f64 {
        let (usual, spread) = BEND;
        let off = (self.bend() / usual).ln() / spread;
        let family = match self.clock {
            Clock::Steps => EXPONENTIALS,
            Clock::Logarithm { .. } => 1.0,
        };
        family * (-0.5 * off * off).exp()
    }

    /// How fast its slope decreases at present, as the rate of an exponential.
    fn bend(self) -> f64 {
        match self.clock {
            Clock::Steps => self.rate,
            Clock::Logarithm { shift } => (self.rate + 1.0) / (1.0 + shift),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Shape> {
        Clock::ALL.into_iter().flat_map(Clock::shapes)
    }

    #[test]
    fn every_shape_falls_from_the_start_on_and_is_0_at_present() {
        for shape in all() {
            assert!(shape.above_present(1.0).abs() < 1e-12, "{shape:?}");
            let values: Vec<f64> =
                (0..=1000).map(|at| shape.above_present(f64::from(at) / 10.0)).collect();
            assert!(values.iter().all(|value| value.is_finite()), "{shape:?}");
            assert!(values.windows(2).all(|pair| pair[1] < pair[0] || pair[1] < -0.999_999));
        }
    }

    #[test]
    fn the_bend_is_the_slope_of_the_logarithm_of_the_slope() {
        for shape in all() {
            let slope = |x: f64| shape.above_present(x + 1e-4) - shape.above_present(x - 1e-4);
            let bend = (slope(0.99) / slope(1.01)).ln() / 0.02;
            assert!((bend / shape.bend() - 1.0).abs() < 1e-2, "{shape:?}: {bend}");
        }
    }
}
