//! Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015).

use std::collections::BTreeMap;
use std::thread;

use tch::{TchError, Tensor, no_grad};

use super::blocks::{Blocks, Room, number};
use super::{Optimizer, copy_from};
use crate::parameters::Parameters;

/// The decay of the mean of the gradients and of the mean of their squares: PyTorch's defaults.
const BETAS: (f64, f64) = (0.9, 0.999);
/// Keeps the denominator above zero.
const EPSILON: f64 = 1e-8;
/// The key of the step count in the state.
const STEP: &str = "step";

/// Adam as `torch.optim.Adam` computes it, in fewer passes over the memory, and with its names in the
/// state.
#[derive(Debug)]
pub struct Adam {
    learning_rate: f64,
    weight_decay: f64,
    steps: u32,
    moments: Vec<(String, Tensor)>,
    size: Blocks,
    /// The work of each thread in a step.
    lanes: Vec<Vec<Block>>,
}

/// A part of a parameter, of the means of its gradients and of their squares, and room to compute in.
#[derive(Debug)]
struct Block {
    /// Which parameter, and which of its parts.
    place: (usize, usize),
    parameter: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    scaled: Tensor,
    denominator: Tensor,
    decayed: Tensor,
}

/// The factors of one step.
struct Factors {
    decay: Option<Tensor>,
    epsilon: f64,
    step: Tensor,
}

impl Adam {
    /// Adam with PyTorch's defaults, apart from the learning rate.
    pub fn new(parameters: &Parameters, learning_rate: f64) -> Result<Self, TchError> {
        Self::on(1, parameters, learning_rate)
    }

    /// The same, shared by this many threads of its own, for use while libtorch computes with one.
    pub fn on(
        threads: usize,
        parameters: &Parameters,
        learning_rate: f64,
    ) -> Result<Self, TchError> {
        let size = Blocks::new();
        let lanes = (0..threads.max(1)).map(|_| Lane::new(size, parameters));
        let mut lanes: Vec<Lane> = lanes.collect::<Result<_, TchError>>()?;
        let mut moments = Vec::new();
        for (of, (name, parameter)) in
            parameters.names().iter().zip(parameters.tensors()).enumerate()
        {
            let (exp_avg, exp_avg_sq) = (parameter.f_zeros_like()?, parameter.f_zeros_like()?);
            let parts = size.split(parameter)?.into_iter().zip(size.split(&exp_avg)?);
            let parts = parts.zip(size.split(&exp_avg_sq)?).enumerate();
            for (part, ((parameter, exp_avg), exp_avg_sq)) in parts {
                // The thread with the least work.
                if let Some(lane) = lanes.iter_mut().min_by_key(|lane| lane.elements) {
                    lane.take((of, part), parameter, (exp_avg, exp_avg_sq))?;
                }
            }
            moments.push((format!("{name}.exp_avg"), exp_avg));
            moments.push((format!("{name}.exp_avg_sq"), exp_avg_sq));
        }
        let lanes = lanes.into_iter().map(|lane| lane.blocks).collect();
        Ok(Self { learning_rate, weight_decay: 0.0, steps: 0, moments, size, lanes })
    }

    /// Adds this fraction of a parameter to its gradient: the penalty on large weights.
    #[must_use]
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    fn factors(&self, beside: &Tensor) -> Result<Factors, TchError> {
        let steps = f64::from(self.steps);
        let corrections = (1.0 - BETAS.0.powf(steps), 1.0 - BETAS.1.powf(steps));
        let decay = (self.weight_decay != 0.0).then(|| number(self.weight_decay, beside));
        // The mean of the squares is too small at first. Instead of its root, the term added to it and the
        // whole step are divided by this.
        let root = corrections.1.sqrt();
        Ok(Factors {
            decay: decay.transpose()?,
            epsilon: EPSILON * root,
            step: number(-self.learning_rate / corrections.0 * root, beside)?,
        })
    }
}

/// The work of one thread in a step, while it is collected.
struct Lane {
    /// Room to compute in.
    scaled: Room,
    denominator: Room,
    decayed: Room,
    elements: usize,
    blocks: Vec<Block>,
}

impl Lane {
    fn new(size: Blocks, parameters: &Parameters) -> Result<Self, TchError> {
        let room = || size.room(parameters.tensors());
        let (scaled, denominator, decayed) = (room()?, room()?, room()?);
        Ok(Self { scaled, denominator, decayed, elements: 0, blocks: Vec::new() })
    }

    fn take(
        &mut self,
        place: (usize, usize),
        parameter: Tensor,
        (exp_avg, exp_avg_sq): (Tensor, Tensor),
    ) -> Result<(), TchError> {
        self.elements += parameter.numel();
        let scaled = self.scaled.like(&parameter)?;
        let denominator = self.denominator.like(&parameter)?;
        let decayed = self.decayed.like(&parameter)?;
        let block = Block { place, parameter, exp_avg, exp_avg_sq, scaled, denominator, decayed };
        self.blocks.push(block);
        Ok(())
    }
}

/// One thread's blocks, each by its part of the gradients.
fn improve(
    blocks: &mut [Block],
    parts: &[Option<Tensor>],
    factors: &Factors,
) -> Result<(), TchError> {
    no_grad(|| {
        let known = blocks.iter_mut().zip(parts).filter_map(|(b, part)| Some((b, part.as_ref()?)));
        known.into_iter().try_for_each(|(block, part)| block.step(part, factors))
    })
}

impl Block {
    fn step(&mut self, gradient: &Tensor, factors: &Factors) -> Result<(), TchError> {
        let Self { parameter, exp_avg, exp_avg_sq, scaled, denominator, decayed, .. } = self;
        let gradient = match &factors.decay {
            Some(decay) => &gradient.f_addcmul_out(decayed, parameter, decay)?,
            None => gradient,
        };
        drop(exp_avg.f_lerp_(gradient, 1.0 - BETAS.0)?);
        drop(gradient.f_mul_out(scaled, gradient)?);
        drop(exp_avg_sq.f_lerp_(scaled, 1.0 - BETAS.1)?);
        drop(exp_avg_sq.f_sqrt_out(denominator)?);
        drop(denominator.f_add_scalar_(factors.epsilon)?);
        // tch's `addcdiv_` lacks PyTorch's factor.
        drop(exp_avg.f_mul_out(scaled, &factors.step)?);
        drop(parameter.f_addcdiv_(scaled, denominator)?);
        Ok(())
    }
}

impl Optimizer for Adam {
    fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError> {
        let Some(first) = gradients.iter().find(|it| it.defined()) else { return Ok(()) };
        self.steps = self.steps.saturating_add(1);
        let factors = self.lanes.iter().map(|_| self.factors(first));
        let factors: Vec<Factors> = factors.collect::<Result<_, TchError>>()?;
        let defined = gradients
            .iter()
            .map(|it| if it.defined() { self.size.split(it) } else { Ok(Vec::new()) });
        let parts: Vec<Vec<Tensor>> = defined.collect::<Result<_, TchError>>()?;
        let part =
            |block: &Block| Some(parts.get(block.place.0)?.get(block.place.1)?.shallow_clone());
        let lanes = self.lanes.iter_mut().zip(factors);
        let mut lanes = lanes.map(|(blocks, factors)| {
            let parts: Vec<Option<Tensor>> = blocks.iter().map(part).collect();
            (blocks, parts, factors)
        });
        let Some(own) = lanes.next() else { return Ok(()) };
        // Unlike a model's, this work needs no preparation, so short-lived threads suffice.
        thread::scope(|scope| {
            let others = lanes.map(|(blocks, parts, factors)| {
                scope.spawn(move || improve(blocks, &parts, &factors))
            });
            let others: Vec<_> = others.collect();
            improve(own.0, &own.1, &own.2)?;
            let panicked = |_| TchError::Torch("a thread panicked".to_owned());
            others.into_iter().try_for_each(|other| other.join().map_err(panicked)?)
        })
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        let moments =
            self.moments.iter().map(|(name, moment)| (name.clone(), moment.shallow_clone()));
        moments.chain([(STEP.to_owned(), Tensor::from(i64::from(self.steps)))]).collect()
    }

    fn restore(&mut self, saved: &BTreeMap<String, Tensor>) -> Result<(), TchError> {
        let state = self.state();
        copy_from(saved, &state)?;
        let steps = state.last().map_or(Ok(0), |(_, steps)| steps.f_int64_value(&[]))?;
        self.steps = u32::try_from(steps).unwrap_or_default();
        Ok(())
    }
}
