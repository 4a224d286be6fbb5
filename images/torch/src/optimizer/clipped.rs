//! Gradients with a bounded norm.

use std::collections::BTreeMap;

use tch::{Kind, TchError, Tensor, no_grad};

use super::Optimizer;

/// Keeps the quotient finite where all gradients are 0, as PyTorch's `clip_grad_norm_` does.
const EPSILON: f64 = 1e-6;

/// An optimizer that is given gradients whose norm, over all parameters together, has a bound
/// (Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013).
#[derive(Debug)]
pub struct Clipped<O> {
    inner: O,
    max_norm: f64,
}

impl<O: Optimizer> Clipped<O> {
    /// An optimizer whose gradients are scaled down to this norm where they exceed it.
    pub fn new(inner: O, max_norm: f64) -> Self {
        Self { inner, max_norm }
    }
}

/// The gradients, all scaled by the same factor where their norm is too large.
fn clip(gradients: &[Tensor], max_norm: f64) -> Result<Vec<Tensor>, TchError> {
    no_grad(|| {
        let known = gradients.iter().filter(|gradient| gradient.defined());
        let norms = known.map(Tensor::f_norm).collect::<Result<Vec<_>, _>>()?;
        if norms.is_empty() {
            return Ok(Vec::new());
        }
        let norm = Tensor::f_stack(&norms, 0)?.f_norm()?;
        let quotient = norm.f_add_scalar(EPSILON)?.f_reciprocal()?.f_mul_scalar(max_norm)?;
        let factor = quotient.f_clamp_max(1.0)?.f_to_kind(Kind::Float)?;
        let clip = |gradient: &Tensor| {
            if gradient.defined() { gradient.f_mul(&factor) } else { Ok(Tensor::new()) }
        };
        gradients.iter().map(clip).collect()
    })
}

impl<O: Optimizer> Optimizer for Clipped<O> {
    fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError> {
        self.inner.step(&clip(gradients, self.max_norm)?)
    }

    fn tell(&mut self, loss: f64) {
        self.inner.tell(loss);
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        self.inner.state()
    }

    fn restore(&mut self, saved: &BTreeMap<String, Tensor>) -> Result<(), TchError> {
        self.inner.restore(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_gradients_are_scaled_in_same_direction() {
        let gradients = [Tensor::from_slice(&[3.0_f32, 0.0]), Tensor::from_slice(&[4.0_f32])];
        let numbers = |max_norm| -> Vec<f64> {
            let clipped = clip(&gradients, max_norm).unwrap();
            clipped
                .iter()
                .flat_map(|it| Vec::<f64>::try_from(it.to_kind(Kind::Double)).unwrap())
                .collect()
        };
        // Their norm is 5.
        assert_eq!(numbers(6.0), [3.0, 0.0, 4.0]);
        let halves = numbers(2.5);
        let apart = halves.iter().zip([1.5, 0.0, 2.0]).map(|(is, must)| (is - must).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-5, "{halves:?}");
    }

    #[test]
    fn undefined_gradient_stays_undefined() {
        let clipped = clip(&[Tensor::new(), Tensor::from_slice(&[2.0_f32])], 1.0).unwrap();
        assert!(!clipped[0].defined() && clipped[1].defined());
        assert!(clip(&[Tensor::new()], 1.0).unwrap().is_empty());
    }

    #[test]
    fn zero_gradients_stay_zero() {
        let clipped = clip(&[Tensor::from_slice(&[0.0_f32])], 1.0).unwrap();
        assert!(clipped[0].equal(&Tensor::from_slice(&[0.0_f32])));
    }
}
