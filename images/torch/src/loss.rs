//! The loss that a training step minimizes.

use tch::{TchError, Tensor};

use crate::parameters::Parameters;

/// The loss of a batch.
#[derive(Debug)]
pub struct Loss(Kind);

#[derive(Debug)]
enum Kind {
    /// A mean whose gradients are not computed yet.
    Open(Tensor),
    /// A mean, and the gradients of the minimized loss.
    Known { mean: f64, gradients: Vec<Tensor> },
}

impl Loss {
    /// A loss with its gradients, in the order of the parameters' names.
    pub(crate) fn known(mean: f64, gradients: Vec<Tensor>) -> Self {
        Self(Kind::Known { mean, gradients })
    }

    /// The loss of one item, and the gradients.
    pub(crate) fn into_gradients(
        self,
        parameters: &Parameters,
    ) -> Result<(f64, Vec<Tensor>), TchError> {
        match self.0 {
            Kind::Open(mean) => {
                let gradients = parameters.gradients(&mean)?;
                Ok((f64::try_from(mean)?, gradients))
            }
            Kind::Known { mean, gradients } => Ok((mean, gradients)),
        }
    }
}

impl From<Tensor> for Loss {
    fn from(mean: Tensor) -> Self {
        Self(Kind::Open(mean))
    }
}
