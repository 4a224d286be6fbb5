//! A model that computes on several threads, each of which has a part of the batch.
//!
//! libtorch's own threads share each operation. Those of a recurrent network are small and many: they
//! depend on each other along the sequence, and every one would wait for the threads to wake up. Parts
//! of a batch meet once in a step.

use std::thread;

use anyhow::anyhow;
use tch::nn::{Path, VarStore};
use tch::{Device, Tensor};

use crate::loss::Loss;
use crate::parameters::Parameters;

/// Copies of a model for further threads.
#[derive(Debug)]
pub struct Replicas<M> {
    copies: Vec<Replica<M>>,
}

#[derive(Debug)]
struct Replica<M> {
    store: VarStore,
    parameters: Parameters,
    model: M,
}

impl<M: Send> Replicas<M> {
    /// As many copies as make `threads` with the model itself. From now on each operation of libtorch
    /// is computed by the thread that asks for it.
    pub fn new(threads: i32, build: impl Fn(&Path<'_>) -> M) -> Self {
        tch::set_num_threads(1);
        let copies = (1..threads).map(|_| {
            let store = VarStore::new(Device::Cpu);
            let model = build(&store.root());
            Replica { parameters: Parameters::of(&store), store, model }
        });
        Self { copies: copies.collect() }
    }

    /// How many parts a batch should have.
    pub fn parts(&self) -> i64 {
        i64::try_from(self.copies.len() + 1).unwrap_or(i64::MAX)
    }

    /// The mean loss of a batch and its gradients, from the parts that it is in and the number of items
    /// of each. `loss` gives the mean of a part.
    pub fn loss<B: Send>(
        &mut self,
        store: &VarStore,
        model: &M,
        parts: Vec<(B, u32)>,
        loss: impl Fn(&M, &B) -> Tensor + Sync,
    ) -> anyhow::Result<Loss> {
        let items: f64 = parts.iter().map(|(_, items)| f64::from(*items)).sum();
        let mut parts = parts.into_iter().map(|(part, own)| (part, f64::from(own) / items));
        let (first, its_share) = parts.next().ok_or_else(|| anyhow!("a batch without parts"))?;
        for copy in &mut self.copies {
            copy.store.copy(store)?;
        }
        let loss = &loss;
        thread::scope(|scope| {
            let others = self.copies.iter_mut().zip(parts).map(|(copy, (part, share))| {
                scope.spawn(move || {
                    let Replica { parameters, model, .. } = copy;
                    weighted(&loss(model, &part), share, parameters)
                })
            });
            // They begin before this thread does its own part.
            let others: Vec<_> = others.collect();
            let parameters = Parameters::of(store);
            let (mut mean, mut gradients) = weighted(&loss(model, &first), its_share, &parameters)?;
            for other in others {
                let (more, further) = other.join().map_err(|_| anyhow!("a thread panicked"))??;
                mean += more;
                for (sum, gradient) in gradients.iter_mut().zip(&further) {
                    *sum += gradient;
                }
            }
            Ok(Loss::known(mean, gradients))
        })
    }
}

/// A loss and its gradients, by the share that they have in those of the batch.
fn weighted(
    loss: &Tensor,
    share: f64,
    parameters: &Parameters,
) -> anyhow::Result<(f64, Vec<Tensor>)> {
    let loss = loss * share;
    let gradients = parameters.gradients(&loss)?;
    Ok((f64::try_from(loss)?, gradients))
}

#[cfg(test)]
mod tests {
    use tch::nn::{Linear, Module};
    use tch::{Kind, Reduction, no_grad};

    use super::*;
    use crate::layers::linear;

    fn loss(model: &Linear, (inputs, wanted): &(Tensor, Tensor)) -> Tensor {
        model.forward(inputs).mse_loss(wanted, Reduction::Mean)
    }

    #[test]
    fn parts_together_have_the_loss_and_the_gradients_of_the_whole() {
        tch::manual_seed(1);
        let build = |path: &Path<'_>| linear(&(path / "fc"), 5, 3);
        let store = VarStore::new(Device::Cpu);
        let model = build(&store.root());
        let parameters = Parameters::of(&store);
        let float = (Kind::Float, Device::Cpu);
        let (inputs, wanted) = (Tensor::rand([10, 5], float), Tensor::rand([10, 3], float));
        let batch = (inputs.copy(), wanted.copy());
        let whole = Loss::from(loss(&model, &batch)).into_gradients(&parameters).unwrap();
        for threads in [1, 2, 3, 20] {
            let mut replicas = Replicas::new(threads, build);
            // The copies start with other weights.
            let parts = inputs.chunk(replicas.parts(), 0).into_iter();
            let parts = parts.zip(wanted.chunk(replicas.parts(), 0));
            let parts = parts.map(|part| {
                let items = u32::try_from(part.0.size()[0]).unwrap();
                (part, items)
            });
            let sum = replicas.loss(&store, &model, parts.collect(), loss).unwrap();
            let (mean, gradients) = sum.into_gradients(&parameters).unwrap();
            assert!((mean - whole.0).abs() < 1e-6, "{threads} threads: {mean}, {}", whole.0);
            for (gradient, wanted) in gradients.iter().zip(&whole.1) {
                let apart = no_grad(|| (gradient - wanted).abs().max().double_value(&[]));
                assert!(apart < 1e-6, "{threads} threads: {apart}");
            }
        }
    }

    #[test]
    fn a_batch_without_parts_is_an_error() {
        let store = VarStore::new(Device::Cpu);
        let build = |path: &Path<'_>| linear(&(path / "fc"), 5, 3);
        let model = build(&store.root());
        let error = Replicas::new(2, build).loss(&store, &model, Vec::new(), loss).unwrap_err();
        assert_eq!(error.to_string(), "a batch without parts");
    }
}
