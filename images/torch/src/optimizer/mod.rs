//! Optimizers whose state can be saved: tch does not expose the state of libtorch's own.
//!
//! They compute the same as PyTorch's. PyTorch applies each operation to a whole parameter, and so
//! reads memory once per operation. Here, a large parameter is processed in blocks that stay in the
//! cache meanwhile.

mod adam;
mod blocks;
mod clipped;
mod remote;
mod scheduled;
mod sgd;

use std::collections::BTreeMap;
use std::fmt::Debug;

use tch::{TchError, Tensor, no_grad};

pub use self::adam::Adam;
pub use self::clipped::Clipped;
pub use self::remote::Remote;
pub use self::scheduled::Scheduled;
pub use self::sgd::Sgd;

/// Updates parameters by gradients.
pub trait Optimizer: Debug {
    /// Makes a step by gradients in the order of the parameters. One that is undefined leaves its
    /// parameter as it is.
    fn step(&mut self, gradients: &[Tensor]) -> Result<(), TchError>;

    /// Gives the loss of the next step's gradients to an optimizer that passes it on.
    fn tell(&mut self, _loss: f64) {}

    /// Everything else that the next step depends on, by name.
    fn state(&self) -> Vec<(String, Tensor)>;

    /// Restores a saved state. This default suffices only where the tensors of `state` share the
    /// optimizer's memory.
    fn restore(&mut self, saved: &BTreeMap<String, Tensor>) -> Result<(), TchError> {
        copy_from(saved, &self.state())
    }
}

/// Copies the saved tensors into those of the same names, shapes and kinds.
pub(crate) fn copy_from(
    saved: &BTreeMap<String, Tensor>,
    tensors: &[(String, Tensor)],
) -> Result<(), TchError> {
    no_grad(|| {
        tensors.iter().try_for_each(|(name, tensor)| {
            let wrong = |what| Err(TchError::Shape(format!("{name} {what}")));
            let Some(saved) = saved.get(name) else { return wrong("is missing".to_owned()) };
            let [is, must] = [saved, tensor].map(|it| format!("{:?} {:?}", it.kind(), it.size()));
            if is != must {
                return wrong(format!("is {is}, but must be {must}"));
            }
            tensor.shallow_clone().f_copy_(saved)
        })
    })
}

#[cfg(test)]
mod tests;
