//! A model that computes on several threads, each of which has a part of the batch.
//!
//! libtorch's own threads share each operation, and wait for each other at the end of each. Where
//! operations are small and many, as along a sequence or between thin layers, that is most of their
//! time; and where another job has one of the CPUs, one thread waits for the other to get it back, again
//! and again. Parts of a batch meet once in a step.

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
        let items = items(&parts);
        let parts = parts.into_iter().map(|(part, own)| (part, f64::from(own) / items));
        let (mean, gradients) = self.together(store, model, parts, loss)?;
        Ok(Loss::known(mean, gradients))
    }

    /// The same where `loss` gives the sum of a part: the sum of the batch is what is minimized, and
    /// the mean what is reported.
    pub fn sum<B: Send>(
        &mut self,
        store: &VarStore,
        model: &M,
        parts: Vec<(B, u32)>,
        loss: impl Fn(&M, &B) -> Tensor + Sync,
    ) -> anyhow::Result<Loss> {
        let items = items(&parts);
        let parts = parts.into_iter().map(|(part, _)| (part, 1.0));
        let (sum, gradients) = self.together(store, model, parts, loss)?;
        Ok(Loss::known(sum / items, gradients))
    }

    /// The sum of the parts' losses, each times its weight, and its gradients.
    fn together<B: Send>(
        &mut self,
        store: &VarStore,
        model: &M,
        parts: impl IntoIterator<Item = (B, f64)>,
        loss: impl Fn(&M, &B) -> Tensor + Sync,
    ) -> anyhow::Result<(f64, Vec<Tensor>)> {
        let mut parts = parts.into_iter();
        let (first, its_weight) = parts.next().ok_or_else(|| anyhow!("a batch without parts"))?;
        for copy in &mut self.copies {
            copy.store.copy(store)?;
        }
        let loss = &loss;
        thread::scope(|scope| {
            let others = self.copies.iter_mut().zip(parts).map(|(copy, (part, weight))| {
                scope.spawn(move || {
                    let Replica { parameters, model, .. } = copy;
                    weighted(&loss(model, &part), weight, parameters)
                })
            });
            // They begin before this thread does its own part.
            let others: Vec<_> = others.collect();
            let parameters = Parameters::of(store);
            let (mut sum, mut gradients) = weighted(&loss(model, &first), its_weight, &parameters)?;
            for other in others {
                let (more, further) = other.join().map_err(|_| anyhow!("a thread panicked"))??;
                sum += more;
                for (sum, gradient) in gradients.iter_mut().zip(&further) {
                    *sum += gradient;
                }
            }
            Ok((sum, gradients))
        })
    }
}

/// How many items the parts of a batch have.
fn items<B>(parts: &[(B, u32)]) -> f64 {
    parts.iter().map(|(_, items)| f64::from(*items)).sum()
}

/// A loss and its gradients, times a weight.
fn weighted(
    loss: &Tensor,
    weight: f64,
    parameters: &Parameters,
) -> anyhow::Result<(f64, Vec<Tensor>)> {
    let loss = loss * weight;
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
            let parts: Vec<_> = parts.collect();
            let copies = parts.iter().map(|((a, b), items)| ((a.copy(), b.copy()), *items));
            let mean = replicas.loss(&store, &model, copies.collect(), loss).unwrap();
            assert_close(mean, &whole, 1.0, &parameters);
            let summed =
                |model: &Linear, part: &(Tensor, Tensor)| loss(model, part) * part.0.size()[0];
            let sum = replicas.sum(&store, &model, parts, summed).unwrap();
            assert_close(sum, &whole, 10.0, &parameters);
        }
    }

    /// Fails unless a loss is that of the whole batch, and its gradients so many times those.
    fn assert_close(
        found: Loss,
        (mean, gradients): &(f64, Vec<Tensor>),
        times: f64,
        parameters: &Parameters,
    ) {
        let (found, its) = found.into_gradients(parameters).unwrap();
        assert!((found - mean).abs() < 1e-6, "{found}, {mean}");
        for (gradient, wanted) in its.iter().zip(gradients) {
            let apart = no_grad(|| (gradient - wanted * times).abs().max().double_value(&[]));
            assert!(apart < 1e-6 * times, "{apart}");
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
