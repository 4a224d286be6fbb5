//! Weights from elsewhere.

use std::path::Path;

use anyhow::Context;
use tch::Tensor;
use tch::nn::VarStore;

use crate::optimizer::copy_from;
use crate::program::BadInput;
use crate::state::{MODEL, variables};

/// Puts the tensors of a safetensors file into a model: those of a checkpoint or of PyTorch's
/// `state_dict`. There must be one for each of the model's tensors; others are ignored.
pub fn load_weights(store: &VarStore, path: &Path) -> anyhow::Result<()> {
    let read = || {
        let tensors = Tensor::read_safetensors(path)?.into_iter();
        let bare = |name: String| name.strip_prefix(MODEL).map_or(name.clone(), str::to_owned);
        copy_from(
            &tensors.map(|(name, tensor)| (bare(name), tensor)).collect(),
            &variables(store),
        )?;
        anyhow::Ok(())
    };
    let cannot = || format!("{} does not hold this model's weights", path.display());
    Ok(read().with_context(cannot).map_err(BadInput::new)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tch::Device;
    use tch::nn::Init;

    use super::*;

    #[test]
    fn weights_load_only_from_state_dict_or_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        let store = VarStore::new(Device::Cpu);
        let weight = store.root().var("weight", &[2], Init::Const(0.0));
        for (number, name) in [(1.0_f32, "weight"), (2.0, "model.weight")] {
            let tensors = [(name, Tensor::from_slice(&[number; 2])), ("other", Tensor::from(1.0))];
            Tensor::write_safetensors(&tensors, &path).unwrap();
            load_weights(&store, &path).unwrap();
            assert!(weight.equal(&Tensor::from_slice(&[number; 2])));
        }
        let refused = |what| {
            let error = format!("{:#}", load_weights(&store, &path).unwrap_err());
            assert!(error.contains(what), "{error}");
        };
        Tensor::write_safetensors(&[("weight", Tensor::from(1.0_f32))], &path).unwrap();
        refused("weight is Float [], but must be Float [2]");
        Tensor::write_safetensors(&[("bias", Tensor::from(1.0_f32))], &path).unwrap();
        refused("weight is missing");
        fs::write(&path, "damage").unwrap();
        refused("does not hold this model's weights");
        fs::remove_file(&path).unwrap();
        refused("does not hold this model's weights");
    }
}
