//! A model that computes on several threads, each with a part of the batch.
//!
//! libtorch's own threads share each operation, and wait for each other at the end of it. Where
//! operations are small and many, as along a sequence or between thin layers, most of the time is spent
//! waiting. Where another job uses one of the CPUs, each thread also waits for the other to get it back.
//! Parts of a batch wait for each other only once in a step.
//!
//! Each thread lives as long as the training. libtorch and its libraries prepare data for each thread,
//! and a new thread would have to prepare it again in each step.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::anyhow;
use tch::nn::{Path, VarStore};
use tch::{Device, TchError, Tensor};

use crate::loss::Loss;
use crate::parameters::Parameters;

/// A model whose parts of a batch, `B`, are computed side by side.
#[derive(Debug)]
pub struct Replicas<M, B> {
    /// The loss of a part.
    loss: fn(&M, &B) -> Tensor,
    parameters: Parameters,
    helpers: Vec<Helper<B>>,
}

/// A thread with its own model over the same parameters.
#[derive(Debug)]
struct Helper<B> {
    parameters: Parameters,
    /// Parts of batches with the weights of their losses.
    parts: Sender<(B, f64)>,
    /// The result of each part.
    gradients: Receiver<Result<Weighted, TchError>>,
}

/// A loss and its gradients, times a weight.
type Weighted = (f64, Vec<Tensor>);

impl<M: Send + 'static, B: Send + 'static> Replicas<M, B> {
    /// Starts the other `threads - 1` threads for the model of `store` that `build` has built. From now
    /// on, each libtorch operation is computed by the thread that calls it.
    pub fn new(
        threads: i32,
        store: &VarStore,
        build: impl Fn(&Path<'_>) -> M,
        loss: fn(&M, &B) -> Tensor,
    ) -> Self {
        tch::set_num_threads(1);
        let helpers = (1..threads).map(|_| {
            let own = VarStore::new(Device::Cpu);
            let model = build(&own.root());
            Helper::begin(&own, model, loss)
        });
        Self { loss, helpers: helpers.collect(), parameters: Parameters::from_store(store) }
    }

    /// The number of parts that a batch should have.
    pub fn parts(&self) -> i64 {
        i64::try_from(self.helpers.len() + 1).unwrap_or(i64::MAX)
    }

    /// The mean loss of a batch and its gradients, where the loss of a part is its mean. Each part comes
    /// with its number of items.
    pub fn mean(&mut self, model: &M, parts: Vec<(B, u32)>) -> anyhow::Result<Loss> {
        let items = items(&parts);
        let parts = parts.into_iter().map(|(part, own)| (part, f64::from(own) / items));
        let (mean, gradients) = self.together(model, parts)?;
        Ok(Loss::known(mean, gradients))
    }

    /// The same where the loss of a part is its sum: the sum of the batch is minimized, and the mean is
    /// reported.
    pub fn sum(&mut self, model: &M, parts: Vec<(B, u32)>) -> anyhow::Result<Loss> {
        let items = items(&parts);
        let parts = parts.into_iter().map(|(part, _)| (part, 1.0));
        let (sum, gradients) = self.together(model, parts)?;
        Ok(Loss::known(sum / items, gradients))
    }

    /// The sum of the parts' losses, each times its weight, and its gradients.
    fn together(
        &mut self,
        model: &M,
        parts: impl IntoIterator<Item = (B, f64)>,
    ) -> anyhow::Result<Weighted> {
        let mut parts = parts.into_iter();
        let (first, its_weight) = parts.next().ok_or_else(|| anyhow!("a batch without parts"))?;
        let mut at_work = Vec::new();
        // The other threads begin before this one computes its own part.
        for (helper, part) in self.helpers.iter_mut().zip(parts) {
            helper.parameters.share(&self.parameters);
            helper.parts.send(part).map_err(|_| anyhow!("a thread has ended"))?;
            at_work.push(&helper.gradients);
        }
        let own = weighted(&(self.loss)(model, &first), its_weight, &self.parameters);
        // All answers are received, even after an error: none may be left for the next batch.
        let others: Vec<_> = at_work.into_iter().map(Receiver::recv).collect();
        let (mut sum, mut gradients) = own?;
        for other in others {
            let (more, further) = other.map_err(|_| anyhow!("a thread panicked"))??;
            sum += more;
            for (sum, gradient) in gradients.iter_mut().zip(&further) {
                *sum += gradient;
            }
        }
        Ok((sum, gradients))
    }
}

impl<B: Send + 'static> Helper<B> {
    /// Starts the thread; it ends when the sender of parts is dropped.
    fn begin<M: Send + 'static>(store: &VarStore, model: M, loss: fn(&M, &B) -> Tensor) -> Self {
        let (parts, asked) = channel::<(B, f64)>();
        let (answer, gradients) = channel();
        let own = Parameters::from_store(store);
        thread::spawn(move || {
            for (part, weight) in asked {
                if answer.send(weighted(&loss(&model, &part), weight, &own)).is_err() {
                    break;
                }
            }
        });
        Self { parameters: Parameters::from_store(store), parts, gradients }
    }
}

/// The number of items in the parts of a batch.
fn items<B>(parts: &[(B, u32)]) -> f64 {
    parts.iter().map(|(_, items)| f64::from(*items)).sum()
}

fn weighted(loss: &Tensor, weight: f64, parameters: &Parameters) -> Result<Weighted, TchError> {
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

    type Part = (Tensor, Tensor);

    fn loss(model: &Linear, (inputs, wanted): &Part) -> Tensor {
        model.forward(inputs).mse_loss(wanted, Reduction::Mean)
    }

    fn summed(model: &Linear, part: &Part) -> Tensor {
        loss(model, part) * part.0.size()[0]
    }

    #[test]
    fn parts_have_loss_and_gradients_of_whole_batch() {
        tch::manual_seed(1);
        let build = |path: &Path<'_>| linear(&(path / "fc"), 5, 3);
        let store = VarStore::new(Device::Cpu);
        let model = build(&store.root());
        let parameters = Parameters::from_store(&store);
        let float = (Kind::Float, Device::Cpu);
        let (inputs, wanted) = (Tensor::rand([10, 5], float), Tensor::rand([10, 3], float));
        let batch = (inputs.copy(), wanted.copy());
        let whole = Loss::from(loss(&model, &batch)).into_gradients(&parameters).unwrap();
        for threads in [1, 2, 3, 20] {
            let mut replicas = Replicas::new(threads, &store, build, loss);
            let parts = inputs.chunk(replicas.parts(), 0).into_iter();
            let parts = parts.zip(wanted.chunk(replicas.parts(), 0));
            let parts = parts.map(|part| {
                let items = u32::try_from(part.0.size()[0]).unwrap();
                (part, items)
            });
            let parts: Vec<_> = parts.collect();
            let copies = parts.iter().map(|((a, b), items)| ((a.copy(), b.copy()), *items));
            let mean = replicas.mean(&model, copies.collect()).unwrap();
            assert_close(mean, &whole, 1.0, &parameters);
            let mut replicas = Replicas::new(threads, &store, build, summed);
            let sum = replicas.sum(&model, parts).unwrap();
            assert_close(sum, &whole, 10.0, &parameters);
        }
    }

    /// Asserts that a loss is that of the whole batch, and its gradients this multiple of the batch's.
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
    fn batch_without_parts_is_an_error() {
        let store = VarStore::new(Device::Cpu);
        let build = |path: &Path<'_>| linear(&(path / "fc"), 5, 3);
        let model = build(&store.root());
        let mut replicas = Replicas::new(2, &store, build, loss);
        let error = replicas.mean(&model, Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "a batch without parts");
    }

    #[test]
    fn updated_parameters_reach_all_threads() {
        let store = VarStore::new(Device::Cpu);
        let build = |path: &Path<'_>| linear(&(path / "fc"), 5, 3);
        let model = build(&store.root());
        let mut replicas = Replicas::new(2, &store, build, loss);
        let float = (Kind::Float, Device::Cpu);
        let (inputs, wanted) = (Tensor::rand([1, 5], float), Tensor::rand([1, 3], float));
        let mut both = || {
            let part = || ((inputs.copy(), wanted.copy()), 1);
            let loss = replicas.mean(&model, vec![part(), part()]).unwrap();
            loss.into_gradients(&Parameters::from_store(&store)).unwrap().0
        };
        let alone = || f64::try_from(loss(&model, &(inputs.copy(), wanted.copy()))).unwrap();
        assert!((both() - alone()).abs() < 1e-6);
        // By an optimizer in place, and by a change of memory.
        no_grad(|| {
            store
                .variables()
                .into_values()
                .for_each(|mut weights| drop(weights.g_add_scalar_(1.0)));
        });
        assert!((both() - alone()).abs() < 1e-6);
        for mut weights in store.variables().into_values() {
            weights.set_data(&(weights.detach() * 2.0));
        }
        assert!((both() - alone()).abs() < 1e-6);
    }
}
