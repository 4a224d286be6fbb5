//! The adding problem (Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997), in the form of
//! Arjovsky, Shah and Bengio, "Unitary Evolution Recurrent Neural Networks", 2016: one number of each
//! half of a sequence is marked, and the answer at the end is the sum of the two.

use paceline_torch::{Gru, States, linear};
use tch::nn::{Linear, Path};
use tch::{Device, Kind, Reduction, Tensor};

use crate::length;

/// How many numbers a sequence has.
pub const LENGTH: i64 = 100;
/// The hidden units.
pub const HIDDEN: i32 = 128;

/// A layer of gated recurrent units, and a linear layer that computes the answer from its last state.
#[derive(Debug)]
pub struct AddingNet {
    gru: Gru,
    fc: Linear,
}

/// Sequences and their answers.
#[derive(Debug)]
pub struct Sequences {
    /// Two numbers for each place of each sequence: one from 0 to 1, and a mark of 0 or 1.
    pub inputs: Tensor,
    /// The sums of the marked numbers.
    pub sums: Tensor,
}

impl AddingNet {
    /// A network with the initial weights of PyTorch's.
    pub fn new(path: &Path<'_>) -> Self {
        Self { gru: Gru::new(&(path / "gru"), 2, HIDDEN), fc: linear(&(path / "fc"), HIDDEN, 1) }
    }

    /// The answer to each sequence.
    pub fn answers(&self, inputs: &Tensor) -> Tensor {
        self.answer(&self.gru.states(inputs, States::Last))
    }

    /// The mean squared error of the answers. Always answering 1 costs 1/6.
    pub fn loss(&self, Sequences { inputs, sums }: &Sequences) -> Tensor {
        let head = |last: &Tensor| self.answer(last).mse_loss(sums, Reduction::Mean);
        self.gru.loss(inputs, States::Last, head)
    }

    fn answer(&self, last: &Tensor) -> Tensor {
        last.apply(&self.fc).squeeze_dim(1)
    }
}

impl Sequences {
    /// New sequences, from libtorch's generator.
    pub fn draw(count: i64) -> Self {
        let half = LENGTH / 2;
        let float = (Kind::Float, Device::Cpu);
        let integer = (Kind::Int64, Device::Cpu);
        let numbers = Tensor::rand([count, LENGTH], float);
        let places =
            [0, half].map(|first| Tensor::randint_low(first, first + half, [count, 1], integer));
        let places = Tensor::cat(&places, 1);
        let marks = Tensor::zeros([count, LENGTH], float).scatter_value(1, &places, 1.0);
        let sums = (&numbers * &marks).sum_dim_intlist(1, false, Kind::Float);
        Self { inputs: Tensor::stack(&[numbers, marks], 2), sums }
    }

    /// Splits the batch into at most this many parts, each with its number of items.
    pub fn split(&self, parts: i64) -> Vec<(Self, u32)> {
        let inputs = self.inputs.chunk(parts, 0).into_iter();
        let parts = inputs.zip(self.sums.chunk(parts, 0));
        let counted = parts.map(|(inputs, sums)| {
            let count = length(&sums).try_into().unwrap_or(u32::MAX);
            (Self { inputs, sums }, count)
        });
        counted.collect()
    }
}

#[cfg(test)]
mod tests {
    use paceline_torch::{Adam, Clipped, Optimizer, Parameters};
    use tch::nn::VarStore;
    use tch::no_grad;

    use super::*;

    #[test]
    fn marked_numbers_one_per_half_sum_to_answer() {
        tch::manual_seed(1);
        let Sequences { inputs, sums } = Sequences::draw(50);
        assert_eq!((inputs.size(), sums.size()), (vec![50, LENGTH, 2], vec![50]));
        let (numbers, marks) = (inputs.select(2, 0), inputs.select(2, 1));
        assert!(numbers.min().double_value(&[]) >= 0.0 && numbers.max().double_value(&[]) < 1.0);
        for half in marks.split(LENGTH / 2, 1) {
            let marked = half.eq(1.0).sum_dim_intlist(1, false, Kind::Int64);
            let unmarked = half.eq(0.0).sum_dim_intlist(1, false, Kind::Int64);
            assert_eq!(Vec::<i64>::try_from(marked).unwrap(), [1; 50]);
            assert_eq!(Vec::<i64>::try_from(unmarked).unwrap(), [LENGTH / 2 - 1; 50]);
        }
        let apart = (numbers * marks).sum_dim_intlist(1, false, Kind::Float) - sums;
        assert!(apart.abs().max().double_value(&[]) < 1e-6);
    }

    #[test]
    fn untrained_network_has_loss_of_guess_and_training_lowers_it() {
        tch::manual_seed(1);
        let store = VarStore::new(Device::Cpu);
        let net = AddingNet::new(&store.root());
        let parameters = Parameters::from_store(&store);
        assert_eq!(parameters.tensors().iter().map(Tensor::numel).sum::<usize>(), 50_817);
        let mut optimizer = Clipped::new(Adam::new(&parameters, 1e-2).unwrap(), 1.0);
        let sequences = Sequences::draw(16);
        let loss = || no_grad(|| net.loss(&sequences).double_value(&[]));
        // An answer of 0 costs 1 + 1/6.
        let first = loss();
        assert!((0.1..2.0).contains(&first), "{first}");
        for _ in 0..30 {
            optimizer.step(&parameters.gradients(&net.loss(&sequences)).unwrap()).unwrap();
        }
        let last = loss();
        assert!(last < 0.5 * first.min(0.5), "{first} to {last}");
    }
}
