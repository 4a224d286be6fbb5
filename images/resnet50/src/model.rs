//! The model: the bottleneck network of 50 layers of He, Zhang, Ren and Sun, "Deep Residual Learning
//! for Image Recognition", 2016, with the names and the initial weights of torchvision's.
//!
//! As in torchvision's, the 3 by 3 convolution of a block has its stride, and blocks add nothing to
//! their input at first (`zero_init_residual`; Goyal et al., "Accurate, Large Minibatch SGD", 2017).

use clap::ValueEnum;
use paceline_torch::linear;
use tch::nn::init::{FanInOut, NonLinearity, NormalOrUniform};
use tch::nn::{self, BatchNorm, BatchNormConfig, Conv2D, ConvConfig, Init, Linear, ModuleT, Path};
use tch::{Kind, Tensor};

/// The number of classes.
const CLASSES: i32 = 10;
/// The width and the number of the blocks of each stage.
const STAGES: [(i32, i32); 4] = [(64, 3), (128, 4), (256, 6), (512, 3)];
/// The factor by which the output of a block is wider than its inner layers.
const EXPANSION: i32 = 4;

/// The first layers of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stem {
    /// A convolution of 3 by 3 that keeps the size of small images
    Cifar,
    /// A convolution of 7 by 7 and max pooling, which halve them twice: 16 times less work
    Imagenet,
}

/// ResNet-50 for color images and ten classes.
#[derive(Debug)]
pub struct ResNet50 {
    stem: Stem,
    conv1: Conv2D,
    bn1: BatchNorm,
    blocks: Vec<Bottleneck>,
    fc: Linear,
}

/// A block: three convolutions beside a shortcut.
#[derive(Debug)]
struct Bottleneck {
    conv1: Conv2D,
    bn1: BatchNorm,
    conv2: Conv2D,
    bn2: BatchNorm,
    conv3: Conv2D,
    bn3: BatchNorm,
    downsample: Option<(Conv2D, BatchNorm)>,
}

impl ResNet50 {
    /// An untrained network.
    pub fn new(path: &Path<'_>, stem: Stem) -> Self {
        let (kernel, stride) = match stem {
            Stem::Cifar => (3, 1),
            Stem::Imagenet => (7, 2),
        };
        let conv1 = conv(&(path / "conv1"), 3, 64, kernel, stride);
        let bn1 = norm(&(path / "bn1"), 64, 1.0);
        let mut inputs = 64;
        let mut blocks = Vec::new();
        for (stage, (width, count)) in (1..).zip(STAGES) {
            let path = path / format!("layer{stage}");
            for number in 0..count {
                let stride = if number == 0 && stage > 1 { 2 } else { 1 };
                blocks.push(Bottleneck::new(&(&path / number), inputs, width, stride));
                inputs = EXPANSION * width;
            }
        }
        Self { stem, conv1, bn1, blocks, fc: linear(&(path / "fc"), inputs, CLASSES) }
    }
}

impl ModuleT for ResNet50 {
    fn forward_t(&self, images: &Tensor, train: bool) -> Tensor {
        let features = images.apply(&self.conv1).apply_t(&self.bn1, train).relu();
        let features = match self.stem {
            Stem::Cifar => features,
            Stem::Imagenet => features.max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false),
        };
        let features = self.blocks.iter().fold(features, |it, block| it.apply_t(block, train));
        features.mean_dim([2_i64, 3].as_slice(), false, Kind::Float).apply(&self.fc)
    }
}

impl Bottleneck {
    fn new(path: &Path<'_>, inputs: i32, width: i32, stride: i32) -> Self {
        let outputs = EXPANSION * width;
        let shortcut = || {
            let path = path / "downsample";
            (conv(&(&path / 0), inputs, outputs, 1, stride), norm(&(&path / 1), outputs, 1.0))
        };
        Self {
            conv1: conv(&(path / "conv1"), inputs, width, 1, 1),
            bn1: norm(&(path / "bn1"), width, 1.0),
            conv2: conv(&(path / "conv2"), width, width, 3, stride),
            bn2: norm(&(path / "bn2"), width, 1.0),
            conv3: conv(&(path / "conv3"), width, outputs, 1, 1),
            bn3: norm(&(path / "bn3"), outputs, 0.0),
            downsample: (stride != 1 || inputs != outputs).then(shortcut),
        }
    }
}

impl ModuleT for Bottleneck {
    fn forward_t(&self, features: &Tensor, train: bool) -> Tensor {
        let inner = features.apply(&self.conv1).apply_t(&self.bn1, train).relu();
        let inner = inner.apply(&self.conv2).apply_t(&self.bn2, train).relu();
        let inner = inner.apply(&self.conv3).apply_t(&self.bn3, train);
        match &self.downsample {
            Some((conv, norm)) => (inner + features.apply(conv).apply_t(norm, train)).relu(),
            None => (inner + features).relu(),
        }
    }
}

/// A convolution without biases that changes the size only by its stride, with weights after He et al.,
/// "Delving Deep into Rectifiers", 2015.
fn conv(path: &Path<'_>, inputs: i32, outputs: i32, kernel: i32, stride: i32) -> Conv2D {
    let ws_init = Init::Kaiming {
        dist: NormalOrUniform::Normal,
        fan: FanInOut::FanOut,
        non_linearity: NonLinearity::ReLU,
    };
    let (stride, padding) = (stride.into(), i64::from(kernel / 2));
    let config = ConvConfig { stride, padding, bias: false, ws_init, ..ConvConfig::default() };
    nn::conv2d(path, inputs.into(), outputs.into(), kernel.into(), config)
}

fn norm(path: &Path<'_>, width: i32, weight: f64) -> BatchNorm {
    let config = BatchNormConfig { ws_init: Init::Const(weight), ..BatchNormConfig::default() };
    nn::batch_norm2d(path, width.into(), config)
}

#[cfg(test)]
mod tests {
    use paceline_torch::{Optimizer, Parameters, Sgd};
    use tch::nn::VarStore;
    use tch::{Device, no_grad};

    use super::*;

    fn network(stem: Stem) -> (VarStore, ResNet50) {
        let store = VarStore::new(Device::Cpu);
        let net = ResNet50::new(&store.root(), stem);
        (store, net)
    }

    #[test]
    fn network_has_standard_parameters_and_names() {
        for (stem, count) in [(Stem::Cifar, 23_520_842), (Stem::Imagenet, 23_528_522)] {
            let (store, _) = network(stem);
            let parameters = Parameters::from_store(&store);
            let sum = parameters.tensors().iter().map(Tensor::numel).sum::<usize>();
            assert_eq!((parameters.names().len(), sum), (161, count));
            // With the running statistics of 53 normalizations.
            let variables = store.variables();
            assert_eq!(variables.len(), 161 + 2 * 53);
            for name in ["layer1.0.downsample.1.running_mean", "layer4.2.conv3.weight", "fc.bias"] {
                assert!(variables.contains_key(name), "{name}");
            }
            assert!(!variables.contains_key("layer1.1.downsample.0.weight"));
        }
    }

    #[test]
    fn stages_halve_size_and_testing_changes_nothing() {
        let (_store, net) = network(Stem::Cifar);
        let images = Tensor::zeros([1, 3, 8, 8], tch::kind::FLOAT_CPU);
        let sizes: Vec<i64> = no_grad(|| {
            let mut features = images.apply(&net.conv1);
            net.blocks
                .iter()
                .map(|block| {
                    features = features.apply_t(block, false);
                    features.size()[2]
                })
                .collect()
        });
        assert_eq!(sizes, [8, 8, 8, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2, 1, 1, 1]);
        let before = net.bn1.running_var.copy();
        drop(no_grad(|| net.forward_t(&images, false)));
        assert!(net.bn1.running_var.equal(&before));
        drop(no_grad(|| net.forward_t(&images, true)));
        assert!(!net.bn1.running_var.equal(&before));
    }

    #[test]
    fn dark_and_bright_image_are_learned() {
        tch::manual_seed(1);
        let (store, net) = network(Stem::Imagenet);
        let parameters = Parameters::from_store(&store);
        let mut optimizer = Sgd::new(&parameters, 0.01, 0.9).unwrap();
        let images = Tensor::rand([4, 3, 32, 32], tch::kind::FLOAT_CPU);
        let images = Tensor::cat(&[&images - 1.0, images], 0);
        let labels = Tensor::from_slice(&[[0_i64; 4], [1; 4]].concat());
        let mut loss = || {
            let loss = net.forward_t(&images, true).cross_entropy_for_logits(&labels);
            optimizer.step(&parameters.gradients(&loss).unwrap()).unwrap();
            loss.double_value(&[])
        };
        // A guess among ten classes costs ln 10 = 2.3.
        let first = loss();
        assert!((first - 2.3).abs() < 1.0, "{first}");
        let last = (0..8).fold(first, |_, _| loss());
        assert!(last < 0.3, "{first} to {last}");
        assert!(net.bn1.running_mean.abs().max().double_value(&[]) > 0.0);
    }
}
