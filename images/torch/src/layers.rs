//! Layers with the initial weights of PyTorch's.
//!
//! PyTorch draws weights and biases of linear and convolutional layers from the uniform distribution
//! within ±1/√n, where n is the number of inputs to an output (`reset_parameters` of `nn.Linear` and of
//! `nn.Conv2d`). The defaults of tch are wider for weights, by √6, and zero for the biases of
//! convolutional layers.

use tch::nn::{self, Conv2D, ConvConfig, Init, Linear, LinearConfig, Path};

/// A fully connected layer.
pub fn linear(path: &Path<'_>, inputs: i32, outputs: i32) -> Linear {
    let init = within(inputs);
    let config = LinearConfig { ws_init: init, bs_init: Some(init), bias: true };
    nn::linear(path, inputs.into(), outputs.into(), config)
}

/// A convolution with a square kernel and a stride of 1, without padding.
pub fn conv2d(path: &Path<'_>, inputs: i32, outputs: i32, kernel: i32) -> Conv2D {
    let init = within(inputs * kernel * kernel);
    let config = ConvConfig { ws_init: init, bs_init: init, ..ConvConfig::default() };
    nn::conv2d(path, inputs.into(), outputs.into(), kernel.into(), config)
}

fn within(inputs: i32) -> Init {
    let bound = f64::from(inputs).sqrt().recip();
    Init::Uniform { lo: -bound, up: bound }
}

#[cfg(test)]
mod tests {
    use tch::nn::VarStore;
    use tch::{Device, Tensor};

    use super::*;

    /// The values lie within the bound, and fill it.
    fn assert_fills(values: &Tensor, bound: f64) {
        let (low, high) = (values.min().double_value(&[]), values.max().double_value(&[]));
        assert!(-bound <= low && low < -0.9 * bound, "{low} for a bound of {bound}");
        assert!(0.9 * bound < high && high <= bound, "{high} for a bound of {bound}");
    }

    #[test]
    fn linear_layer_starts_within_root_of_inputs() {
        let store = VarStore::new(Device::Cpu);
        let layer = linear(&store.root(), 400, 200);
        assert_fills(&layer.ws, 0.05);
        assert_fills(&layer.bs.unwrap(), 0.05);
    }

    #[test]
    fn convolution_counts_whole_kernel_as_inputs() {
        let store = VarStore::new(Device::Cpu);
        let layer = conv2d(&store.root(), 4, 100, 5);
        assert_fills(&layer.ws, 0.1);
        assert_fills(&layer.bs.unwrap(), 0.1);
    }
}
