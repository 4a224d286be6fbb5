//! A variational autoencoder, 784-400-20, trained as PyTorch's well-known example is: the binary
//! cross entropy of all pixels plus the KL divergence, summed over a batch of 128, by Adam.
//!
//! The loss that it prints and reports is that of one image.

mod model;

use std::num::NonZeroUsize;

use anyhow::Context;
use clap::Parser;
use paceline_reporter::Reporter;
use paceline_torch::{Images, Run};
use paceline_workload::{Stop, Targets, TrainingArgs, note, openmp};
use tch::nn::{Adam, OptimizerConfig, VarStore};
use tch::{Device, no_grad};

use crate::model::Vae;

/// As in PyTorch's example.
const BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(128).expect("not 0");
/// Reached after about 600 and 1100 steps.
const MNIST: Targets = Targets::new(120.0, 110.0);
/// Reached after as many.
const FASHION_MNIST: Targets = Targets::new(250.0, 245.0);

/// Trains a variational autoencoder on 28 by 28 images, and reports its loss.
///
/// SIGTERM ends it after the batch that it is at, with exit code 0.
#[derive(Debug, Parser)]
#[command(version, after_help = "Example: vae --epochs 3 --threads 1 --target-objective 105")]
struct Args {
    #[command(flatten)]
    training: TrainingArgs,
}

fn main() -> anyhow::Result<()> {
    openmp::wait_passively().context("cannot start anew")?;
    let args = Args::parse().training;
    let Run { kind, dataset, train, test, schedule, stop, mut log } =
        Run::begin(&args, BATCH_SIZE)?;
    let store = VarStore::new(Device::Cpu);
    let model = Vae::new(&store.root());
    let mut optimizer = Adam::default().build(&store, args.learning_rate)?;

    let job = Reporter::builder("vae")
        .loss_name("cross entropy + KL per image")
        .dataset(dataset)
        .total_steps(schedule.steps());
    let targets = args.targets().or(kind.targets(MNIST, FASHION_MNIST));
    let reporter = targets.tell(job).from_env().start().unwrap_or_else(|error| {
        note(format_args!("training without reports: {:#}", anyhow::Error::from(error)));
        Reporter::disabled()
    });

    'training: for epoch in 1..=schedule.epochs() {
        reporter.epoch(epoch);
        for positions in schedule.batches(epoch) {
            let batch = reporter.batch();
            let images = train.batch(&positions).0.flat_view();
            let loss = model.loss(&images);
            optimizer.backward_step(&loss);
            let (count, _) = images.size2()?;
            let loss = f64::try_from(loss / count)?;
            batch.loss(loss);

            log.batch(epoch, loss)?;
            if stop.requested() {
                break 'training;
            }
        }
        if schedule.is_whole(epoch) {
            let loss = no_grad(|| test_loss(&model, &test, &stop))?;
            log.line(&format!("====> Test set loss: {loss:.4}"))?;
        }
    }
    reporter.finish();
    log.finish()?;
    Ok(())
}

/// The mean loss of the test images; of a part of them once the run is to stop.
fn test_loss(model: &Vae, images: &Images, stop: &Stop) -> anyhow::Result<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for (images, _) in images.chunks(1000).take_while(|_| !stop.requested()) {
        let images = images.flat_view();
        sum += f64::try_from(model.loss(&images))?;
        count += i32::try_from(images.size2()?.0)?;
    }
    Ok(sum / f64::from(count))
}
