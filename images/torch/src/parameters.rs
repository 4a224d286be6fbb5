//! The trainable parameters of a model.

use std::collections::BTreeMap;

use tch::nn::VarStore;
use tch::{TchError, Tensor};

/// A model's trainable parameters, in the order of their names.
#[derive(Debug)]
pub struct Parameters {
    names: Vec<String>,
    tensors: Vec<Tensor>,
}

impl Parameters {
    /// The parameters of a store. They share its memory: the model sees what is written into them.
    pub fn from_store(store: &VarStore) -> Self {
        let variables: BTreeMap<_, _> = store.variables().into_iter().collect();
        let trainable = variables.into_iter().filter(|(_, tensor)| tensor.requires_grad());
        let (names, tensors) = trainable.unzip();
        Self { names, tensors }
    }

    /// Their names, such as `fc1.weight`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The tensors, in the same order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// From now on, they use the memory of `others`, the parameters of a model of the same form.
    pub(crate) fn share(&mut self, others: &Self) {
        for (own, other) in self.tensors.iter_mut().zip(&others.tensors) {
            if own.data_ptr() != other.data_ptr() {
                own.set_data(&other.detach());
            }
        }
    }

    /// The gradients of a loss, in the same order; undefined where it does not depend on a
    /// parameter.
    ///
    /// They are new tensors: unlike those that libtorch collects, they need no clearing before the
    /// next step.
    pub fn gradients(&self, loss: &Tensor) -> Result<Vec<Tensor>, TchError> {
        Tensor::f_run_backward(&[loss], &self.tensors, false, false)
    }
}
