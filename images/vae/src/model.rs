//! The model and its loss.

use paceline_torch::linear;
use tch::nn::{Linear, Module, Path};
use tch::{Device, Kind, Reduction, Tensor};

/// The hidden numbers of an image.
const HIDDEN: i32 = 20;

/// An encoder to the mean and the logarithm of the variance of 20 hidden numbers, and a decoder
/// from a sample of them. The layers have the names that they have in PyTorch's example.
#[derive(Debug)]
pub struct Vae {
    fc1: Linear,
    fc21: Linear,
    fc22: Linear,
    fc3: Linear,
    fc4: Linear,
}

/// Flat images, and the noise that their hidden numbers are drawn by.
#[derive(Debug)]
pub struct Batch {
    /// 784 numbers from 0 to 1 for each image.
    pub images: Tensor,
    /// 20 numbers for each.
    pub noise: Tensor,
}

impl Vae {
    /// A model with PyTorch's initial weights.
    pub fn new(path: &Path<'_>) -> Self {
        Self {
            fc1: linear(&(path / "fc1"), 784, 400),
            fc21: linear(&(path / "fc21"), 400, HIDDEN),
            fc22: linear(&(path / "fc22"), 400, HIDDEN),
            fc3: linear(&(path / "fc3"), HIDDEN, 400),
            fc4: linear(&(path / "fc4"), 400, 784),
        }
    }

    /// The loss of a batch, summed over its pixels: the binary cross entropy of the reconstruction,
    /// and the divergence of the hidden numbers from standard normal ones (Kingma and Welling,
    /// "Auto-Encoding Variational Bayes", 2014, appendix B).
    pub fn loss(&self, Batch { images, noise }: &Batch) -> Tensor {
        let (mean, log_variance) = self.encode(images);
        let sample = &mean + noise * (&log_variance * 0.5).exp();
        // One operation with the sigmoid: sharper where a pixel is nearly certain, and quicker.
        let cross_entropy = self.decode(&sample).binary_cross_entropy_with_logits::<Tensor>(
            images,
            None,
            None,
            Reduction::Sum,
        );
        let divergence =
            (1.0_f64 + &log_variance - mean.square() - log_variance.exp()).sum(Kind::Float) * -0.5;
        cross_entropy + divergence
    }

    fn encode(&self, images: &Tensor) -> (Tensor, Tensor) {
        let hidden = self.fc1.forward(images).relu();
        (self.fc21.forward(&hidden), self.fc22.forward(&hidden))
    }

    /// How likely each pixel is to be white, as logits.
    fn decode(&self, sample: &Tensor) -> Tensor {
        self.fc4.forward(&self.fc3.forward(sample).relu())
    }
}

impl Batch {
    /// Images with noise from libtorch's generator.
    pub fn draw(images: Tensor) -> Self {
        let shape = [length(&images), i64::from(HIDDEN)];
        let noise = Tensor::randn(shape, (Kind::Float, Device::Cpu));
        Self { images, noise }
    }

    /// The number of images.
    pub fn count(&self) -> u32 {
        length(&self.images).try_into().unwrap_or(u32::MAX)
    }

    /// Splits the batch into at most this many parts, each with its number of images.
    pub fn split(&self, parts: i64) -> Vec<(Self, u32)> {
        let images = self.images.chunk(parts, 0).into_iter();
        let parts = images.zip(self.noise.chunk(parts, 0));
        let parts = parts.map(|(images, noise)| Self { images, noise });
        let counted = parts.map(|part| {
            let count = part.count();
            (part, count)
        });
        counted.collect()
    }
}

/// The number of rows of a tensor.
fn length(tensor: &Tensor) -> i64 {
    tensor.size().first().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use paceline_torch::{Adam, Optimizer, Parameters};
    use tch::nn::VarStore;

    use super::*;

    #[test]
    fn untrained_model_has_loss_of_guess_and_training_lowers_it() {
        tch::manual_seed(1);
        let store = VarStore::new(Device::Cpu);
        let model = Vae::new(&store.root());
        let parameters = Parameters::from_store(&store);
        let mut optimizer = Adam::new(&parameters, 1e-3).unwrap();
        let images = Tensor::rand([16, 784], (Kind::Float, Device::Cpu));
        let batch = || Batch::draw(images.shallow_clone());
        let per_image = |loss: Tensor| f64::try_from(loss).unwrap() / 16.0;
        // A guess of 0.5 for each pixel costs 784 ln 2 = 543.
        let first = per_image(model.loss(&batch()));
        assert!((first - 543.0).abs() < 15.0, "{first}");
        for _ in 0..100 {
            let gradients = parameters.gradients(&model.loss(&batch())).unwrap();
            optimizer.step(&gradients).unwrap();
        }
        let last = per_image(model.loss(&batch()));
        assert!(last < first - 20.0, "{first} to {last}");
    }
}
