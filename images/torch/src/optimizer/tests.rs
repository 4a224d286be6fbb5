use tch::nn::{self, OptimizerConfig, VarStore};
use tch::{Device, Kind, Reduction};

use super::*;
use crate::layers::linear;
use crate::parameters::Parameters;

/// Two layers, the larger one of more than one block, that learn a few numbers. Nothing is
/// drawn at random: tests run in parallel, and libtorch has one generator.
struct Problem {
    store: VarStore,
    layers: [nn::Linear; 2],
    inputs: Tensor,
    outputs: Tensor,
}

impl Problem {
    fn new() -> Self {
        let store = VarStore::new(Device::Cpu);
        let layers =
            [linear(&(store.root() / "a"), 300, 400), linear(&(store.root() / "b"), 400, 2)];
        for parameter in Parameters::from_store(&store).tensors() {
            parameter.detach().copy_(&(waves(&parameter.size()) * 0.05));
        }
        Self { store, layers, inputs: waves(&[16, 300]), outputs: waves(&[16, 2]) }
    }

    fn loss(&self) -> Tensor {
        let [first, second] = &self.layers;
        let hidden = self.inputs.apply(first).tanh();
        hidden.apply(second).mse_loss(&self.outputs, Reduction::Mean)
    }

    fn train(&self, optimizer: &mut dyn Optimizer, steps: u32) {
        let parameters = Parameters::from_store(&self.store);
        for _ in 0..steps {
            optimizer.step(&parameters.gradients(&self.loss()).unwrap()).unwrap();
        }
    }

    fn furthest(&self, other: &Self) -> f64 {
        let (own, others) =
            (Parameters::from_store(&self.store), Parameters::from_store(&other.store));
        let pairs = own.tensors().iter().zip(others.tensors());
        pairs.map(|(a, b)| (a - b).abs().max().double_value(&[])).fold(0.0, f64::max)
    }
}

fn waves(size: &[i64]) -> Tensor {
    let count = size.iter().product::<i64>();
    (Tensor::arange(count, (Kind::Float, Device::Cpu)) * 1.7).sin().view(size)
}

/// Both make 50 steps from the same start; returns the distance of their parameters.
fn apart(
    ours: impl FnOnce(&Parameters) -> Box<dyn Optimizer>,
    theirs: impl OptimizerConfig,
) -> f64 {
    let (one, other) = (Problem::new(), Problem::new());
    one.train(&mut *ours(&Parameters::from_store(&one.store)), 50);
    let mut theirs = theirs.build(&other.store, 1e-3).unwrap();
    for _ in 0..50 {
        theirs.backward_step(&other.loss());
    }
    let untrained = Problem::new();
    assert!(one.furthest(&untrained) > 1e-3, "nothing was learned");
    one.furthest(&other)
}

#[test]
fn adam_matches_libtorch() {
    for decay in [0.0, 0.1] {
        let ours = |it: &Parameters| -> Box<dyn Optimizer> {
            Box::new(Adam::new(it, 1e-3).unwrap().weight_decay(decay))
        };
        let apart = apart(ours, nn::Adam { wd: decay, ..nn::Adam::default() });
        assert!(apart < 1e-6, "{apart} with a weight decay of {decay}");
    }
}

#[test]
fn gradient_descent_matches_libtorch() {
    for (momentum, nesterov, wd) in
        [(0.0, false, 0.0), (0.9, false, 0.0), (0.9, false, 0.1), (0.9, true, 0.1)]
    {
        let ours = |it: &Parameters| -> Box<dyn Optimizer> {
            let sgd = Sgd::new(it, 1e-3, momentum).unwrap().weight_decay(wd);
            Box::new(if nesterov { sgd.nesterov() } else { sgd })
        };
        let apart = apart(ours, nn::Sgd { momentum, dampening: 0.0, wd, nesterov });
        assert!(apart < 1e-6, "{apart} with {momentum}, {nesterov}, {wd}");
    }
}

/// The state that `ours` has after 20 steps, restored into a fresh one, leads to the same parameters.
fn resumes_exactly(ours: impl Fn(&Parameters) -> Box<dyn Optimizer>) {
    let (whole, cut) = (Problem::new(), Problem::new());
    whole.train(&mut *ours(&Parameters::from_store(&whole.store)), 30);

    let mut before = ours(&Parameters::from_store(&cut.store));
    cut.train(&mut *before, 20);
    let saved = before.state().into_iter().map(|(name, tensor)| (name, tensor.copy())).collect();
    let mut after = ours(&Parameters::from_store(&cut.store));
    after.restore(&saved).unwrap();
    cut.train(&mut *after, 10);
    assert!(whole.furthest(&cut) == 0.0);
}

#[test]
fn restored_state_continues_exactly() {
    resumes_exactly(|it| Box::new(Adam::new(it, 1e-3).unwrap()));
    resumes_exactly(|it| Box::new(Sgd::new(it, 1e-3, 0.9).unwrap()));
}

#[test]
fn state_of_another_model_is_refused_by_name() {
    let problem = Problem::new();
    let mut adam = Adam::new(&Parameters::from_store(&problem.store), 1e-3).unwrap();
    let mut saved: BTreeMap<_, _> = adam.state().into_iter().collect();
    saved.insert("b.bias.exp_avg".to_owned(), Tensor::from(0.0_f32));
    let error = adam.restore(&saved).unwrap_err().to_string();
    assert!(error.contains("b.bias.exp_avg is Float [], but must be Float [2]"), "{error}");
    saved.remove("a.bias.exp_avg");
    let error = adam.restore(&saved).unwrap_err().to_string();
    assert!(error.contains("a.bias.exp_avg is missing"), "{error}");
}

#[test]
fn parameter_unused_by_loss_stays() {
    let problem = Problem::new();
    let unused = problem.store.root().var("unused", &[3], nn::Init::Const(7.0));
    problem.train(&mut Adam::new(&Parameters::from_store(&problem.store), 1e-3).unwrap(), 2);
    problem.train(&mut Sgd::new(&Parameters::from_store(&problem.store), 1e-3, 0.9).unwrap(), 2);
    assert_eq!(Vec::<f32>::try_from(unused).unwrap(), [7.0; 3]);
}
