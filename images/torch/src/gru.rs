//! A layer of gated recurrent units (Cho et al., "Learning Phrase Representations using RNN
//! Encoder-Decoder for Statistical Machine Translation", 2014), in the form and with the names that
//! PyTorch's `nn.GRU` has, and with gradients of its own.
//!
//! libtorch traces every operation of every item of a sequence, and adds up the gradient of the weights
//! item by item. Here, the derivatives of the states are computed for all items at once, and so are the
//! weights' gradients after them. This leaves six operations for each item on the way forward, and three
//! on the way back.

use tch::nn::{Init, Path};
use tch::{Tensor, no_grad};

/// A layer, over sequences whose first dimension is the batch.
#[derive(Debug)]
pub struct Gru {
    input_weights: Tensor,
    state_weights: Tensor,
    input_bias: Tensor,
    state_bias: Tensor,
    hidden: i64,
}

/// The states that a loss is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum States {
    /// The last one of each sequence: `[batch, hidden]`.
    Last,
    /// The one after each item: `[batch, items, hidden]`.
    All,
}

/// The intermediate values of a batch, item by item: `[items, batch, …]`.
struct Pass {
    inputs: Tensor,
    /// Including the one before the first item, which is zero.
    states: Tensor,
    /// Reset, update and proposed state.
    gates: Tensor,
    /// The contribution of the previous state to each of them.
    state_terms: Tensor,
}

/// The gradients of a loss.
struct Gradients {
    /// The contribution of the inputs to the gates: `[items · batch, 3 · hidden]`.
    input_terms: Tensor,
    input_weights: Tensor,
    state_weights: Tensor,
    input_bias: Tensor,
    state_bias: Tensor,
}

impl Gru {
    /// A layer with PyTorch's initial weights, from the uniform distribution within ±1/√hidden.
    pub fn new(path: &Path<'_>, inputs: i32, hidden: i32) -> Self {
        let bound = f64::from(hidden).sqrt().recip();
        let (inputs, hidden) = (i64::from(inputs), i64::from(hidden));
        let var =
            |name, shape: &[i64]| path.var(name, shape, Init::Uniform { lo: -bound, up: bound });
        Self {
            input_weights: var("weight_ih_l0", &[3 * hidden, inputs]),
            state_weights: var("weight_hh_l0", &[3 * hidden, hidden]),
            input_bias: var("bias_ih_l0", &[3 * hidden]),
            state_bias: var("bias_hh_l0", &[3 * hidden]),
            hidden,
        }
    }

    /// The states of sequences `[batch, items, inputs]`, without gradients.
    pub fn states(&self, inputs: &Tensor, which: States) -> Tensor {
        no_grad(|| self.pass(inputs).states(which))
    }

    /// The state after one more item `[batch, inputs]`.
    pub fn step(&self, input: &Tensor, state: &Tensor) -> Tensor {
        let (weights, bias) = (&self.input_weights, Some(&self.input_bias));
        input.gru_cell(state, weights, &self.state_weights, bias, Some(&self.state_bias))
    }

    /// The state before any item.
    pub fn no_state(&self, batch: i64) -> Tensor {
        Tensor::zeros(
            [batch, self.hidden],
            (self.state_weights.kind(), self.state_weights.device()),
        )
    }

    /// The loss that `head` computes from the states, to be minimized.
    pub fn loss(
        &self,
        inputs: &Tensor,
        which: States,
        head: impl FnOnce(&Tensor) -> Tensor,
    ) -> Tensor {
        let pass = no_grad(|| self.pass(inputs));
        let states = pass.states(which).detach();
        if !is_traced(&self.state_bias) {
            return head(&states);
        }
        let states = states.set_requires_grad(true);
        let loss = head(&states);
        // libtorch traces the head itself as usual.
        let of_states = Tensor::run_backward(&[&loss], &[&states], true, false);
        let Some(of_states) = of_states.first().filter(|it| it.defined()) else { return loss };
        let gradients = no_grad(|| self.gradients(&pass, of_states, which));
        let known = [
            (&self.input_weights, gradients.input_weights),
            (&self.state_weights, gradients.state_weights),
            (&self.input_bias, gradients.input_bias),
            (&self.state_bias, gradients.state_bias),
        ];
        let further = inputs.requires_grad().then(|| {
            let of_rows = no_grad(|| gradients.input_terms.mm(&self.input_weights));
            let (batch, items) = (length(inputs, 0), length(inputs, 1));
            (inputs, of_rows.reshape([items, batch, -1]).transpose(0, 1))
        });
        let known = known.into_iter().chain(further);
        known.fold(loss, |loss, (of, gradient)| with_gradient(&loss, of, &gradient))
    }

    fn pass(&self, inputs: &Tensor) -> Pass {
        let hidden = self.hidden;
        let inputs = inputs.detach().transpose(0, 1).contiguous();
        let gates = inputs.linear(&self.input_weights, Some(&self.input_bias));
        let state_terms = gates.empty_like();
        let (items, batch) = (length(&gates, 0), length(&gates, 1));
        let states = Tensor::empty([items + 1, batch, hidden], (gates.kind(), gates.device()));
        drop(states.select(0, 0).zero_());
        let weights = self.state_weights.tr();
        let (both, of_both) =
            (gates.narrow(2, 0, 2 * hidden), state_terms.narrow(2, 0, 2 * hidden));
        let [reset, update, proposed] = [0, 1, 2].map(|gate| self.part(&gates, gate));
        let of_proposed = self.part(&state_terms, 2);
        let (before, after) = (states.narrow(0, 0, items), states.narrow(0, 1, items));
        for item in 0..items {
            let [before, after, state_terms] = at(item, [&before, &after, &state_terms]);
            let [mut both, of_both] = at(item, [&both, &of_both]);
            let [reset, update] = at(item, [&reset, &update]);
            let [mut proposed, of_proposed] = at(item, [&proposed, &of_proposed]);
            drop(self.state_bias.addmm_out(&state_terms, &before, &weights));
            drop(both.g_add_(&of_both));
            drop(both.sigmoid_());
            drop(proposed.addcmul_(&reset, &of_proposed));
            drop(proposed.tanh_());
            drop(proposed.lerp_tensor_out(&after, &before, &update));
        }
        Pass { inputs, states, gates, state_terms }
    }

    /// `of_states` are the gradients of those states that the loss is made of.
    fn gradients(&self, pass: &Pass, of_states: &Tensor, which: States) -> Gradients {
        let Pass { inputs, states, gates, state_terms } = pass;
        let (items, batch) = (length(gates, 0), length(gates, 1));
        let (reset, update, proposed) =
            (self.part(gates, 0), self.part(gates, 1), self.part(gates, 2));
        let before = states.narrow(0, 0, items);
        let room = |shape: &[i64]| Tensor::empty(shape, (gates.kind(), gates.device()));
        // The factors of a state's gradient that give the gradients of the previous state's terms in
        // reset, update and proposed state.
        let factors = room(&[items, batch, 3, self.hidden]);
        let kept = update.rsub_scalar(1.0);
        let by_proposed = proposed.square().rsub_scalar(1.0).g_mul(&kept);
        let of_proposed = by_proposed.mul_out(&factors.select(2, 2), &reset);
        let by_reset = self.part(state_terms, 2).g_mul(&reset.rsub_scalar(1.0));
        drop(by_reset.mul_out(&factors.select(2, 0), &of_proposed));
        drop((&before - &proposed).g_mul(&update).mul_out(&factors.select(2, 1), &kept));

        let own = match which {
            States::Last => {
                let own = room(&[items, batch, self.hidden]).zero_();
                own.select(0, items - 1).copy_(of_states);
                own
            }
            States::All => of_states.transpose(0, 1).contiguous(),
        };
        let of_state_terms = room(&[items, batch, 3, self.hidden]);
        self.trace_back(&own, &update, &factors, &of_state_terms);

        let rows = |of: &Tensor| of.reshape([items * batch, -1]);
        let of_rows = rows(&of_state_terms);
        let (state_weights, state_bias) = (of_rows.tr().mm(&rows(&before)), sum(&of_rows));
        // The reset gate does not apply to the inputs' term of the proposed state.
        drop(own.mul_out(&of_state_terms.select(2, 2), &by_proposed));
        Gradients {
            // Inputs may be narrow, and this order makes the product with them nine times as fast.
            input_weights: rows(inputs).tr().mm(&of_rows).tr(),
            state_weights,
            input_bias: sum(&of_rows),
            state_bias,
            input_terms: of_rows,
        }
    }

    /// Computes the gradients of all states and of their terms in the next one. `own` first holds the
    /// states' direct gradients from the loss.
    fn trace_back(&self, own: &Tensor, update: &Tensor, factors: &Tensor, of_state_terms: &Tensor) {
        let (wide, flat) = (own.unsqueeze(2), of_state_terms.flatten(2, 3));
        let items = length(own, 0);
        for item in (0..items).rev() {
            if item + 1 < items {
                let [later, its_update, its_terms] = at(item + 1, [own, update, &flat]);
                let mut own = own.select(0, item);
                drop(own.addcmul_(&later, &its_update));
                drop(own.addmm_(&its_terms, &self.state_weights));
            }
            let [wide, factors, of_state_terms] = at(item, [&wide, factors, of_state_terms]);
            drop(factors.mul_out(&of_state_terms, &wide));
        }
    }

    /// The numbers of one gate.
    fn part(&self, of: &Tensor, gate: i64) -> Tensor {
        of.narrow(2, gate * self.hidden, self.hidden)
    }
}

impl Pass {
    fn states(&self, which: States) -> Tensor {
        let items = length(&self.states, 0) - 1;
        match which {
            States::Last => self.states.select(0, items),
            States::All => self.states.narrow(0, 1, items).transpose(0, 1),
        }
    }
}

/// The part of each tensor that belongs to one item.
fn at<const N: usize>(item: i64, each: [&Tensor; N]) -> [Tensor; N] {
    each.map(|it| it.select(0, item))
}

/// Whether computations with a parameter are traced now. Within `no_grad`, a parameter still reports
/// that it requires a gradient, but results computed from it do not.
fn is_traced(parameter: &Tensor) -> bool {
    parameter.sum(parameter.kind()).requires_grad()
}

/// The same loss, with the given gradient for a traced tensor.
fn with_gradient(loss: &Tensor, of: &Tensor, gradient: &Tensor) -> Tensor {
    let along = (of * gradient).sum(loss.kind());
    loss + (&along - along.detach())
}

fn sum(rows: &Tensor) -> Tensor {
    rows.sum_dim_intlist(0, false, rows.kind())
}

fn length(tensor: &Tensor, dimension: usize) -> i64 {
    tensor.size().get(dimension).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tch::nn::{self, RNN, RNNConfig, VarStore};
    use tch::{Device, Kind};

    use super::*;
    use crate::Parameters;

    const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);

    /// A number that depends on all states, and on each one differently.
    fn head(states: &Tensor) -> Tensor {
        let each = Tensor::arange(i64::try_from(states.numel()).unwrap(), FLOAT).cos();
        (states.square() * each.view_as(states)).sum(Kind::Float)
    }

    fn assert_close(found: &Tensor, wanted: &Tensor) {
        let apart = (found - wanted).abs().max().double_value(&[]);
        assert!(apart < 1e-5, "{apart}: {found:?} {wanted:?}");
    }

    #[test]
    fn states_and_gradients_match_libtorch() {
        tch::manual_seed(1);
        for (which, items) in
            [(States::Last, 7), (States::All, 7), (States::Last, 1), (States::All, 1)]
        {
            let (store, mut other) = (VarStore::new(Device::Cpu), VarStore::new(Device::Cpu));
            let own = Gru::new(&store.root(), 3, 5);
            let traced = nn::gru(other.root(), 3, 5, RNNConfig::default());
            other.copy(&store).unwrap();
            let inputs = || Tensor::arange(4 * items * 3, FLOAT).sin().reshape([4, items, 3]);
            let (inputs, its) =
                (inputs().set_requires_grad(true), inputs().set_requires_grad(true));
            let loss = own.loss(&inputs, which, head);
            let (all, last) = traced.seq(&its);
            let states = match which {
                States::All => all,
                States::Last => last.value().squeeze_dim(0),
            };
            assert_close(&own.states(&inputs, which), &states);
            let wanted = head(&states);
            assert_close(&loss, &wanted);
            let with = |store: &VarStore, inputs: &Tensor| {
                let parameters = Parameters::from_store(store);
                let tensors = parameters.tensors().iter().chain([inputs]);
                tensors.map(Tensor::shallow_clone).collect::<Vec<_>>()
            };
            let found = Tensor::run_backward(&[loss], &with(&store, &inputs), false, false);
            let wanted = Tensor::run_backward(&[wanted], &with(&other, &its), false, false);
            assert_eq!(found.len(), 5);
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_close(found, wanted);
            }
        }
    }

    #[test]
    fn single_steps_reach_same_state() {
        tch::manual_seed(1);
        let store = VarStore::new(Device::Cpu);
        let gru = Gru::new(&store.root(), 3, 5);
        let inputs = Tensor::rand([2, 6, 3], FLOAT);
        let items = inputs.unbind(1);
        let last = items.iter().fold(gru.no_state(2), |state, item| gru.step(item, &state));
        assert_close(&last, &gru.states(&inputs, States::Last));
    }

    #[test]
    fn untraced_loss_is_the_same() {
        let store = VarStore::new(Device::Cpu);
        let gru = Gru::new(&store.root(), 3, 5);
        let inputs = Tensor::rand([2, 6, 3], FLOAT);
        let loss = || gru.loss(&inputs, States::All, head);
        let plain = no_grad(loss);
        assert!(!plain.requires_grad() && loss().requires_grad());
        assert_close(&plain, &loss());
    }
}
