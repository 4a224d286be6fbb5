//! What a step of a training minimizes.

use tch::{TchError, Tensor};

use crate::parameters::Parameters;

/// The loss of a batch.
#[derive(Debug)]
pub struct Loss(Kind);

#[derive(Debug)]
enum Kind {
    /// A sum over so many items, whose gradients are still to be computed.
    Open { tensor: Tensor, items: i32 },
    /// A mean whose gradients are known.
    Known { mean: f64, gradients: Vec<Tensor> },
}

impl Loss {
    /// A loss that is minimized as a sum over so many items, and reported for one of them.
    pub fn sum(tensor: Tensor, items: i32) -> Self {
        Self(Kind::Open { tensor, items })
    }

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
            Kind::Open { tensor, items } => {
                let gradients = parameters.gradients(&tensor)?;
                Ok((f64::try_from(tensor)? / f64::from(items), gradients))
            }
            Kind::Known { mean, gradients } => Ok((mean, gradients)),
        }
    }
}

impl From<Tensor> for Loss {
    fn from(tensor: Tensor) -> Self {
        Self::sum(tensor, 1)
    }
}
