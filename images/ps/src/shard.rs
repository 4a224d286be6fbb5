//! A part of a model's parameters, and the way gradients update it.

/// The step sizes of Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// The step size.
    pub learning_rate: f64,
    /// The decay of the mean of gradients.
    pub beta1: f32,
    /// The decay of the mean of their squares.
    pub beta2: f32,
    /// Avoids a division by zero.
    pub epsilon: f32,
}

impl Default for Adam {
    fn default() -> Self {
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }
}

/// Parameters with the state of their optimizer.
#[derive(Clone, Debug)]
pub struct Shard {
    adam: Adam,
    parameters: Vec<f32>,
    means: Vec<f32>,
    squares: Vec<f32>,
    /// Products of the betas so far: Adam's corrections for its start at zero.
    decayed: (f64, f64),
    version: u64,
}

impl Shard {
    /// Parameters before the first gradient.
    pub fn new(parameters: Vec<f32>, adam: Adam) -> Self {
        let zeros = vec![0.0; parameters.len()];
        Self {
            adam,
            means: zeros.clone(),
            squares: zeros,
            parameters,
            decayed: (1.0, 1.0),
            version: 0,
        }
    }

    /// The current parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The number of gradients applied to them.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Applies a gradient, as Adam does, and returns whether it did. A gradient of another length, or
    /// with a number that is not finite, is ignored: it would spoil the parameters of all.
    pub fn improve(&mut self, gradient: &[f32]) -> bool {
        if gradient.len() != self.parameters.len() || !gradient.iter().all(|x| x.is_finite()) {
            return false;
        }
        let Adam { learning_rate, beta1, beta2, epsilon } = self.adam;
        self.version += 1;
        self.decayed.0 *= f64::from(beta1);
        self.decayed.1 *= f64::from(beta2);
        let step = learning_rate / (1.0 - self.decayed.0);
        let (step, scale) = (single(step), single((1.0 - self.decayed.1).sqrt().recip()));
        let moments = self.means.iter_mut().zip(&mut self.squares);
        for ((parameter, (mean, square)), slope) in
            self.parameters.iter_mut().zip(moments).zip(gradient)
        {
            *mean += (1.0 - beta1) * (slope - *mean);
            *square += (1.0 - beta2) * (slope * slope - *square);
            *parameter -= step * *mean / (square.sqrt() * scale + epsilon);
        }
        true
    }
}

/// Rounds to the precision of the parameters.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "only a cast rounds a number to single precision"
)]
fn single(number: f64) -> f32 {
    number as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_step_is_step_size_for_any_slope() {
        let mut shard = Shard::new(vec![1.0, 1.0, 1.0], Adam::default());
        assert!(shard.improve(&[10.0, -0.01, 0.0]));
        for (parameter, expected) in shard.parameters().iter().zip([0.999, 1.001, 1.0]) {
            assert!((parameter - expected).abs() < 1e-6, "{parameter}");
        }
        assert_eq!(shard.version(), 1);
    }

    #[test]
    fn quadratic_loss_is_minimized() {
        let adam = Adam { learning_rate: 0.05, ..Adam::default() };
        let mut shard = Shard::new(vec![3.0, -2.0], adam);
        for _ in 0..500 {
            let slopes: Vec<f32> = shard.parameters().iter().map(|x| 2.0 * x).collect();
            assert!(shard.improve(&slopes));
        }
        assert!(shard.parameters().iter().all(|x| x.abs() < 1e-2), "{shard:?}");
    }

    #[test]
    fn invalid_gradient_changes_nothing() {
        let mut shard = Shard::new(vec![1.0, 2.0], Adam::default());
        for wrong in [&[1.0][..], &[f32::NAN, 0.0], &[0.0, f32::INFINITY], &[0.0; 3]] {
            assert!(!shard.improve(wrong), "{wrong:?}");
        }
        assert_eq!((shard.parameters(), shard.version()), (&[1.0, 2.0][..], 0));
    }
}
