//! The model.

use paceline_torch::{conv2d, linear};
use tch::Tensor;
use tch::nn::{Conv2D, Linear, Module, ModuleT, Path};

/// Two convolutions and two fully connected layers, as in PyTorch's MNIST example.
#[derive(Debug)]
pub struct Net {
    conv1: Conv2D,
    conv2: Conv2D,
    fc1: Linear,
    fc2: Linear,
    mean: f64,
    deviation: f64,
}

impl Net {
    /// A model for images with pixels of this mean and standard deviation.
    pub fn new(path: &Path<'_>, (mean, deviation): (f64, f64)) -> Self {
        Self {
            conv1: conv2d(&(path / "conv1"), 1, 32, 3),
            conv2: conv2d(&(path / "conv2"), 32, 64, 3),
            // 28 pixels, less 2 and 2 by the convolutions, halved by the pooling: 12 a side.
            fc1: linear(&(path / "fc1"), 64 * 12 * 12, 128),
            fc2: linear(&(path / "fc2"), 128, 10),
            mean,
            deviation,
        }
    }
}

impl ModuleT for Net {
    fn forward_t(&self, images: &Tensor, train: bool) -> Tensor {
        let images = (images - self.mean) / self.deviation;
        let features = images.apply(&self.conv1).relu().apply(&self.conv2).relu();
        let features = features.max_pool2d_default(2).dropout(0.25, train).flat_view();
        self.fc2.forward(&self.fc1.forward(&features).relu().dropout(0.5, train))
    }
}

#[cfg(test)]
mod tests {
    use paceline_torch::{Adam, Optimizer, Parameters};
    use tch::nn::VarStore;
    use tch::{Device, Kind};

    use super::*;

    #[test]
    fn dark_and_bright_image_are_learned() {
        tch::manual_seed(1);
        let store = VarStore::new(Device::Cpu);
        let net = Net::new(&store.root(), (0.5, 0.3));
        let parameters = Parameters::from_store(&store);
        let mut optimizer = Adam::new(&parameters, 1e-3).unwrap();
        let images = Tensor::rand([8, 1, 28, 28], (Kind::Float, Device::Cpu));
        let images = Tensor::cat(&[&images * 0.3, images * 0.3 + 0.7], 0);
        let labels = Tensor::from_slice(&[[0_i64; 8], [1; 8]].concat());
        // A guess among ten classes costs ln 10 = 2.3.
        let first = f64::try_from(net.forward_t(&images, false).cross_entropy_for_logits(&labels));
        assert!((first.unwrap() - 2.3).abs() < 0.3);
        for _ in 0..20 {
            let loss = net.forward_t(&images, true).cross_entropy_for_logits(&labels);
            optimizer.step(&parameters.gradients(&loss).unwrap()).unwrap();
        }
        let accuracy = net.forward_t(&images, false).accuracy_for_logits(&labels);
        assert!(f64::try_from(accuracy).unwrap() > 0.9);
    }
}
