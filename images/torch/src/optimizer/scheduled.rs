//! A learning rate that changes from step to step.

use std::collections::BTreeMap;

use paceline_workload::WarmUpCosine;
use tch::{TchError, Tensor};

use super::{Optimizer, Sgd, copy_from};

/// The key of the step count in the state.
const STEP: &str = "step";

/// Gradient descent with a learning rate that depends on the step number.
#[derive(Debug)]
pub struct Scheduled {
    sgd: Sgd,
    rates: WarmUpCosine,
    steps: u64,
}

impl Scheduled {
    /// Gradient descent by these rates, which replace its own rate.
    pub fn new(sgd: Sgd, rates: WarmUpCosine) -> Self {
        Self { sgd, rates, steps: 0 }
    }
}

impl Optimizer for Scheduled {
    fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError> {
        self.steps = self.steps.saturating_add(1);
        self.sgd.set_learning_rate(self.rates.at(self.steps));
        self.sgd.step(gradients)
    }

    fn state(&self) -> Vec<(String, Tensor)> {
        let mut state = self.sgd.state();
        state.push((STEP.to_owned(), Tensor::from(self.steps.cast_signed())));
        state
    }

    fn restore(&mut self, saved: &BTreeMap<String, Tensor>) -> Result<(), TchError> {
        let steps = (STEP.to_owned(), Tensor::from(0_i64));
        copy_from(saved, std::slice::from_ref(&steps))?;
        self.sgd.restore(saved)?;
        self.steps = u64::try_from(steps.1.f_int64_value(&[])?).unwrap_or_default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tch::nn::{Init, VarStore};
    use tch::{Device, Kind};

    use super::*;
    use crate::parameters::Parameters;

    /// How far each of two steps by a gradient of 1 goes.
    fn distances(optimizer: &mut Scheduled, parameter: &Tensor) -> [f64; 2] {
        [(); 2].map(|()| {
            let before = parameter.double_value(&[0]);
            optimizer.step(&[Tensor::ones([1], (Kind::Float, Device::Cpu))]).unwrap();
            before - parameter.double_value(&[0])
        })
    }

    #[test]
    fn each_step_has_own_rate_also_after_restore() {
        let store = VarStore::new(Device::Cpu);
        let parameter = store.root().var("a", &[1], Init::Const(0.0));
        let parameters = Parameters::from_store(&store);
        let rates = WarmUpCosine::new(1.0, 4, 8);
        let new = || Scheduled::new(Sgd::new(&parameters, 1.0, 0.0).unwrap(), rates);
        let mut first = new();
        let near = |is: [f64; 2], must: [u64; 2]| {
            let must = must.map(|step| rates.at(step));
            assert!((is[0] - must[0]).abs() + (is[1] - must[1]).abs() < 1e-6, "{is:?} {must:?}");
        };
        near(distances(&mut first, &parameter), [1, 2]);
        let saved = first.state().into_iter().collect();
        let mut second = new();
        second.restore(&saved).unwrap();
        near(distances(&mut second, &parameter), [3, 4]);
    }
}
