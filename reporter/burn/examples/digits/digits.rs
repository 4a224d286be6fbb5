//! Ten classes of noisy images of 8 by 8 pixels, and a network that classifies them.

use std::sync::Arc;

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder};
use burn::data::dataset::{Dataset, DatasetError};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig, Relu};
use burn::optim::AdamConfig;
use burn::optim::lr_scheduler::constant::ConstantLr;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn::train::{ClassificationOutput, InferenceStep, Learner, TrainOutput, TrainStep};

const PIXELS: u32 = 64;
const CLASSES: u32 = 10;
/// Images of a batch.
pub(crate) const BATCH: usize = 32;

/// Images that are made on request.
pub(crate) struct Digits {
    images: usize,
    seed: u32,
}

impl Digits {
    /// Makes this many images. Another seed gives the same ten shapes with other noise.
    pub(crate) fn new(images: usize, seed: u32) -> Self {
        Self { images, seed }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Digit {
    pixels: Vec<f32>,
    class: u32,
}

impl Dataset<Digit> for Digits {
    fn get(&self, index: usize) -> Result<Digit, DatasetError> {
        let index = u32::try_from(index).map_err(DatasetError::new)?;
        let class = index % CLASSES;
        let pixels = (0..PIXELS).map(|pixel| {
            let noise = noise(self.seed ^ (index * PIXELS + pixel).rotate_left(16));
            noise + shape(class, pixel)
        });
        Ok(Digit { pixels: pixels.collect(), class })
    }

    fn len(&self) -> usize {
        self.images
    }
}

fn shape(class: u32, pixel: u32) -> f32 {
    if noise(class * PIXELS + pixel) > 0.5 { 0.3 } else { 0.0 }
}

/// A number from 0 to 1 that depends on the seed alone.
fn noise(seed: u32) -> f32 {
    let mut word = seed.wrapping_add(0x9e37_79b9).wrapping_mul(0x85eb_ca6b);
    word = (word ^ (word >> 13)).wrapping_mul(0xc2b2_ae35);
    f32::from(u16::try_from(word >> 16).unwrap_or(u16::MAX)) / f32::from(u16::MAX)
}

#[derive(Clone, Debug)]
pub(crate) struct Batch {
    images: Tensor<2>,
    classes: Tensor<1, Int>,
}

struct Stack;

impl Batcher<Digit, Batch> for Stack {
    fn batch(&self, digits: Vec<Digit>, device: &Device) -> Batch {
        let classes: Vec<i64> = digits.iter().map(|digit| digit.class.into()).collect();
        let pixels: Vec<f32> = digits.into_iter().flat_map(|digit| digit.pixels).collect();
        let (count, width) = (classes.len(), pixels.len() / classes.len().max(1));
        Batch {
            images: Tensor::from_data(TensorData::new(pixels, [count, width]), device),
            classes: Tensor::from_data(TensorData::new(classes, [count]), device),
        }
    }
}

/// Batches of 32 images in order.
pub(crate) fn loader(digits: impl Dataset<Digit> + 'static) -> Arc<dyn DataLoader<Batch>> {
    DataLoaderBuilder::new(Stack).batch_size(BATCH).build(digits)
}

/// Two layers.
#[derive(Module, Debug)]
pub(crate) struct Network {
    hidden: Linear,
    output: Linear,
    relu: Relu,
}

impl Network {
    fn classify(&self, batch: Batch) -> ClassificationOutput {
        let hidden = self.relu.forward(self.hidden.forward(batch.images));
        let scores = self.output.forward(hidden);
        let loss = CrossEntropyLossConfig::new()
            .init(&scores.device())
            .forward(scores.clone(), batch.classes.clone());
        ClassificationOutput::new(loss, scores, batch.classes)
    }
}

impl TrainStep for Network {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Network {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.classify(batch)
    }
}

/// An untrained network.
pub(crate) fn learner(device: &Device) -> Learner<Network> {
    let network = Network {
        hidden: LinearConfig::new(64, 32).init(device),
        output: LinearConfig::new(32, 10).init(device),
        relu: Relu::new(),
    };
    Learner::new(network, AdamConfig::new().init(), ConstantLr::new(0.001))
}
