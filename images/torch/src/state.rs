//! The tensors of a checkpoint.

use std::borrow::Cow;
use std::collections::BTreeMap;

use paceline_workload::Checkpoint;
use safetensors::{Dtype, View};
use tch::nn::VarStore;
use tch::{TchError, Tensor};

use crate::optimizer::{Optimizer, copy_from};

/// The prefix of the names of a model's tensors.
pub(crate) const MODEL: &str = "model.";
/// The prefix of the names of an optimizer's tensors.
const OPTIMIZER: &str = "optimizer.";

/// A tensor that can be written.
#[derive(Debug)]
pub(crate) struct Stored {
    tensor: Tensor,
    kind: Dtype,
    shape: Vec<usize>,
}

impl Stored {
    fn new(tensor: &Tensor) -> Result<Self, TchError> {
        let tensor = tensor.f_detach()?.f_contiguous()?;
        let kind = tensor.kind().try_into()?;
        let shape = tensor.size().into_iter().filter_map(|side| usize::try_from(side).ok());
        let shape = shape.collect();
        Ok(Self { tensor, kind, shape })
    }
}

impl View for Stored {
    fn dtype(&self) -> Dtype {
        self.kind
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut data = vec![0; self.data_len()];
        self.tensor.copy_data_u8(&mut data, self.tensor.numel());
        data.into()
    }

    fn data_len(&self) -> usize {
        self.tensor.numel() * self.kind.size()
    }
}

/// All tensors of a model, including those that are not trained, in the order of their names.
pub(crate) fn variables(store: &VarStore) -> Vec<(String, Tensor)> {
    store.variables().into_iter().collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// The tensors of a model and its optimizer that a checkpoint holds.
pub(crate) fn stored(
    model: &[(String, Tensor)],
    optimizer: &dyn Optimizer,
) -> Result<Vec<(String, Stored)>, TchError> {
    let state = optimizer.state();
    let named = |(prefix, (name, tensor)): (&str, &(String, Tensor))| {
        Ok((format!("{prefix}{name}"), Stored::new(tensor)?))
    };
    let model = model.iter().map(|it| (MODEL, it));
    model.chain(state.iter().map(|it| (OPTIMIZER, it))).map(named).collect()
}

/// Puts a model and its optimizer into the state that a checkpoint holds.
pub(crate) fn restore(
    checkpoint: &Checkpoint,
    model: &[(String, Tensor)],
    optimizer: &mut dyn Optimizer,
) -> anyhow::Result<()> {
    let (mut of_model, mut of_optimizer) = (BTreeMap::new(), BTreeMap::new());
    for (name, view) in checkpoint.tensors()?.tensors() {
        let (tensors, name) = match (name.strip_prefix(MODEL), name.strip_prefix(OPTIMIZER)) {
            (Some(name), _) => (&mut of_model, name),
            (None, Some(name)) => (&mut of_optimizer, name),
            (None, None) => continue,
        };
        let tensor = Tensor::try_from(view).map_err(|error| checkpoint.damaged(error))?;
        tensors.insert(name.to_owned(), tensor);
    }
    copy_from(&of_model, model).map_err(|error| checkpoint.damaged(error))?;
    optimizer.restore(&of_optimizer).map_err(|error| checkpoint.damaged(error))?;
    Ok(())
}
