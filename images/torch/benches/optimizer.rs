//! What a step of the optimizers costs beside libtorch's own, in turns, on the parameters of the
//! workloads' sizes.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::{Duration, Instant};

use anyhow::Context;
use paceline_torch::{Adam, Optimizer, Parameters};
use paceline_workload::environment;
use tch::nn::{self, OptimizerConfig, VarStore};
use tch::{Device, Kind, Tensor};

const STEPS: usize = 100;
/// The sizes of parameters; of ResNet-50's, the last stage, which has most of them.
const MODELS: [(&str, &[i64]); 3] = [
    ("vae", &[313_600, 400, 8_000, 20, 8_000, 20, 8_000, 400, 313_600, 784]),
    ("mnist", &[288, 32, 18_432, 64, 1_179_648, 128, 1_280, 10]),
    (
        "resnet",
        &[
            524_288, 2_359_296, 1_048_576, 2_097_152, 1_048_576, 2_359_296, 1_048_576, 1_048_576,
            2_359_296, 1_048_576, 512, 512, 512, 512, 2_048, 2_048,
        ],
    ),
];

fn main() -> anyhow::Result<()> {
    environment::complete().context("cannot restart the program")?;
    tch::set_num_interop_threads(1);
    println!("median step of Adam, of {STEPS} in turns");
    println!("{:>8} {:>8} {:>12} {:>12} {:>8}", "model", "threads", "libtorch", "ours", "ratio");
    for (name, sizes) in MODELS {
        for threads in [1, 2] {
            tch::set_num_threads(threads);
            let [theirs, ours] = compare(sizes)?;
            let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
            println!("{name:>8} {threads:>8} {theirs:>12.3?} {ours:>12.3?} {ratio:>8.3}");
        }
    }
    Ok(())
}

fn compare(sizes: &[i64]) -> anyhow::Result<[Duration; 2]> {
    let stores = [store(sizes), store(sizes)];
    let [one, other] = &stores;
    let mut theirs = nn::Adam::default().build(one, 1e-3)?;
    let parameters = Parameters::from_store(other);
    let mut ours = Adam::new(&parameters, 1e-3)?;
    let gradients = parameters.gradients(&loss(other))?;
    theirs.zero_grad();
    loss(one).backward();
    let (mut of_theirs, mut of_ours) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        of_theirs.push(timed(|| theirs.step()));
        let mut result = Ok(());
        of_ours.push(timed(|| result = ours.step(&gradients)));
        result?;
    }
    Ok([median(of_theirs), median(of_ours)])
}

fn store(sizes: &[i64]) -> VarStore {
    let store = VarStore::new(Device::Cpu);
    for (number, size) in sizes.iter().enumerate() {
        drop(store.root().ones(&number.to_string(), &[*size]));
    }
    store
}

fn loss(store: &VarStore) -> Tensor {
    let sums = store.trainable_variables().into_iter().map(|it| it.square().sum(Kind::Float));
    sums.fold(Tensor::from(0.0_f32), |sum, part| sum + part)
}

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}
