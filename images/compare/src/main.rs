//! Computes outputs, losses and gradients of a workload's model from weights and inputs in a
//! safetensors file, and writes them into another: `compare-models MODEL INPUTS OUTPUTS`. `compare.py`
//! compares them with PyTorch's results from the same weights.

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use paceline_gru::adding::{AddingNet, Sequences};
use paceline_gru::text::{TextNet, Windows};
use paceline_resnet50::{ResNet50, Stem};
use paceline_torch::{BadInput, Parameters, exit_code, load_weights};
use paceline_vae::{Batch, Vae};
use tch::nn::{ModuleT, VarStore};
use tch::{Device, Tensor};

/// The loss of a model, and its other tensors to compare, by name.
struct Outcome {
    loss: Tensor,
    outputs: Vec<(String, Tensor)>,
}

/// Tensors by name.
struct Inputs(Vec<(String, Tensor)>);

impl Inputs {
    fn get(&self, name: &str) -> anyhow::Result<Tensor> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, tensor)| tensor.shallow_clone()).with_context(|| format!("no tensor {name}"))
    }
}

fn main() -> ExitCode {
    exit_code("compare-models", run())
}

fn run() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [model, inputs, outputs] = &arguments[..] else {
        let usage = anyhow::anyhow!("usage: compare-models MODEL INPUTS OUTPUTS");
        return Err(BadInput::new(usage).into());
    };
    tch::set_num_threads(1);
    let store = VarStore::new(Device::Cpu);
    let inputs = Path::new(inputs);
    let tensors = Inputs(Tensor::read_safetensors(inputs)?);
    let load = || load_weights(&store, inputs);
    let Outcome { loss, outputs: mut results } = match model.as_str() {
        "resnet50-cifar" => resnet50(&store, Stem::Cifar, &tensors, load)?,
        "resnet50-imagenet" => resnet50(&store, Stem::Imagenet, &tensors, load)?,
        "gru-adding" => adding(&store, &tensors, load)?,
        "gru-text" => text(&store, &tensors, load)?,
        "vae" => vae(&store, &tensors, load)?,
        other => return Err(BadInput::new(anyhow::anyhow!("no model {other}")).into()),
    };
    let parameters = Parameters::from_store(&store);
    let gradients = parameters.gradients(&loss)?;
    let names = parameters.names().iter().map(|name| format!("gradient.{name}"));
    results.push(("loss".to_owned(), loss));
    results.extend(names.zip(gradients));
    let results = results.into_iter().map(|(name, tensor)| (name, tensor.detach().contiguous()));
    Ok(Tensor::write_safetensors(&results.collect::<Vec<_>>(), outputs)?)
}

/// Scores with the statistics in the weights, scores and loss with those of the images, and the
/// running statistics afterwards.
fn resnet50(
    store: &VarStore,
    stem: Stem,
    inputs: &Inputs,
    load: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let net = ResNet50::new(&store.root(), stem);
    load()?;
    let images = inputs.get("images")?;
    let tested = net.forward_t(&images, false);
    let trained = net.forward_t(&images, true);
    let loss = trained.cross_entropy_for_logits(&inputs.get("labels")?);
    let mut outputs =
        vec![("scores.test".to_owned(), tested), ("scores.train".to_owned(), trained)];
    let running = store.variables().into_iter().filter(|(name, _)| name.contains(".running_"));
    outputs.extend(running);
    Ok(Outcome { loss, outputs })
}

fn adding(
    store: &VarStore,
    inputs: &Inputs,
    load: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let net = AddingNet::new(&store.root());
    load()?;
    let sequences = Sequences { inputs: inputs.get("inputs")?, sums: inputs.get("sums")? };
    let outputs = vec![("answers".to_owned(), net.answers(&sequences.inputs))];
    Ok(Outcome { loss: net.loss(&sequences), outputs })
}

fn text(
    store: &VarStore,
    inputs: &Inputs,
    load: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let (inputs, targets) = (inputs.get("inputs")?, inputs.get("targets")?);
    let characters = i32::try_from(targets.max().int64_value(&[]) + 1)?;
    let net = TextNet::new(&store.root(), characters);
    load()?;
    let windows = Windows { inputs, targets };
    let outputs = vec![("scores".to_owned(), net.scores(&windows.inputs))];
    Ok(Outcome { loss: net.loss(&windows), outputs })
}

fn vae(
    store: &VarStore,
    inputs: &Inputs,
    load: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let model = Vae::new(&store.root());
    load()?;
    let loss = model.loss(&Batch { images: inputs.get("images")?, noise: inputs.get("noise")? });
    Ok(Outcome { loss, outputs: Vec::new() })
}
