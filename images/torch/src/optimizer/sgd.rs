//! Stochastic gradient descent.

use tch::{TchError, Tensor, no_grad};

use super::Optimizer;
use super::blocks::{Blocks, number};
use crate::parameters::Parameters;

/// Gradient descent with momentum, with the arithmetic of `torch.optim.SGD`, and its names in the
/// state.
#[derive(Debug)]
pub struct Sgd {
    learning_rate: f64,
    momentum: f64,
    nesterov: bool,
    weight_decay: f64,
    buffers: Vec<(String, Tensor)>,
    size: Blocks,
    /// The blocks of each parameter.
    blocks: Vec<Vec<Block>>,
}

/// A part of a parameter and of its momentum, and room to compute in.
#[derive(Debug)]
struct Block {
    parameter: Tensor,
    buffer: Tensor,
    decayed: Tensor,
    ahead: Tensor,
}

/// The factors of one step.
struct Factors {
    decay: Option<Tensor>,
    momentum: f64,
    ahead: Option<Tensor>,
    step: Tensor,
}

impl Sgd {
    /// Gradient descent with PyTorch's defaults, apart from the learning rate and the momentum.
    pub fn new(
        parameters: &Parameters,
        learning_rate: f64,
        momentum: f64,
    ) -> Result<Self, TchError> {
        let size = Blocks::new();
        let room = || size.room(parameters.tensors());
        let (decayed, ahead) = (room()?, room()?);
        let (mut buffers, mut all) = (Vec::new(), Vec::new());
        for (name, parameter) in parameters.names().iter().zip(parameters.tensors()) {
            let buffer = parameter.f_zeros_like()?;
            let block = |(parameter, buffer)| {
                let (decayed, ahead) = (decayed.like(&parameter)?, ahead.like(&parameter)?);
                Ok(Block { parameter, buffer, decayed, ahead })
            };
            let parts = size.split(parameter)?.into_iter().zip(size.split(&buffer)?).map(block);
            all.push(parts.collect::<Result<_, TchError>>()?);
            buffers.push((format!("{name}.momentum_buffer"), buffer));
        }
        let (nesterov, weight_decay) = (false, 0.0);
        Ok(Self { learning_rate, momentum, nesterov, weight_decay, buffers, size, blocks: all })
    }

    /// Looks ahead by the momentum (Nesterov).
    #[must_use]
    pub fn nesterov(mut self) -> Self {
        self.nesterov = true;
        self
    }

    /// Adds this fraction of a parameter to its gradient: the penalty on large weights.
    #[must_use]
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Changes the learning rate.
    pub(super) fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
    }

    fn factors(&self, beside: &Tensor) -> Result<Factors, TchError> {
        let decay = (self.weight_decay != 0.0).then(|| number(self.weight_decay, beside));
        let ahead = self.nesterov.then(|| number(self.momentum, beside));
        Ok(Factors {
            decay: decay.transpose()?,
            momentum: self.momentum,
            ahead: ahead.transpose()?,
            step: number(-self.learning_rate, beside)?,
        })
    }
}

impl Block {
    fn step(&mut self, gradient: &Tensor, factors: &Factors) -> Result<(), TchError> {
        let Self { parameter, buffer, decayed, ahead } = self;
        let gradient = match &factors.decay {
            Some(decay) => &gradient.f_addcmul_out(decayed, parameter, decay)?,
            None => gradient,
        };
        let direction = if factors.momentum == 0.0 {
            gradient
        } else {
            // A buffer of zeros becomes the first gradient, with which PyTorch begins.
            drop(buffer.f_mul_scalar_(factors.momentum)?);
            drop(buffer.f_add_(gradient)?);
            match &factors.ahead {
                Some(momentum) => &gradient.f_addcmul_out(ahead, buffer, momentum)?,
                None => &*buffer,
            }
        };
        drop(parameter.f_addcmul_(direction, &factors.step)?);
        Ok(())
    }
}

impl Optimizer for Sgd {
    fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError> {
        let Some(first) = gradients.iter().find(|it| it.defined()) else { return Ok(()) };
        let factors = self.factors(first)?;
        no_grad(|| {
            let known = self.blocks.iter_mut().zip(gradients).filter(|(_, it)| it.defined());
            for (parts, gradient) in known {
                for (block, gradient) in parts.iter_mut().zip(self.size.split(gradient)?) {
                    block.step(&gradient, &factors)?;
                }
            }
            Ok(())
        })
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        let own = self.buffers.iter();
        own.map(|(name, buffer)| (name.clone(), buffer.shallow_clone())).collect()
    }
}
