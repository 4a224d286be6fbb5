//! The model and its loss.

use paceline_torch::linear;
use tch::nn::{Linear, Module, Path};
use tch::{Kind, Reduction, Tensor};

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

impl Vae {
    /// A model with the initial weights of PyTorch's.
    pub fn new(path: &Path<'_>) -> Self {
        Self {
            fc1: linear(&(path / "fc1"), 784, 400),
            fc21: linear(&(path / "fc21"), 400, 20),
            fc22: linear(&(path / "fc22"), 400, 20),
            fc3: linear(&(path / "fc3"), 20, 400),
            fc4: linear(&(path / "fc4"), 400, 784),
        }
    }

    /// The loss of a batch of flat images, summed over its pixels: the binary cross entropy of the
    /// reconstruction, and the divergence of the hidden numbers from standard normal ones (Kingma
    /// and Welling, "Auto-Encoding Variational Bayes", 2014, appendix B).
    pub fn loss(&self, images: &Tensor) -> Tensor {
        let code = self.encode(images);
        let noise = code.0.randn_like();
        self.loss_of(images, &code, &noise)
    }

    /// The same where the hidden numbers are drawn by a given noise.
    pub fn loss_with(&self, images: &Tensor, noise: &Tensor) -> Tensor {
        self.loss_of(images, &self.encode(images), noise)
    }

    fn loss_of(
        &self,
        images: &Tensor,
        (mean, log_variance): &(Tensor, Tensor),
        noise: &Tensor,
    ) -> Tensor {
        let sample = mean + noise * (log_variance * 0.5).exp();
        let cross_entropy =
            self.decode(&sample).binary_cross_entropy::<Tensor>(images, None, Reduction::Sum);
        let divergence =
            (1.0_f64 + log_variance - mean.square() - log_variance.exp()).sum(Kind::Float) * -0.5;
        cross_entropy + divergence
    }

    fn encode(&self, images: &Tensor) -> (Tensor, Tensor) {
        let hidden = self.fc1.forward(images).relu();
        (self.fc21.forward(&hidden), self.fc22.forward(&hidden))
    }

    fn decode(&self, sample: &Tensor) -> Tensor {
        self.fc4.forward(&self.fc3.forward(sample).relu()).sigmoid()
    }
}

#[cfg(test)]
mod tests {
    use paceline_torch::{Adam, Optimizer, Parameters};
    use tch::nn::VarStore;
    use tch::{Device, Tensor};

    use super::*;

    #[test]
    fn an_untrained_model_is_as_wrong_as_a_guess_and_training_helps() {
        tch::manual_seed(1);
        let store = VarStore::new(Device::Cpu);
        let model = Vae::new(&store.root());
        let parameters = Parameters::of(&store);
        let mut optimizer = Adam::new(&parameters, 1e-3).unwrap();
        let images = Tensor::rand([16, 784], (Kind::Float, Device::Cpu));
        let per_image = |loss: Tensor| f64::try_from(loss).unwrap() / 16.0;
        // A guess of 0.5 for each pixel costs 784 ln 2 = 543.
        let first = per_image(model.loss(&images));
        assert!((first - 543.0).abs() < 15.0, "{first}");
        for _ in 0..100 {
            let gradients = parameters.gradients(&model.loss(&images)).unwrap();
            optimizer.step(&gradients).unwrap();
        }
        let last = per_image(model.loss(&images));
        assert!(last < first - 20.0, "{first} to {last}");
    }
}
